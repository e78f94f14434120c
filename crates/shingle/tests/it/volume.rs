//! How much runs: the seeds, and what each cell of the registries must have had.

use crate::config::Config;
use std::collections::BTreeMap;

/// The number of cells of a scheme and a value layout in the registries.
fn cells_count() -> u64 {
    (tree::policy::registry().len() * values::registry().len()) as u64
}

/// What was done in each cell of a scheme and a value layout.
#[derive(Default)]
pub struct ByCell(BTreeMap<(&'static str, &'static str), u64>);

impl ByCell {
    pub fn add(&mut self, config: &Config, count: u64) {
        *self.0.entry((config.scheme, config.values)).or_default() += count;
    }

    /// Prints the counts. Each cell must have at least `floor`, or less in proportion when only a
    /// part of the volume runs. Not checked when one seed runs.
    pub fn finish(self, what: &str, floor: u64) {
        println!("{what}: {:?}", self.0);
        let floor = scaled(floor).min(floor);
        if std::env::var("SHINGLE_TEST_SEED").is_ok() {
            return;
        }
        assert_eq!(self.0.len() as u64, cells_count());
        for (cell, count) in self.0 {
            assert!(count >= floor, "{count} {what} under {cell:?}, not {floor}");
        }
    }
}

/// What was done under each scheme of the registry on each store.
#[derive(Default)]
pub struct Cells(BTreeMap<(&'static str, &'static str), u64>);

impl Cells {
    pub fn add(&mut self, scheme: &'static str, store: &'static str, count: u64) {
        *self.0.entry((scheme, store)).or_default() += count;
    }

    /// Prints the sums of each store. Each cell must have at least `floor`, unless one seed runs.
    pub fn finish(
        self,
        what: &str,
        stores: impl Iterator<Item = &'static str> + Clone,
        floor: u64,
    ) {
        for store in stores.clone() {
            let of = self.0.iter().filter(|((_, at), _)| *at == store);
            let counts: Vec<u64> = of.map(|(_, count)| *count).collect();
            println!("{what} on {store}, by scheme: {counts:?}");
        }
        if std::env::var("SHINGLE_TEST_SEED").is_ok() {
            return;
        }
        for scheme in tree::policy::registry() {
            for store in stores.clone() {
                let count = self.0.get(&(scheme.name, store)).copied().unwrap_or(0);
                assert!(count >= floor, "{count} {what} under {} on {store}", scheme.name);
            }
        }
    }
}

/// Multiple of the default volume to run: `SHINGLE_TEST_SCALE`.
pub fn scaled(count: u64) -> u64 {
    let scale = std::env::var("SHINGLE_TEST_SCALE").ok().and_then(|text| text.parse().ok());
    (count as f64 * scale.unwrap_or(1.0f64)).ceil() as u64
}

/// The seeds to run: the first `count`, or the one in `SHINGLE_TEST_SEED`.
pub fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("SHINGLE_TEST_SEED").ok().and_then(|text| text.parse().ok()) {
        Some(seed) => vec![seed],
        None => (1..=scaled(count)).collect(),
    }
}

/// `SHINGLE_TEST_SEED` names one seed, and it is another one.
pub fn is_left_out(seed: u64) -> bool {
    let only = std::env::var("SHINGLE_TEST_SEED").ok().and_then(|text| text.parse().ok());
    only.is_some_and(|only: u64| only != seed)
}

/// The seeds to run: as [`seeds`], or more so that [`Config::draw`] gives each scheme once.
pub fn seeds_for_schemes(count: u64) -> Vec<u64> {
    seeds_and_at_least(count, tree::policy::registry().len() as u64)
}

/// The seeds to run: as [`seeds`], or more so that [`Config::draw`] gives each scheme with each
/// value layout once.
pub fn seeds_for_cells(count: u64) -> Vec<u64> {
    seeds_and_at_least(count, cells_count())
}

fn seeds_and_at_least(count: u64, count_min: u64) -> Vec<u64> {
    match seeds(count) {
        one if std::env::var("SHINGLE_TEST_SEED").is_ok() => one,
        some => (1..=(some.len() as u64).max(count_min)).collect(),
    }
}
