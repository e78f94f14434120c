//! Lists and tables for the terminal.

use super::Account;
use super::text::texts;
use crate::context::Context;
use crate::failure::Outcome;
use comfy_table::CellAlignment;
use lab::claim::SHAPE;
use lab::compare::spell;
use lab::{ClaimResult, Experiment, Library, ValueResult, Verdict};

/// `shingle lab list`.
pub fn list(context: &mut Context, library: &Library) -> Outcome {
    let mut table = texts(&["experiment", "figure", "claims", "about"]);
    for experiment in &library.experiments {
        let claims = experiment.claims().len().to_string();
        table.add_row([&experiment.id, &experiment.figure, &claims, &experiment.title]);
    }
    writeln!(context.out, "{table}")?;
    Ok(())
}

/// `shingle lab show ID`.
pub fn show(context: &mut Context, library: &Library, id: &str) -> Outcome {
    for experiment in library.select(&[id.to_string()])? {
        show_one(context, library, experiment)?;
    }
    Ok(())
}

fn show_one(context: &mut Context, library: &Library, experiment: &Experiment) -> Outcome {
    let paper = library.paper(experiment)?;
    let out = &mut *context.out;
    writeln!(
        out,
        "{}: {}, {}\n  {}",
        experiment.id, paper.title, experiment.figure, experiment.title
    )?;
    if !experiment.deviation.is_empty() {
        writeln!(out, "  Otherwise than in the paper: {}", experiment.deviation)?;
    }
    for name in &experiment.systems {
        let Some(system) = paper.systems.get(name) else { continue };
        writeln!(out, "\n  system {name}: {}", system.about)?;
        for (name, value) in &system.settings {
            writeln!(out, "    {name} = {value}")?;
        }
    }
    for point in &experiment.points {
        let settings: Vec<String> =
            point.settings.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        writeln!(out, "  {} {}: {}", experiment.axis, point.name, settings.join(", "))?;
    }
    for phase in &experiment.phases {
        let settings: Vec<String> =
            phase.settings.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        writeln!(out, "  phase {}: {}", phase.name, settings.join(", "))?;
    }
    for measure in &experiment.measures {
        let is = measure.is.as_ref().map_or("cannot be reproduced", |(text, _)| text);
        writeln!(out, "\n  {}, {}\n    {is}", measure.claim, measure.value)?;
    }
    for (name, scale) in &paper.scales {
        writeln!(out, "\n  scale {name}: {}", scale.describe())?;
    }
    writeln!(out)?;
    Ok(())
}

/// What was measured in a few characters; of a shape, how many of its conditions are true.
pub fn measured(value: &ValueResult) -> String {
    let list = value.measured.as_slice();
    if value.name == SHAPE {
        let kept = list.iter().filter(|truth| **truth == 1.0).count();
        return format!("{kept} of {}", list.len());
    }
    match list {
        [] => "-".into(),
        [one] => spell(*one),
        [first, .., last] if list.len() > 4 => format!("{} ... {}", spell(*first), spell(*last)),
        _ => list.iter().copied().map(spell).collect::<Vec<_>>().join(", "),
    }
}

/// How many claims, and how many of their values, have each verdict.
pub fn counts(claims: &[ClaimResult]) -> Vec<(Verdict, usize, usize)> {
    let values = || claims.iter().flat_map(|claim| &claim.values);
    let count = |verdict: Verdict| {
        let of_claims = claims.iter().filter(|claim| claim.verdict == verdict).count();
        (verdict, of_claims, values().filter(|value| value.verdict == verdict).count())
    };
    Verdict::ALL.into_iter().map(count).collect()
}

/// Whether a verdict is one of those that count as reproduced, in a word.
pub fn passes(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Impossible => "-",
        verdict if verdict.passes() => "passes",
        _ => "fails",
    }
}

/// The table of all values, and the counts of verdicts.
pub fn results(context: &mut Context, account: &Account<'_>) -> Outcome {
    if context.global.json {
        let rows: Vec<serde_json::Value> =
            account.claims.iter().map(ClaimResult::to_json).collect();
        return context.json(&rows);
    }
    let mut table = texts(&["claim", "value", "paper", "measured", "ratio", "verdict", "without"]);
    for claim in &account.claims {
        for value in &claim.values {
            let ratio = value.ratio.map_or("-".into(), spell);
            let paper: String = value.paper.chars().take(32).collect();
            let measured = measured(value);
            let verdict = value.verdict.name().to_string();
            let without = passes(value.without).to_string();
            let row = [&claim.id, &value.name, &paper, &measured, &ratio, &verdict, &without];
            table.add_row(row);
        }
    }
    for column in [3, 4] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    writeln!(context.out, "{table}\n")?;
    for (verdict, claims, values) in counts(&account.claims) {
        let name = verdict.name();
        match verdict {
            Verdict::WithoutIdea => writeln!(context.out, "{name:<28} {claims:>3} claims")?,
            _ => writeln!(context.out, "{name:<28} {claims:>3} claims {values:>4} values")?,
        }
    }
    Ok(())
}
