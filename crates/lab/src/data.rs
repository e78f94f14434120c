//! The data files, built in.

use crate::claim::{self, Claim};
use crate::experiment::Experiment;
use crate::paper::Paper;
use crate::rules::Rules;
use base::{Error, Result};
use std::collections::BTreeMap;

/// Files of the folder `data`: the name, and the content.
type Files = &'static [(&'static str, &'static str)];

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../data/", $name, ".toml")))),*]
    };
}

/// `paper/paper` for a paper, `paper/figure` for an experiment.
pub(crate) const FILES: Files = files![
    "lwc/paper",
    "lwc/fig02",
    "lwc/fig04",
    "lwc/fig09",
    "lwc/fig11a",
    "lwc/fig11b",
    "lwc/fig12",
    "lwc/fig13",
    "lwc/fig14",
    "lwc/fig15",
    "lwc/fig16",
    "lwc/fig17",
    "lwc/fig18",
    "lwc/fig19",
    "lwc/fig20",
    "lwc/fig21",
    "lwc/fig22",
    "sealdb/paper",
    "sealdb/fig03",
    "sealdb/fig08",
    "sealdb/fig09",
    "sealdb/fig10",
    "sealdb/fig11",
    "sealdb/fig12",
    "sealdb/fig13",
    "sealdb/fig14",
    "sealdb/set-size",
    "hashkv/paper",
    "hashkv/exp01",
    "hashkv/exp02",
    "hashkv/exp03",
    "hashkv/exp04",
    "hashkv/exp05",
    "hashkv/exp06",
    "hashkv/exp07",
    "hashkv/exp08",
    "hashkv/exp09",
    "hashkv/fig02",
    "ldc/paper",
    "ldc/fig01",
    "ldc/fig07",
    "ldc/fig08",
    "ldc/fig09",
    "ldc/fig10a",
    "ldc/fig10b",
    "ldc/fig10c",
    "ldc/fig11",
    "ldc/fig12-fan-out",
    "ldc/fig12-threshold",
    "ldc/fig13",
    "ldc/fig14",
    "ldc/fig15",
    "ldc/table01",
    "cascaded/paper",
    "cascaded/fig03",
    "cascaded/fig04",
    "cascaded/fig05",
    "cascaded/fig06",
    "cascaded/fig07",
    "cascaded/fig08",
    "cascaded/fig09",
    "cascaded/fig10",
    "cascaded/fig11",
    "cascaded/fig12",
    "cascaded/fig13",
    "beyond/paper",
    "beyond/matrix",
];

/// Claims, papers, experiments and rules.
pub struct Library {
    /// What the papers say, by id.
    pub claims: BTreeMap<String, Claim>,
    /// By their short names.
    pub papers: BTreeMap<String, Paper>,
    /// In the order of papers and figures.
    pub experiments: Vec<Experiment>,
    /// When a value holds.
    pub rules: Rules,
    /// The text of each file, by its name without `.toml`.
    pub files: Vec<(String, String)>,
}

impl Library {
    /// What is built in.
    pub fn open() -> Result<Library> {
        let own = [
            ("claims", include_str!("../data/claims.toml")),
            ("rules", include_str!("../data/rules.toml")),
        ];
        let all = own.iter().chain(FILES).map(|(name, text)| (name.to_string(), text.to_string()));
        Library::of(all)
    }

    /// What these files have, by name without `.toml`: `claims`, `rules`, `paper/paper` for a paper
    /// and `paper/figure` for an experiment.
    pub fn of(files: impl IntoIterator<Item = (String, String)>) -> Result<Library> {
        let mut library = Library {
            claims: BTreeMap::new(),
            papers: BTreeMap::new(),
            experiments: Vec::new(),
            rules: Rules::default(),
            files: Vec::new(),
        };
        for (name, text) in files {
            match (name.as_str(), name.split_once('/')) {
                ("claims", _) => library.claims = claim::read(&text)?,
                ("rules", _) => library.rules = Rules::read(&text)?,
                (_, Some((paper, "paper"))) => {
                    library.papers.insert(paper.to_string(), Paper::read(paper, &text)?);
                }
                _ => library.experiments.push(Experiment::read(&name, &text)?),
            }
            library.files.push((name, text));
        }
        library.check()?;
        Ok(library)
    }

    /// A claim that an experiment answers in part is found before hours of runs, not after them.
    fn check(&self) -> Result<()> {
        for experiment in &self.experiments {
            for id in experiment.claims() {
                for (value, ..) in &self.claim(id)?.values {
                    experiment.measure(id, value)?;
                }
            }
        }
        Ok(())
    }

    /// The claim of this id.
    pub fn claim(&self, id: &str) -> Result<&Claim> {
        let missing = || Error::invalid(format!("there is no claim {id}"));
        self.claims.get(id).ok_or_else(missing)
    }

    /// The paper of an experiment.
    pub fn paper(&self, experiment: &Experiment) -> Result<&Paper> {
        let id = experiment.id.split('/').next().unwrap_or_default();
        let missing = || Error::invalid(format!("there is no paper {id}"));
        self.papers.get(id).ok_or_else(missing)
    }

    /// The experiments that `ids` ask for: `all`, a paper, an experiment, or a claim.
    pub fn select(&self, ids: &[String]) -> Result<Vec<&Experiment>> {
        let is_wanted = |experiment: &Experiment, id: &str| {
            id == "all"
                || experiment.id == id
                || experiment.id.split('/').next() == Some(id)
                || experiment.claims().contains(&id)
        };
        for id in ids {
            if !self.experiments.iter().any(|experiment| is_wanted(experiment, id)) {
                return Err(Error::invalid(format!(
                    "`{id}` is no experiment, paper or claim; `shingle lab list` has them"
                )));
            }
        }
        let wanted = |e: &&Experiment| ids.iter().any(|id| is_wanted(e, id));
        Ok(self.experiments.iter().filter(wanted).collect())
    }
}
