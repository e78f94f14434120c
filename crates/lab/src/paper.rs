//! A paper: its systems, the settings that all of its runs share, and its scales.

use crate::null::Null;
use crate::scale::Scale;
use crate::settings::{self, Map};
use base::{Error, Result};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A system under test: settings with a word about it.
#[derive(Clone, Debug)]
pub struct System {
    /// What it is, and what it stands for.
    pub about: String,
    /// Its settings.
    pub settings: Map,
}

/// A paper.
#[derive(Clone, Debug)]
pub struct Paper {
    /// Its short name, the first part of ids.
    pub id: String,
    /// Its title.
    pub title: String,
    /// How to cite it; empty where nothing was published.
    pub bibtex: String,
    /// Settings of all runs.
    pub defaults: Map,
    /// By name.
    pub systems: BTreeMap<String, System>,
    /// By name.
    pub scales: BTreeMap<String, Scale>,
    /// What stands in for the proposed systems where the idea is taken away.
    pub null: Null,
}

/// A TOML table as settings.
pub fn map(table: &toml::Table) -> Map {
    table.iter().map(|(name, value)| (name.clone(), settings::text(value))).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: String,
    #[serde(default)]
    bibtex: String,
    defaults: toml::Table,
    scale: BTreeMap<String, Scale>,
    system: BTreeMap<String, toml::Table>,
    #[serde(default)]
    null: Null,
}

impl Paper {
    /// The paper that `text` describes.
    pub fn read(id: &str, text: &str) -> Result<Paper> {
        let file: File =
            toml::from_str(text).map_err(|error| Error::invalid(format!("paper {id}: {error}")))?;
        let systems = file.system.into_iter().map(|(name, mut table)| {
            let about = table.remove("about").map(|about| settings::text(&about));
            (name, System { about: about.unwrap_or_default(), settings: map(&table) })
        });
        let scales = file.scale.into_iter().map(|(name, scale)| {
            let scale = Scale { name: name.clone(), ..scale };
            (name, scale)
        });
        Ok(Paper {
            id: id.to_string(),
            title: file.title,
            bibtex: file.bibtex,
            defaults: map(&file.defaults),
            systems: systems.collect(),
            scales: scales.collect(),
            null: file.null,
        })
    }

    /// The scale of this name; an error that lists the names otherwise.
    pub fn scale(&self, name: &str) -> Result<&Scale> {
        self.scales.get(name).ok_or_else(|| {
            let names: Vec<&str> = self.scales.keys().map(String::as_str).collect();
            Error::invalid(format!("no scale is called `{name}`; there are {}", names.join(", ")))
        })
    }
}
