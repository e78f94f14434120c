//! The files of results: claims as JSON, CSV and Markdown, all metrics as CSV, and the report.

use super::{Account, pages, report, verdicts};
use crate::failure::{Failure, Outcome};
use lab::schedule::Table;
use lab::{ClaimResult, ValueResult};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The data files of `folder`, by name, in order.
pub fn read(folder: &Path) -> Outcome<Vec<(String, String)>> {
    let mut files = Vec::new();
    for entry in walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().flatten() {
        let name = entry.path().strip_prefix(folder).unwrap_or(entry.path());
        if name.extension().is_some_and(|extension| extension == "toml") {
            let text = std::fs::read_to_string(entry.path())
                .map_err(|error| Failure::io(format!("read {}", entry.path().display()), &error))?;
            files.push((name.with_extension("").to_string_lossy().into_owned(), text));
        }
    }
    Ok(files)
}

/// Writes everything into `folder`.
pub fn write(account: &Account<'_>, folder: &Path) -> Outcome {
    let rows: Vec<Value> = account.claims.iter().map(ClaimResult::to_json).collect();
    save(folder, "claims.json", &(serde_json::to_string_pretty(&rows)? + "\n"))?;
    save(folder, "claims.csv", &claims_csv(account))?;
    save(folder, "metrics.csv", &metrics_csv(account, |_, _| true))?;
    let papers = folder.join("papers");
    std::fs::create_dir_all(&papers).map_err(|error| Failure::cannot_write(&papers, &error))?;
    for (name, text) in pages::pages(account) {
        save(&papers, &format!("{name}.md"), &text)?;
    }
    let mut used = BTreeMap::new();
    for findings in &account.findings {
        used.insert(findings.experiment.id.as_str(), findings.experiment.metrics()?);
    }
    let is_used = |id: &str, name: &str| used.get(id).is_some_and(|names| names.contains(name));
    save(&papers, "metrics.csv", &metrics_csv(account, is_used))?;
    let values = papers.join("values");
    std::fs::create_dir_all(&values).map_err(|error| Failure::cannot_write(&values, &error))?;
    for (paper, claims) in pages::by_paper(account) {
        save(&values, &pages::values_file(paper, account.scale), &values_csv(&claims))?;
    }
    let pictures = papers.join("pictures");
    std::fs::create_dir_all(&pictures).map_err(|error| Failure::cannot_write(&pictures, &error))?;
    for (name, svg) in pages::pictures(account) {
        save(&pictures, &name, &svg)?;
    }
    verdicts::draw(&papers)?;
    save(folder, "report.html", &report::render(account))
}

fn save(folder: &Path, name: &str, text: &str) -> Outcome {
    let path = folder.join(name);
    std::fs::write(&path, text).map_err(|error| Failure::cannot_write(&path, &error))
}

fn csv(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    // Writing to memory cannot fail, and all rows are as long as the header.
    let _ = writer.write_record(header);
    rows.for_each(|row| drop(writer.write_record(row)));
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

fn claims_csv(account: &Account<'_>) -> String {
    let header = [
        "claim",
        "where",
        "experiment",
        "value",
        "paper",
        "measured",
        "ratio",
        "verdict",
        "without the idea",
        "reason",
    ];
    let rows = account.claims.iter().flat_map(|claim| {
        claim.values.iter().map(|value| {
            let measured: Vec<String> = value.measured.iter().map(f64::to_string).collect();
            vec![
                claim.id.clone(),
                claim.place.clone(),
                claim.experiment.clone(),
                value.name.clone(),
                value.paper.clone(),
                measured.join(" "),
                value.ratio.map_or(String::new(), |ratio| ratio.to_string()),
                value.verdict.name().to_string(),
                value.without.name().to_string(),
                value.reason.clone(),
            ]
        })
    });
    csv(&header, rows)
}

/// The values of one paper's claims as its page spells them.
fn values_csv(claims: &[&ClaimResult]) -> String {
    let rows = claims.iter().flat_map(|claim| {
        claim.values.iter().map(|value| {
            let texts = [&claim.id, &claim.place, &value.name, &value.paper].map(String::clone);
            let verdicts = [value.verdict, value.without].map(|v| v.name().to_string());
            let figures = [pages::measured(value), ratios(value)];
            texts.into_iter().chain(figures).chain(verdicts).collect()
        })
    });
    let header =
        ["claim", "figure", "value", "paper", "measured", "ratio", "verdict", "without the idea"];
    csv(&header, rows)
}

/// Each ratio in four digits; nothing where one is infinite.
fn ratios(value: &ValueResult) -> String {
    if value.ratios.iter().any(|ratio| !ratio.is_finite()) {
        return String::new();
    }
    let ratios = value.ratios.iter().map(|ratio| match ratio.abs() {
        size if size >= 100.0 => format!("{ratio:.0}"),
        size if size >= 1.0 => format!("{ratio:.2}"),
        _ => format!("{ratio:.4}"),
    });
    ratios.collect::<Vec<_>>().join(", ")
}

/// The metrics of all runs that `is_kept` by experiment and name.
fn metrics_csv(account: &Account<'_>, is_kept: impl Fn(&str, &str) -> bool) -> String {
    let is_kept = &is_kept;
    let rows = account.findings.iter().flat_map(|findings| {
        findings.table.iter().flat_map(|((system, point), outcome)| {
            let (id, point) = (findings.experiment.id.clone(), point.clone().unwrap_or_default());
            let row = |name: &str, value: String| {
                vec![id.clone(), system.clone(), point.clone(), name.to_string(), value]
            };
            match outcome {
                Ok(metrics) => {
                    let kept = metrics.iter().filter(|(name, _)| is_kept(&id, name));
                    kept.map(|(name, value)| row(name, value.to_string())).collect()
                }
                Err(why) => vec![row("error", why.clone())],
            }
        })
    });
    csv(&["experiment", "system", "point", "metric", "value"], rows)
}

/// Metrics by experiment, as [`write`] left them in `folder`.
pub fn metrics(folder: &Path) -> Outcome<BTreeMap<String, Table>> {
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
