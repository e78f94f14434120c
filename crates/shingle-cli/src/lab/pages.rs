//! Claims, verdicts and tables as Markdown, one file for each paper. `cargo xtask papers` puts them
//! into `docs/papers`. The values of all claims go to a CSV file beside the page, and the first
//! plot of each experiment to an SVG file.

use super::text::wrapped;
use super::{Account, matrix, plot, terminal};
use lab::{ClaimResult, Findings, ValueResult, Verdict};
use std::collections::BTreeMap;
use std::fmt::Write;

const PICTURE_STYLE: &str = include_str!("picture.css");

/// The pages by name, without the ending.
pub fn pages(account: &Account<'_>) -> Vec<(String, String)> {
    let papers = by_paper(account).into_iter();
    let mut pages: BTreeMap<String, String> =
        papers.map(|(paper, claims)| (paper.to_string(), page(account, paper, &claims))).collect();
    for findings in account.findings.iter().filter(|f| !f.experiment.columns.is_empty()) {
        let paper = findings.experiment.id.split('/').next().unwrap_or_default();
        let page = pages.entry(paper.to_string()).or_default();
        if !page.is_empty() {
            page.push('\n');
        }
        *page += &matrix::page(account, findings);
    }
    pages.into_iter().collect()
}

fn paper(claim: &ClaimResult) -> &str {
    claim.id.split('/').next().unwrap_or_default()
}

/// The claims of each paper that has any, by its name.
pub fn by_paper<'a>(account: &'a Account<'_>) -> BTreeMap<&'a str, Vec<&'a ClaimResult>> {
    let mut papers: BTreeMap<&str, Vec<&ClaimResult>> = BTreeMap::new();
    for claim in &account.claims {
        papers.entry(paper(claim)).or_default().push(claim);
    }
    papers
}

/// The file beside the page that has every value of the claims of `paper`.
pub fn values_file(paper: &str, scale: &str) -> String {
    format!("{paper}-{scale}.csv")
}

/// The part of a paper's page from its claims on.
fn page(account: &Account<'_>, name: &str, claims: &[&ClaimResult]) -> String {
    let scale = account.scale;
    let of = |verdict| claims.iter().filter(|claim| claim.verdict == verdict).count();
    let [hold, shape, without, not, cannot] = Verdict::ALL.map(of);
    let counts = format!(
        "At `{scale}`, of {} claims {hold} are reproduced, {shape} in shape, {without} also pass \
         without the idea, {not} are not reproduced and {cannot} cannot be reproduced.",
        claims.len()
    );
    let file = values_file(name, scale);
    let picture = file.replace(".csv", ".svg");
    let mut text = format!(
        "![Each value of {name}, measured over the paper's](pictures/{picture})\n\n\
         {}\n{}{}## Claims\n\n\
         A figure links to its experiment. All values, the paper's and the measured ones, are in\n\
         [values/{file}](values/{file}). A short line across a bar or over a \
         point is the paper's value.\n\n\
         | figure | claim | verdict at `{scale}` | its values | without the idea |\n\
         |---|---|---|---|---|\n",
        wrapped(&counts, ""),
        wrapped(&factors(claims), ""),
        baseless(claims),
    );
    text.extend(claims.iter().map(|claim| row(claim)));
    let details: String = claims.iter().map(|claim| details(account, claim)).collect();
    if !details.is_empty() {
        let _ = write!(text, "\n## Figures at `{scale}`, and why values differ\n{details}");
    }
    text
}

/// How far the values are from the paper's.
fn factors(claims: &[&ClaimResult]) -> String {
    let values = claims.iter().flat_map(|claim| &claim.values);
    let ratios: Vec<f64> = values.filter_map(|value| value.ratio).collect();
    let within = |factor: f64| {
        ratios.iter().filter(|ratio| **ratio >= 1.0 / factor && **ratio <= factor).count()
    };
    let beyond = ratios.len() - within(2.0);
    format!(
        "Of {} values with a ratio {} are within 1.25 times the paper's, {} within 1.5 times, {} \
         within 2 times and {beyond} beyond.",
        ratios.len(),
        within(1.25),
        within(1.5),
        within(2.0),
    )
}

/// The claims that pass without the idea, by name, as a paragraph.
fn baseless(claims: &[&ClaimResult]) -> String {
    let found = claims.iter().filter(|claim| claim.verdict == Verdict::WithoutIdea);
    let names: Vec<String> = found.map(|claim| format!("`{}`", claim.id)).collect();
    if names.is_empty() {
        return "\n".to_string();
    }
    let text = format!(
        "These claims also pass without the idea, so they count as neither reproduced nor in \
         shape: {}.",
        names.join(", ")
    );
    format!("\n{}\n", wrapped(&text, ""))
}

/// What was measured, as a page shows it.
pub fn measured(value: &ValueResult) -> String {
    match value.verdict {
        Verdict::Impossible => "nothing".to_string(),
        _ => terminal::measured(value),
    }
}

fn row(claim: &ClaimResult) -> String {
    let of = |verdict| claim.values.iter().filter(|value| value.verdict == verdict).count();
    let words = ["reproduced", "in shape", "without the idea", "not", "not reproducible"];
    let counts = Verdict::ALL.map(of).into_iter().zip(words);
    let counts = counts.filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, word)| format!("{count} {word}")).collect();
    format!(
        "| [{}](../../crates/lab/data/{}.toml) | `{}` | {} | {} | {} |\n",
        claim.place,
        claim.experiment,
        claim.id,
        claim.verdict.name(),
        counts.join(", "),
        terminal::passes(claim.without)
    )
}

/// The pictures of the pages by the names of their files.
pub fn pictures(account: &Account<'_>) -> Vec<(String, String)> {
    let claimed = |id: &str| account.claims.iter().any(|claim| claim.experiment == id);
    let claimed = account.findings.iter().filter(|f| claimed(&f.experiment.id));
    let pictures = claimed.filter_map(|findings| {
        let (_, svg) = plot::picture(findings, PICTURE_STYLE)?;
        Some((picture_file(findings, account.scale), svg))
    });
    pictures.collect()
}

fn picture_file(findings: &Findings<'_>, scale: &str) -> String {
    format!("{}-{scale}.svg", findings.experiment.id.replace('/', "-"))
}

/// How the experiment of a claim differs from the paper's, its picture, and the values that do not
/// hold.
fn details(account: &Account<'_>, claim: &ClaimResult) -> String {
    let findings = account.findings.iter().find(|f| f.experiment.id == claim.experiment);
    let deviation = findings.map_or("", |f| f.experiment.deviation.as_str());
    let missed = claim.values.iter().filter(|value| value.verdict > Verdict::Holds);
    let misses: String = missed.map(|value| wrapped(&miss(value), "  ")).collect();
    let picture = findings.and_then(|f| {
        let (title, _) = plot::picture(f, PICTURE_STYLE)?;
        let file = picture_file(f, account.scale);
        Some(format!("\n{title}:\n\n![{title}](pictures/{file})\n"))
    });
    if deviation.is_empty() && misses.is_empty() && picture.is_none() {
        return String::new();
    }
    let verdict = claim.verdict.name();
    let mut text = format!("\n### {}: `{}` {verdict}\n", claim.place, claim.id);
    if !deviation.is_empty() {
        let _ = write!(text, "\n{}", wrapped(&format!("Set-up: {deviation}"), ""));
    }
    text += &picture.unwrap_or_default();
    if !misses.is_empty() {
        let _ = write!(text, "\n{misses}");
    }
    text
}

fn miss(value: &ValueResult) -> String {
    let ValueResult { name, paper, verdict, reason, .. } = value;
    let measured = measured(value);
    format!("- {name}, {}: the paper has {paper}, measured {measured}. {reason}", verdict.name())
}
