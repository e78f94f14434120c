//! The files of results: claims as JSON, CSV and Markdown, all metrics as CSV, and the report.

use super::save::{create, csv, save};
use super::{Account, pages, report, verdicts};
use crate::failure::{Failure, Outcome};
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
    create(&papers)?;
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
    create(&values)?;
    for (paper, claims) in pages::by_paper(account) {
        save(&values, &pages::values_file(paper, account.scale), &values_csv(&claims))?;
    }
    let pictures = papers.join("pictures");
    create(&pictures)?;
    for (name, svg) in pages::pictures(account) {
        save(&pictures, &name, &svg)?;
    }
    verdicts::draw(&papers)?;
    save(folder, "report.html", &report::render(account))
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
