//! Errors as JSON: problem documents (RFC 9457).

use http::StatusCode;
use serde_json::json;

pub const CONTENT_TYPE: &[u8] = b"application/problem+json";

/// `detail`: in words for the client; may be empty.
pub fn document(status: u16, detail: &str) -> Vec<u8> {
    let title = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    let mut problem = json!({ "type": "about:blank", "title": title.unwrap_or("Error"), "status": status });
    if !detail.is_empty() {
        problem["detail"] = detail.into();
    }
    problem.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_has_a_title_and_a_detail_if_there_is_one() {
        let problem: serde_json::Value =
            serde_json::from_slice(&document(400, "\"x\" is no number")).unwrap();
        let expected = json!({
            "type": "about:blank", "title": "Bad Request", "status": 400, "detail": "\"x\" is no number"
        });
        assert_eq!(problem, expected);
        let problem: serde_json::Value = serde_json::from_slice(&document(599, "")).unwrap();
        assert_eq!(problem, json!({ "type": "about:blank", "title": "Error", "status": 599 }));
    }
}
