//! `lab artifact`: results with all that others need to check and cite them.
//!
//! A folder that stands alone: what `lab compare` writes, the data files that the results follow
//! from, README.md with the commands that make the same again, references.bib with the papers, and
//! CITATION.cff of Shingle.

use super::save;
use crate::failure::{Failure, Outcome};
use lab::{Findings, Library};
use std::path::Path;

/// How to cite Shingle. The repository has it as CITATION.cff too.
const CITATION: &str = concat!(
    "\
cff-version: 1.2.0
message: If you use Shingle or its lab in your work, please cite it as below.
title: \"Shingle: an embedded key-value store for SSDs, hard disks and shingled disks\"
type: software
authors:
  - name: The Shingle maintainers
version: ",
    env!("CARGO_PKG_VERSION"),
    "
license:
  - Apache-2.0
  - MIT
keywords:
  - key-value store
  - LSM-tree
  - write amplification
  - key-value separation
  - shingled magnetic recording
"
);

/// Writes into `out` what stands beside the results.
pub fn write(library: &Library, findings: &[Findings<'_>], scale: &str, out: &Path) -> Outcome {
    let ids: Vec<&str> = findings.iter().map(|found| found.experiment.id.as_str()).collect();
    if ids.is_empty() {
        let help = "run experiments first, with `shingle lab run`";
        return Err(Failure::said("the directories have no metrics", help));
    }
    let data = out.join("data");
    for (name, text) in &library.files {
        save::create(data.join(name).parent().unwrap_or(&data))?;
        save::save(&data, &format!("{name}.toml"), text)?;
    }
    save::save(out, "README.md", &readme(&ids, scale))?;
    save::save(out, "references.bib", &references(library, findings))?;
    save::save(out, "CITATION.cff", CITATION)
}

fn readme(ids: &[&str], scale: &str) -> String {
    let (version, ids) = (env!("CARGO_PKG_VERSION"), ids.join(" "));
    format!(
        "# Results of Shingle's lab at `{scale}`

Shingle {version} ran these experiments on models of drives, in virtual time:

    shingle lab run {ids} --data data --scale {scale} --out again

The same program gives the same figures on every machine, to the last digit: what is left to chance
follows from the `--seed` of the command, 1 by default, where the data files set no `seed`. This
compares the figures that are here with the papers again, without a run:

    shingle lab compare . --data data --scale {scale} --out compared

| file | what it has |
|---|---|
| `report.html` | all figures and verdicts, on one page |
| `claims.csv`, `claims.json` | each value of each claim, with its verdict and reason |
| `metrics.csv` | all that was measured |
| `papers/` | a page for each paper, its values as CSV and its figures as SVG |
| `data/` | claims, rules of verdicts, set-ups and experiments |
| `references.bib` | the papers |
| `CITATION.cff` | how to cite Shingle |
"
    )
}

/// The papers that the experiments are of.
fn references(library: &Library, findings: &[Findings<'_>]) -> String {
    let of = |paper: &str| {
        findings.iter().any(|found| found.experiment.id.split('/').next() == Some(paper))
    };
    let papers = library.papers.values().filter(|paper| of(&paper.id));
    papers.map(|paper| paper.bibtex.as_str()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_repository_says_how_to_cite_it() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../CITATION.cff");
        assert_eq!(std::fs::read_to_string(path).unwrap(), super::CITATION);
    }
}
