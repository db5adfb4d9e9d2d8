//! Why a table cannot be used.

/// Always the blame of who wrote the table.
#[derive(Debug, thiserror::Error)]
pub enum FloorError {
    #[error("it is no table of PHP's versions: {0}")]
    Json(#[from] serde_json::Error),
    #[error("`{0}` is no branch of PHP, such as 8.4")]
    Branch(String),
    #[error("`{0}` is no version of PHP, such as 8.4.28")]
    Version(String),
    #[error("the floor {floor} is of another branch than {branch}")]
    OtherBranch { branch: String, floor: String },
    #[error("`{0}` is no day, such as 2026-11-27")]
    Date(String),
    #[error("the line `{0}` is neither `date`, `branch` nor `package` with its words")]
    Line(String),
}
