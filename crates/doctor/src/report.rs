//! Findings for people, and for programs.

use crate::{Finding, Severity};
use serde_json::json;
use std::fmt::Write;

/// Problems first; each finding with its reason and its remedy, and a sum at the end.
pub fn as_text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in sorted(findings) {
        let label = match finding.severity {
            Severity::Problem => "PROBLEM",
            Severity::Advice => "advice ",
        };
        let _ = writeln!(text, "{label}  {}", finding.what);
        let _ = writeln!(text, "         {}", finding.why);
        let _ = writeln!(text, "      -> {}\n", finding.remedy);
    }
    let (problems, advice) = counts(findings);
    let _ = match findings.len() {
        0 => writeln!(text, "Nothing to improve was found."),
        _ => writeln!(text, "{problems} problems, {advice} pieces of advice"),
    };
    text
}

/// `{"problems":N,"advice":N,"findings":[{"severity","check","what","why","remedy"}]}`, problems first.
pub fn as_json(findings: &[Finding]) -> String {
    let (problems, advice) = counts(findings);
    let report = json!({ "problems": problems, "advice": advice, "findings": sorted(findings) });
    format!("{report:#}\n")
}

fn sorted(findings: &[Finding]) -> Vec<&Finding> {
    let mut sorted: Vec<_> = findings.iter().collect();
    sorted.sort_by_key(|finding| finding.severity);
    sorted
}

fn counts(findings: &[Finding]) -> (usize, usize) {
    let problems = findings.iter().filter(|finding| finding.severity == Severity::Problem).count();
    (problems, findings.len() - problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings() -> Vec<Finding> {
        vec![
            Finding::advice("b", "second", "because", "do this"),
            Finding::problem("a", "first", "since", "do that"),
        ]
    }

    #[test]
    fn problems_come_first_with_reason_and_remedy() {
        let text = as_text(&findings());
        assert!(text.starts_with("PROBLEM  first\n         since\n      -> do that\n"), "{text}");
        assert!(text.ends_with("1 problems, 1 pieces of advice\n"), "{text}");
        assert_eq!(as_text(&[]), "Nothing to improve was found.\n");
    }

    #[test]
    fn programs_get_the_same() {
        let report: serde_json::Value = serde_json::from_str(&as_json(&findings())).unwrap();
        assert_eq!((&report["problems"], &report["advice"]), (&1.into(), &1.into()));
        assert_eq!(report["findings"][0]["severity"], "problem");
        assert_eq!(report["findings"][0]["check"], "a");
    }
}
