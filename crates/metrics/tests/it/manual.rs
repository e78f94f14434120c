//! The manual's table of metrics is that of the crate.

use shingle_metrics::{Definition, Kind, Scope, definitions};

const PAGE: &str = include_str!("../../../../docs/manual/monitoring.md");

fn row(definition: &Definition) -> String {
    let name = match definition.kind {
        Kind::Counter => format!("{}_total", definition.name),
        _ => definition.name.to_string(),
    };
    let labels: Vec<String> = definition.labels.iter().map(|label| format!("`{label}`")).collect();
    let rocksdb = definition.rocksdb.iter().map(|same| match same.selector {
        "" => format!("`{}`", same.name),
        selector => format!("`{}` (`{selector}`)", same.name),
    });
    let rocksdb: Vec<String> = rocksdb.collect();
    let seen = if definition.scope == Scope::Database { "yes" } else { "" };
    let help = definition.help.trim_end_matches('.');
    let cells =
        [format!("`{name}`"), labels.join(", "), help.into(), seen.into(), rocksdb.join(", ")];
    let cells = cells.map(|cell| if cell.is_empty() { " ".into() } else { format!(" {cell} ") });
    format!("|{}|", cells.join("|"))
}

#[test]
fn the_manual_lists_every_metric_with_the_names_of_rocksdb() {
    let wanted: Vec<String> = definitions().iter().map(row).collect();
    let found: Vec<&str> = PAGE.lines().filter(|line| line.starts_with("| `shingle_")).collect();
    assert!(found == wanted, "the rows are to be:\n{}", wanted.join("\n"));
}
