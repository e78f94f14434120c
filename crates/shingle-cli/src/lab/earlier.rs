//! Results of before.

use crate::failure::{Failure, Outcome};
use lab::schedule::Table;
use lab::{Findings, Library};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What directories of results hold.
pub fn findings<'a>(
    library: &'a Library,
    results: &[PathBuf],
    scale: &str,
) -> Outcome<Vec<Findings<'a>>> {
    let mut tables = BTreeMap::new();
    for folder in results {
        tables.extend(metrics(folder)?);
    }
    let mut findings = Vec::new();
    for (id, table) in tables {
        for experiment in library.select(&[id])? {
            let scale = experiment.scale(library.paper(experiment)?, scale)?;
            findings.push(Findings::new(experiment, scale, table.clone())?);
        }
    }
    Ok(findings)
}

/// Metrics by experiment, as [`super::files::write`] left them in `folder`.
fn metrics(folder: &Path) -> Outcome<BTreeMap<String, Table>> {
    let path = folder.join("metrics.csv");
    let broken = |what: &dyn std::fmt::Display| {
        let help = "it has to be one that `shingle lab run` wrote";
        Failure::said(format!("{}: {what}", path.display()), help)
    };
    let mut reader = csv::Reader::from_path(&path).map_err(|error| broken(&error))?;
    let mut tables = BTreeMap::<String, Table>::new();
    for row in reader.deserialize() {
        let row: (String, String, String, String, String) = row.map_err(|error| broken(&error))?;
        let (experiment, system, point, metric, text) = row;
        let point = Some(point).filter(|point| !point.is_empty());
        let table = tables.entry(experiment).or_default();
        if metric == "error" {
            table.insert((system, point), Err(text));
        } else if let Ok(metrics) = table.entry((system, point)).or_insert(Ok(BTreeMap::new())) {
            let value = text.parse().map_err(|_| broken(&format!("{text:?} is no number")))?;
            metrics.insert(metric, value);
        }
    }
    Ok(tables)
}
