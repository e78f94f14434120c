//! The board of Grafana: the fields that its schema requires, and queries of metrics that exist.

use crate::query::{is_label, metrics_of};
use serde_json::Value;
use shingle_metrics::definitions;
use std::collections::BTreeSet;

const BOARD: &str = include_str!("../../../../docs/monitoring/shingle.json");

/// The types of panels that the board may have, and the options that the schema requires of each.
const PANELS: &[(&str, &[&str])] = &[
    ("timeseries", &["legend", "tooltip"]),
    (
        "stat",
        &["reduceOptions", "colorMode", "graphMode", "justifyMode", "textMode", "orientation"],
    ),
    ("heatmap", &["color", "exemplars", "legend", "showValue", "tooltip", "yAxis"]),
];

fn board() -> Value {
    serde_json::from_str(BOARD).unwrap()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("{field} in {value}"))
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().unwrap_or_else(|| panic!("{field} in {value}"))
}

#[test]
fn the_board_has_the_fields_of_the_schema() {
    let board = board();
    assert!(board["schemaVersion"].as_u64().unwrap() >= 36, "older boards are converted");
    assert_eq!(text(&board, "uid"), "shingle");
    assert!(!text(&board, "title").is_empty());
    assert!(board["annotations"]["list"].is_array() && board["time"]["from"].is_string());
    let variables = list(&board["templating"], "list");
    let names: Vec<&str> = variables.iter().map(|variable| text(variable, "name")).collect();
    assert_eq!(names, ["datasource", "instance", "db", "keyspace"]);
    assert_eq!(text(&variables[0], "type"), "datasource");
    assert_eq!(text(&variables[0], "query"), "prometheus");
    for variable in &variables[1..] {
        assert_eq!(text(variable, "type"), "query");
        // An instance without a label `db` is shown too.
        assert_eq!(text(variable, "allValue"), ".*");
        let query = text(variable, "query").strip_prefix("label_values(").expect("values");
        let (metric, label) = query.strip_suffix(')').unwrap().rsplit_once(", ").unwrap();
        assert!(is_label(label) && metrics_of(metric).len() == 1, "{query}");
    }
}

#[test]
fn the_panels_have_their_fields_and_do_not_overlap() {
    let board = board();
    let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
    for panel in list(&board, "panels") {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "twice: {}", panel["id"]);
        let title = text(panel, "title");
        let number = |field: &str| panel["gridPos"][field].as_u64().unwrap();
        let (x, y, w, h) = (number("x"), number("y"), number("w"), number("h"));
        assert!(w > 0 && h > 0 && x + w <= 24, "{title}");
        for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            assert!(cells.insert(cell), "{title} overlaps another panel");
        }
        let kind = text(panel, "type");
        if kind == "row" {
            assert!(panel["collapsed"].is_boolean() && list(panel, "panels").is_empty());
            continue;
        }
        let (_, options) = PANELS.iter().find(|(known, _)| *known == kind).expect("a known type");
        options.iter().for_each(|name| assert!(!panel["options"][name].is_null(), "{title}"));
        assert!(panel["fieldConfig"]["defaults"].is_object(), "{title}");
        assert!(panel["fieldConfig"]["overrides"].is_array(), "{title}");
        assert!(!text(panel, "description").is_empty(), "{title}");
        assert_eq!(text(&panel["datasource"], "uid"), "${datasource}", "{title}");
        assert!(!list(panel, "targets").is_empty(), "{title}");
    }
    assert!(ids.len() > 40);
}

#[test]
fn the_queries_of_the_board_name_metrics_that_exist() {
    let board = board();
    let mut shown = BTreeSet::new();
    for panel in list(&board, "panels").iter().filter(|panel| panel["type"] != "row") {
        let mut references = BTreeSet::new();
        for target in list(panel, "targets") {
            assert!(references.insert(text(target, "refId")), "{}", panel["title"]);
            assert_eq!(text(&target["datasource"], "type"), "prometheus");
            let query = text(target, "expr");
            assert!(query.contains("instance=~\"$instance\", db=~\"$db\""), "{query}");
            shown.extend(metrics_of(query));
            for label in text(target, "legendFormat").split("{{").skip(1) {
                let label = label.split("}}").next().unwrap();
                assert!(is_label(label) && query.contains(&format!("by ({label})")), "{query}");
            }
        }
    }
    // A value of 0 or 1 that an alert shows better.
    let hidden = ["shingle_filter_unknown"];
    for definition in definitions() {
        let is_shown = shown.contains(definition.name);
        assert_ne!(is_shown, hidden.contains(&definition.name), "{}", definition.name);
    }
}
