//! `lab spread`: the verdicts of runs with several seeds beside each other.

use super::text::{texts, wrapped};
use super::{earlier, save};
use crate::args::lab::CompareArgs;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use comfy_table::CellAlignment;
use lab::compare::spell;
use lab::spread::spread;
use lab::{ClaimSpread, Library, ValueSpread, Verdict};
use std::fmt::Write;

/// Compares the results of each directory by itself, and shows how they differ.
pub fn show(context: &mut Context, library: &Library, args: &CompareArgs) -> Outcome {
    if args.results.len() < 2 {
        let help = "run the same experiments with several seeds, each with an --out of its own";
        return Err(Failure::said("there is no spread of one directory", help));
    }
    let of_seed = |folder| earlier::findings(library, std::slice::from_ref(folder), &args.scale);
    let seeds = args.results.iter().map(of_seed).collect::<Outcome<Vec<_>>>()?;
    let claims = spread(library, &seeds)?;
    save::create(&args.out)?;
    save::save(&args.out, "spread.csv", &rows(&claims))?;
    save::save(&args.out, "spread.md", &page(&claims, &args.scale))?;
    if context.global.json {
        return context.json(&claims);
    }
    terminal(context, &claims)?;
    context.remark(&format!("the page is {}", args.out.join("spread.md").display()));
    Ok(())
}

/// Each verdict with the number of seeds that give it, the most frequent first.
fn verdicts(of_seeds: &[Verdict]) -> String {
    let count = |verdict| of_seeds.iter().filter(|one| **one == verdict).count();
    let mut counts: Vec<(usize, Verdict)> =
        Verdict::ALL.into_iter().map(|verdict| (count(verdict), verdict)).collect();
    counts.retain(|(count, _)| *count > 0);
    counts.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    match counts.as_slice() {
        [(_, verdict)] => verdict.name().to_string(),
        _ => {
            let each = counts.iter().map(|(count, verdict)| format!("{count} {}", verdict.name()));
            each.collect::<Vec<_>>().join(", ")
        }
    }
}

/// The smallest and the largest ratio.
fn ends(value: &ValueSpread) -> [String; 2] {
    match value.ends() {
        Some((least, most)) => [spell(least), spell(most)],
        None => ["-".into(), "-".into()],
    }
}

fn by_chance(claim: &ClaimSpread) -> String {
    format!("{} of {}", claim.passes_by_chance, claim.pairs())
}

fn rows(claims: &[ClaimSpread]) -> String {
    let rows = claims.iter().flat_map(|claim| {
        claim.values.iter().map(|value| {
            let texts = [&claim.id, &claim.place, &value.name, &value.paper].map(String::clone);
            let ratio = |ratio: &Option<f64>| ratio.map_or(String::new(), |r| r.to_string());
            let ratios: Vec<String> = value.ratios.iter().map(ratio).collect();
            let found = [ratios.join(" "), verdicts(&value.verdicts)];
            let of_claim = [verdicts(&claim.verdicts), by_chance(claim)];
            texts.into_iter().chain(found).chain(of_claim).collect()
        })
    });
    let header = [
        "claim",
        "figure",
        "value",
        "paper",
        "ratios",
        "verdicts",
        "verdicts of the claim",
        "passes by chance",
    ];
    save::csv(&header, rows)
}

fn terminal(context: &mut Context, claims: &[ClaimSpread]) -> Outcome {
    let header = ["claim", "value", "paper", "least", "most", "verdict", "by chance"];
    let mut table = texts(&header);
    for claim in claims {
        for value in &claim.values {
            let paper: String = value.paper.chars().take(32).collect();
            let [least, most] = ends(value);
            let (verdicts, chance) = (verdicts(&value.verdicts), by_chance(claim));
            table.add_row([&claim.id, &value.name, &paper, &least, &most, &verdicts, &chance]);
        }
    }
    for column in [3, 4] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    writeln!(context.out, "{table}\n\n{}", summary(claims))?;
    Ok(())
}

/// How many claims depend on the seed, and how many pass by chance.
fn summary(claims: &[ClaimSpread]) -> String {
    let (all, seeds) = (claims.len(), claims.first().map_or(0, |claim| claim.verdicts.len()));
    let settled = claims.iter().filter(|claim| claim.is_settled()).count();
    let by_chance = claims.iter().filter(|claim| claim.passes_by_chance > 0).count();
    format!(
        "Of {all} claims {settled} have the same verdict with all {seeds} seeds. Without the idea, \
         {by_chance} pass by chance."
    )
}

/// A section of a Markdown page: a heading and a table of the claims that `is_in` chooses.
fn section(
    page: &mut String,
    heading: &str,
    claims: &[ClaimSpread],
    is_in: impl Fn(&ClaimSpread) -> bool,
) {
    let found: Vec<&ClaimSpread> = claims.iter().filter(|claim| is_in(claim)).collect();
    if found.is_empty() {
        return;
    }
    let _ = write!(
        page,
        "\n## {heading}\n\n\
         | figure | claim | value | paper | ratio: least | most | verdicts | claim | by chance |\n\
         |---|---|---|---|---|---|---|---|---|\n"
    );
    for claim in found {
        for value in &claim.values {
            let [least, most] = ends(value);
            let _ = writeln!(
                page,
                "| {} | `{}` | {} | {} | {least} | {most} | {} | {} | {} |",
                claim.place,
                claim.id,
                value.name,
                value.paper.replace('|', "\\|"),
                verdicts(&value.verdicts),
                verdicts(&claim.verdicts),
                by_chance(claim),
            );
        }
    }
}

fn page(claims: &[ClaimSpread], scale: &str) -> String {
    let intro = format!(
        "The claims at `{scale}` with several seeds. The ratio is the measured gain over the \
         paper's. A claim passes by chance if it passes with the runs of one seed of the baseline \
         in place of the proposed system, and those of another seed beside them. {}",
        summary(claims)
    );
    let mut page = format!("# Verdicts and chance\n\n{}", wrapped(&intro, ""));
    section(&mut page, "Verdicts that depend on the seed", claims, |claim| !claim.is_settled());
    section(&mut page, "Passes by chance", claims, |claim| claim.passes_by_chance > 0);
    let is_plain = |claim: &ClaimSpread| claim.is_settled() && claim.passes_by_chance == 0;
    section(&mut page, "All others", claims, is_plain);
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_of_seeds_are_counted_where_they_differ() {
        use Verdict::{DoesNotHold, Holds, InShape};
        assert_eq!(verdicts(&[Holds, Holds]), "reproduced");
        let text = verdicts(&[InShape, DoesNotHold, DoesNotHold]);
        assert_eq!(text, "2 not reproduced, 1 reproduced in shape");
    }
}
