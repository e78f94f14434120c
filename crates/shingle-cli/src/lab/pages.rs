//! Claims, verdicts and tables as Markdown, one file for each paper: what `cargo xtask papers` puts
//! into `docs/papers`.

use super::{Account, matrix, terminal};
use lab::{ClaimResult, Findings, ValueResult, Verdict};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const COLUMNS: usize = 112;

/// The pages by name, without the ending.
pub fn pages(account: &Account<'_>) -> Vec<(String, String)> {
    let papers: BTreeSet<&str> = account.claims.iter().map(paper).collect();
    let claimed = papers.into_iter().map(|paper| (paper.to_string(), page(account, paper)));
    let mut pages: BTreeMap<String, String> = claimed.collect();
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

/// What stands in the page of a paper from its claims on.
fn page(account: &Account<'_>, name: &str) -> String {
    let claims: Vec<&ClaimResult> =
        account.claims.iter().filter(|claim| paper(claim) == name).collect();
    let scale = account.scale;
    let of = |verdict| claims.iter().filter(|claim| claim.verdict == verdict).count();
    let [hold, shape, not, cannot] = Verdict::ALL.map(of);
    let mut text = format!(
        "## Claims\n\nAt `{scale}`, of {} claims {hold} hold, {shape} hold in shape, {not} do not \
         hold and {cannot} cannot be reproduced.\n\n\
         | claim | figure | experiment | deviation | verdict at `{scale}` |\n\
         |---|---|---|---|---|\n",
        claims.len()
    );
    for claim in &claims {
        text += &row(account, claim);
    }
    let values = || claims.iter().flat_map(|claim| claim.values.iter().map(move |v| (claim, v)));
    let _ = write!(
        text,
        "\n## Values at `{scale}`\n\n| claim | value | paper | measured | verdict |\n\
         |---|---|---|---|---|\n"
    );
    text.extend(values().map(|(claim, value)| value_row(claim, value)));
    let missed = values().filter(|(_, value)| value.verdict > Verdict::Holds);
    let misses: String = missed.map(|(claim, value)| wrapped(&miss(claim, value))).collect();
    if !misses.is_empty() {
        let _ = write!(text, "\n## What is otherwise at `{scale}`, and why\n\n{misses}");
    }
    text
}

fn value_row(claim: &ClaimResult, value: &ValueResult) -> String {
    let ValueResult { name, paper, verdict, .. } = value;
    format!("| `{}` | {name} | {paper} | {} | {} |\n", claim.id, measured(value), verdict.name())
}

fn measured(value: &ValueResult) -> String {
    match value.verdict {
        Verdict::Impossible => "nothing".to_string(),
        _ => terminal::measured(value),
    }
}

fn findings<'a>(account: &'a Account<'_>, claim: &ClaimResult) -> Option<&'a Findings<'a>> {
    account.findings.iter().find(|findings| findings.experiment.id == claim.experiment)
}

fn row(account: &Account<'_>, claim: &ClaimResult) -> String {
    let findings = findings(account, claim);
    let deviation = findings.map(|f| f.experiment.deviation.as_str());
    let deviation = deviation.filter(|text| !text.is_empty()).unwrap_or("none of its own");
    let of = |verdict| claim.values.iter().filter(|value| value.verdict == verdict).count();
    let [hold, shape, not, cannot] = Verdict::ALL.map(of);
    let cannot = if cannot > 0 { format!(", {cannot} cannot be") } else { String::new() };
    format!(
        "| `{}` | {} | [{}](../../crates/lab/data/{}.toml) | {deviation} | {}; values: {hold} \
         hold, {shape} in shape, {not} not{cannot} |\n",
        claim.id,
        claim.place,
        claim.experiment,
        claim.experiment,
        claim.verdict.name(),
    )
}

fn miss(claim: &ClaimResult, value: &ValueResult) -> String {
    format!(
        "- `{}`, {}: the paper has {}, measured {}. {}",
        claim.id,
        value.name,
        value.paper,
        measured(value),
        value.reason
    )
}

/// `text` in lines of a page, those after the first indented as an item of a list is.
fn wrapped(text: &str) -> String {
    let (mut lines, mut line) = (String::new(), String::new());
    for word in text.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > COLUMNS {
            lines += &line;
            lines.push('\n');
            line = " ".into();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    lines + &line + "\n"
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn long_items_are_broken_between_words() {
        let text = wrapped(&format!("- {} end", "word ".repeat(40)));
        assert_eq!(text.lines().count(), 2);
        assert!(text.lines().all(|line| line.len() <= super::COLUMNS));
        assert!(text.lines().skip(1).all(|line| line.starts_with("  word")));
        assert_eq!(text.split_whitespace().count(), 42);
    }
}
