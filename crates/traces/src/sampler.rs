//! Whose spans are recorded: decided when a request comes, before anything is kept of it.

use crate::context::Sampled;
use crate::ids::TraceId;

/// What decides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampler {
    pub root: RootRule,
    pub parent: ParentRule,
}

/// Of traces that begin here.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RootRule {
    Always,
    Never,
    /// So many of them, from 0 to 1, chosen by their numbers: of two processes with the same ratio each takes the same traces.
    Ratio(f64),
}

/// Of traces that come from somewhere else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParentRule {
    /// Who began it has decided.
    Followed,
    /// They are as those that begin here.
    Ignored,
}

impl Sampler {
    /// `parent`: what the trace comes with; `None`: it begins here.
    pub fn decide(&self, parent: Option<Sampled>, trace: TraceId) -> Sampled {
        match (parent, self.parent) {
            (Some(decided), ParentRule::Followed) => decided,
            _ => self.root.decide(trace),
        }
    }
}

impl RootRule {
    fn decide(self, trace: TraceId) -> Sampled {
        let is_in = match self {
            Self::Always => true,
            Self::Never => false,
            // As OpenTelemetry's own libraries do (sdk/trace/sampling.go of Go's, `TraceIDRatioBased`).
            Self::Ratio(ratio) => {
                let bound = (ratio.clamp(0.0, 1.0) * (1_u64 << 63) as f64) as u64;
                trace.low_half() >> 1 < bound
            }
        };
        if is_in { Sampled::Yes } else { Sampled::No }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(root: RootRule) -> usize {
        let sampler = Sampler { root, parent: ParentRule::Followed };
        (0..20_000).filter(|_| sampler.decide(None, TraceId::random()) == Sampled::Yes).count()
    }

    #[test]
    fn about_as_many_as_the_ratio_says_are_taken() {
        assert_eq!(
            [taken(RootRule::Always), taken(RootRule::Ratio(1.0)), taken(RootRule::Ratio(7.0))],
            [20_000; 3]
        );
        assert_eq!(
            [taken(RootRule::Never), taken(RootRule::Ratio(0.0)), taken(RootRule::Ratio(-1.0))],
            [0; 3]
        );
        assert!((1_500..2_500).contains(&taken(RootRule::Ratio(0.1))));
    }

    #[test]
    fn a_larger_ratio_takes_what_a_smaller_one_does() {
        for _ in 0..1_000 {
            let trace = TraceId::random();
            let is_in = |ratio| RootRule::Ratio(ratio).decide(trace) == Sampled::Yes;
            assert!(!is_in(0.2) || is_in(0.3));
        }
    }

    #[test]
    fn the_parent_decides_where_it_is_asked() {
        for (root, parent, decided, expected) in [
            (RootRule::Always, ParentRule::Followed, Sampled::No, Sampled::No),
            (RootRule::Never, ParentRule::Followed, Sampled::Yes, Sampled::Yes),
            (RootRule::Always, ParentRule::Ignored, Sampled::No, Sampled::Yes),
            (RootRule::Never, ParentRule::Ignored, Sampled::Yes, Sampled::No),
        ] {
            assert_eq!(Sampler { root, parent }.decide(Some(decided), TraceId::random()), expected);
        }
    }
}
