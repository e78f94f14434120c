//! The rules for alerts: their form, and queries of metrics that exist.
//!
//! The file keeps to a small part of YAML, one field to a line, so that a reader of a few lines is
//! enough. Whatever else is in it is a failure.

use crate::query::metrics_of;
use std::collections::BTreeMap;
use std::path::Path;

const ALERTS: &str = include_str!("../../../../docs/monitoring/alerts.yml");

/// The fields of a rule, with their indentation, in their order.
const FIELDS: &[&str] = &[
    "      - alert: ",
    "        expr: ",
    "        for: ",
    "        labels:",
    "          severity: ",
    "        annotations:",
    "          summary: ",
    "          manual: ",
];

fn rules() -> Vec<BTreeMap<&'static str, &'static str>> {
    let mut lines = ALERTS.lines().filter(|line| !line.starts_with('#'));
    let head: Vec<&str> = lines.by_ref().take(3).collect();
    assert_eq!(head, ["groups:", "  - name: shingle", "    rules:"]);
    let lines: Vec<&str> = lines.collect();
    assert_eq!(lines.len() % FIELDS.len(), 0, "a rule has {} lines", FIELDS.len());
    let rule = |lines: &[&'static str]| {
        let fields = FIELDS.iter().zip(lines).map(|(field, line)| {
            let value = line.strip_prefix(field).unwrap_or_else(|| panic!("{field} for {line}"));
            (field.trim_matches(|c: char| !c.is_alphabetic()), value)
        });
        fields.collect()
    };
    lines.chunks(FIELDS.len()).map(rule).collect()
}

/// Text in quotes; a plain text must not contain what YAML reads as something else.
fn quoted(text: &str) -> &str {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).expect("quotes");
    assert!(!inner.contains(['"', '\\']), "{text}");
    inner
}

#[test]
fn the_alerts_name_metrics_and_pages_that_exist() {
    let rules = rules();
    let mut names: Vec<&str> = rules.iter().map(|rule| rule["alert"]).collect();
    assert!(names.iter().all(|name| name.starts_with("Shingle")), "{names:?}");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), rules.len());
    assert!(names.len() > 5);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for rule in &rules {
        assert!(!metrics_of(rule["expr"]).is_empty());
        assert!(!rule["expr"].contains([':', '#', '"']), "plain text of YAML: {}", rule["expr"]);
        let (number, unit) = rule["for"].split_at(rule["for"].len() - 1);
        assert!(number.parse::<u32>().is_ok() && matches!(unit, "m" | "h"), "{}", rule["for"]);
        assert!(matches!(rule["severity"], "critical" | "warning"), "{}", rule["severity"]);
        for label in quoted(rule["summary"]).split("$labels.").skip(1) {
            let label = label.split(' ').next().unwrap();
            assert!(rule["expr"].contains(label), "{}", rule["summary"]);
        }
        let (page, section) =
            quoted(rule["manual"]).split_once('#').unwrap_or((quoted(rule["manual"]), ""));
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        let sections = text.lines().filter_map(|line| line.strip_prefix("## "));
        let mut anchors = sections.map(|title| title.to_lowercase().replace(' ', "-"));
        assert!(section.is_empty() || anchors.any(|anchor| anchor == section), "{section}");
    }
}
