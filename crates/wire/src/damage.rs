//! What shows that an engine has written where it must not. Memory that is damaged in one place may be so in others, of
//! which nothing can be seen: its engine has to be replaced.

/// Where damage was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    #[error("a queue's positions are impossible")]
    Queue,
    #[error("a queue does not hold what was put into it")]
    Token,
    #[error("a request was taken out of its queue and never begun")]
    Stranded,
    #[error("a request is in an impossible state")]
    State,
    #[error("the positions of a body are impossible")]
    Ring,
    #[error("a response cannot be understood")]
    Frame,
    #[error("a thread is in an impossible state")]
    Thread,
}
