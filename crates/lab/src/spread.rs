//! The same claims in runs with several seeds: what chance has to do with a verdict.
//!
//! - *Verdicts.* A verdict that depends on the seed says little. [`ClaimSpread::is_settled`] tells
//!   whether all seeds agree.
//! - *By chance.* Without the idea, a system is compared with itself, and the two are alike to the
//!   last digit. With the runs of one seed in place of the proposed system, and those of another
//!   for the baseline, they differ by chance. A claim that passes then is within what chance does.
//!   Each ordered pair of seeds is tried.

use crate::compare::{self, ClaimResult, Findings, Verdict};
use crate::data::Library;
use base::{Error, Result};
use serde::Serialize;

/// A value of a claim, with each seed.
#[derive(Clone, Debug, Serialize)]
pub struct ValueSpread {
    /// Its name in the claim.
    pub name: String,
    /// What the paper says.
    pub paper: String,
    /// The worst ratio to the paper's gain with each seed; `None` where there is none.
    pub ratios: Vec<Option<f64>>,
    /// The verdict with each seed.
    pub verdicts: Vec<Verdict>,
}

/// A claim, with each seed.
#[derive(Clone, Debug, Serialize)]
pub struct ClaimSpread {
    /// Its id.
    pub id: String,
    /// Figure, table or section.
    pub place: String,
    /// The verdict with each seed.
    pub verdicts: Vec<Verdict>,
    /// Each value.
    pub values: Vec<ValueSpread>,
    /// How many pairs of seeds it passes with, without the idea.
    pub passes_by_chance: usize,
}

impl ClaimSpread {
    /// How many pairs of seeds there are.
    pub fn pairs(&self) -> usize {
        self.verdicts.len() * self.verdicts.len().saturating_sub(1)
    }

    /// All seeds have the same verdict.
    pub fn is_settled(&self) -> bool {
        self.verdicts.windows(2).all(|two| two[0] == two[1])
    }
}

impl ValueSpread {
    /// The smallest and the largest ratio; `None` where a seed has none.
    pub fn ends(&self) -> Option<(f64, f64)> {
        let ratios = self.ratios.iter().copied().collect::<Option<Vec<f64>>>()?;
        let least = ratios.iter().copied().reduce(f64::min)?;
        Some((least, ratios.iter().copied().fold(least, f64::max)))
    }
}

/// The claims that `seeds` answer, in the order of ids: the experiments of one seed, then those of
/// the next. An error where one seed lacks an experiment of the first.
pub fn spread(library: &Library, seeds: &[Vec<Findings<'_>>]) -> Result<Vec<ClaimSpread>> {
    let results = seeds.iter().map(|all| compare::claims(library, all));
    let results = results.collect::<Result<Vec<_>>>()?;
    let Some(first) = results.first() else { return Ok(Vec::new()) };
    first.iter().map(|claim| of_claim(library, seeds, &results, claim)).collect()
}

fn of_claim(
    library: &Library,
    seeds: &[Vec<Findings<'_>>],
    results: &[Vec<ClaimResult>],
    claim: &ClaimResult,
) -> Result<ClaimSpread> {
    let of_seed = |results: &Vec<ClaimResult>| {
        results.iter().find(|one| one.id == claim.id).cloned().ok_or_else(|| {
            Error::invalid(format!("one of the results has no runs for the claim {}", claim.id))
        })
    };
    let by_seed = results.iter().map(of_seed).collect::<Result<Vec<ClaimResult>>>()?;
    let value = |index: usize| {
        let of_seed = || by_seed.iter().map(|claim| &claim.values[index]);
        ValueSpread {
            name: claim.values[index].name.clone(),
            paper: claim.values[index].paper.clone(),
            ratios: of_seed().map(|value| value.ratio).collect(),
            verdicts: of_seed().map(|value| value.verdict).collect(),
        }
    };
    Ok(ClaimSpread {
        id: claim.id.clone(),
        place: claim.place.clone(),
        verdicts: by_seed.iter().map(|claim| claim.verdict).collect(),
        values: (0..claim.values.len()).map(value).collect(),
        passes_by_chance: by_chance(library, seeds, claim)?,
    })
}

/// The pairs of seeds that a claim passes with.
fn by_chance(library: &Library, seeds: &[Vec<Findings<'_>>], claim: &ClaimResult) -> Result<usize> {
    let stated = library.claim(&claim.id)?;
    let of_claim = |findings: &&Findings<'_>| findings.experiment.id == claim.experiment;
    let found = seeds.iter().filter_map(|all| all.iter().find(of_claim));
    let found: Vec<&Findings<'_>> = found.collect();
    let mut passes = 0;
    for (index, findings) in found.iter().enumerate() {
        let others = found.iter().enumerate().filter(|(other, _)| *other != index);
        for (_, stand_ins) in others {
            let verdict = compare::by_chance(library, findings, stand_ins, stated)?;
            passes += usize::from(verdict.passes());
        }
    }
    Ok(passes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::scale::Scale;
    use std::collections::BTreeMap;

    const FILES: [(&str, &str); 4] = [
        ("rules", include_str!("../data/rules.toml")),
        ("claims", "[[claim]]\nid = \"x/y/z\"\nratio = { \"old/new\" = 1.2 }\n"),
        (
            "x/paper",
            "title = \"X\"\n[defaults]\n[null]\nnew = \"old\"\n[scale.smoke]\nsizes = 1\n\
             data = 1\nvalues = 1\nvalue_min = 1\nrequests_min = 1\n[system.new]\n[system.old]\n",
        ),
        (
            "x/y",
            "figure = \"1\"\ntitle = \"T\"\nsystems = [\"new\", \"old\"]\n[[phase]]\nname = \"p\"\n\
             do = \"fillseq\"\n[[measure]]\nclaim = \"x/y/z\"\nvalue = \"old/new\"\n\
             is = \"[old p.wa] / [new p.wa]\"\n",
        ),
    ];

    fn library() -> Library {
        Library::of(FILES.map(|(name, text)| (name.to_string(), text.to_string()))).unwrap()
    }

    /// Write amplifications of `new` and `old` with one seed.
    fn findings(experiment: &Experiment, new: f64, old: f64) -> Vec<Findings<'_>> {
        let run = |wa| Ok(BTreeMap::from([("p.wa".to_string(), wa)]));
        let table = [("new", run(new)), ("old", run(old))];
        let table = table.map(|(name, run)| ((name.to_string(), None), run)).into();
        vec![Findings::new(experiment, Scale::default(), table).unwrap()]
    }

    fn of(library: &Library, seeds: &[(f64, f64)]) -> Result<Vec<ClaimSpread>> {
        let experiment = &library.experiments[0];
        let seeds: Vec<_> =
            seeds.iter().map(|(new, old)| findings(experiment, *new, *old)).collect();
        spread(library, &seeds)
    }

    #[test]
    fn seeds_that_disagree_are_told_with_the_ends_of_their_ratios() {
        let library = library();
        let claim = of(&library, &[(4.0, 4.8), (4.0, 4.4), (4.0, 4.8)]).unwrap().remove(0);
        assert!(!claim.is_settled());
        assert_eq!(claim.verdicts[0], Verdict::Holds);
        let (least, most) = claim.values[0].ends().unwrap();
        assert!((least - 0.5).abs() < 1e-9 && (most - 1.0).abs() < 1e-9, "{least} {most}");
        let claim = of(&library, &[(4.0, 4.8), (4.0, 4.8)]).unwrap().remove(0);
        assert!(claim.is_settled());
    }

    /// The paper's gain is 20 %, and two runs of the baseline differ by as much.
    #[test]
    fn a_gain_that_two_seeds_of_the_baseline_have_is_one_of_chance() {
        let library = library();
        let claim = of(&library, &[(4.0, 4.8), (3.3, 4.0)]).unwrap().remove(0);
        assert_eq!((claim.passes_by_chance, claim.pairs()), (1, 2));
        assert!(claim.is_settled());
        let claim = of(&library, &[(4.0, 4.8), (4.0, 4.9), (4.1, 4.8)]).unwrap().remove(0);
        assert_eq!((claim.passes_by_chance, claim.pairs()), (0, 6));
    }

    #[test]
    fn results_that_lack_an_experiment_are_refused() {
        let library = library();
        let seeds = [findings(&library.experiments[0], 4.0, 4.8), Vec::new()];
        let error = spread(&library, &seeds).unwrap_err().to_string();
        assert!(error.contains("x/y/z"), "{error}");
    }
}
