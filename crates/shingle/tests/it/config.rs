//! Configurations of databases: drawn from a seed, with very small limits.

use crate::clock::{Clock, Clocked};
use crate::events::Lawful;
use crate::guarded::Guarded;
use crate::model::{Model, Operator, SLOTS};
use base::env::Runtime;
use base::random::Random;
use media::FileStore;
use shingle::options::Expert;
use shingle::{Compression, Db, KeyspaceOptions, Options, PrefixRule, Preset, runtime};
use std::sync::Arc;

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct Config {
    pub scheme: &'static str,
    /// The value layout.
    pub values: &'static str,
    pub value_threshold: u64,
    pub preset: Preset,
    pub compression: Compression,
    pub filter_bits: u8,
    pub expert: Expert,
    /// Steps with this seed and odds; `None`: threads.
    pub stepped: Option<(u64, u64)>,
    /// Each opening but the first is under the next scheme and the next layout.
    pub switches: bool,
    /// The wall clock of the runtimes.
    pub clock: Clock,
    /// All changes are kept for feeds.
    pub keeps_changes: bool,
}

fn preset_of(scheme: &str) -> Preset {
    if scheme == "leveldb" { Preset::LevelDb } else { Preset::Modern }
}

/// The scheme and the value layout of the registries for this turn. Consecutive turns have the
/// schemes in turn, and as many turns as there are cells have each scheme with each layout.
pub fn cell_in_turn(turn: u64) -> (&'static str, &'static str) {
    let (schemes, layouts) = (tree::policy::registry(), values::registry());
    let (scheme, layout) = pair_in_turn(turn, schemes.len() as u64, layouts.len() as u64);
    (schemes[scheme as usize].name, layouts[layout as usize].name)
}

/// The pair of a number below `firsts` and one below `seconds` for this turn: both in turn. If the
/// counts have a common divisor, that repeats before it has had every pair; each repetition begins
/// with the next second number.
fn pair_in_turn(turn: u64, firsts: u64, seconds: u64) -> (u64, u64) {
    let mut multiples = (1..).map(|n| n * firsts);
    let round = multiples.find(|multiple| multiple % seconds == 0).expect("there is a common one");
    let shift = turn / round % (firsts * seconds / round);
    (turn % firsts, (turn + shift) % seconds)
}

/// The name after this one; the first after the last.
fn next(names: impl Iterator<Item = &'static str> + Clone, name: &str) -> &'static str {
    let mut after = names.clone().cycle().skip_while(|other| *other != name).skip(1);
    after.next().expect("a registry is not empty")
}

impl Config {
    /// A configuration with very small limits. Consecutive seeds have the schemes in turn.
    pub fn draw(seed: u64) -> Config {
        let mut random = Random::new(seed ^ 0xc0ff_ee00);
        let (scheme, values) = cell_in_turn(seed);
        let one =
            |random: &mut Random, from: &[u64]| from[random.below(from.len() as u64) as usize];
        let compression = match random.below(3) {
            0 => Compression::None,
            1 => Compression::Lz4,
            _ => Compression::Zstd(1),
        };
        // A seed stands for its history: the order of the draws is part of it.
        let mut expert = Expert::default();
        let (e, r) = (&mut expert, &mut random);
        e.scheme.table_bytes_max = Some(one(r, &[1024, 2048, 4096]));
        e.block_bytes = Some(one(r, &[64, 128, 512]) as u32);
        e.memtable_bytes = Some(one(r, &[2048, 4096, 8192]));
        e.scheme.level_bytes_base = Some(8192);
        e.scheme.fan_out = Some(one(r, &[2, 3, 4]) as f64);
        e.scheme.level0_runs_trigger = Some(one(r, &[1, 2, 4]) as usize);
        e.scheme.levels = Some(3 + r.below(5) as u8);
        e.step_bytes = Some(one(r, &[256, 1024, 1 << 20]));
        e.readahead_bytes = Some(one(r, &[0, 1024]) as u32);
        e.scheme.stack_max = Some(one(r, &[2, 3, 5]) as usize);
        e.scheme.links_max = [None, Some(Some(1)), Some(Some(3))][r.below(3) as usize];
        e.values.segment_bytes = Some(one(r, &[512, 4096]));
        e.values.log_segment_bytes = Some(one(r, &[128, 1024]));
        e.values.reserved_ratio = Some(one(r, &[0, 1, 3]) as f64 / 10.0);
        e.values.hotness = Some(r.one_in(2));
        Config {
            scheme,
            values,
            value_threshold: one(&mut random, &[1, 20, 100]),
            preset: preset_of(scheme),
            compression,
            filter_bits: one(&mut random, &[0, 10]) as u8,
            expert,
            stepped: Some((random.next_u64(), one(&mut random, &[1, 2, 5]))),
            switches: false,
            clock: Clock::default(),
            keeps_changes: Random::new(seed ^ 0xfeed).one_in(3),
        }
    }

    /// The same, with a capacity of value segments in one of two, which some histories reach.
    pub fn sometimes_bounded(mut self, seed: u64) -> Config {
        let mut random = Random::new(seed ^ 0xcafe);
        let segment_bytes = self.expert.values.segment_bytes.unwrap_or(0);
        let bytes = [24 << 10, 48 << 10, 200 << 10][random.below(3) as usize];
        let capacity_bytes = bytes.max(16 * segment_bytes);
        self.expert.values.capacity_bytes = random.one_in(2).then_some(Some(capacity_bytes));
        self
    }

    /// The same, with a clock of its own that shows the time of `model`.
    pub fn at(&self, model: &Model) -> Config {
        Config { clock: Clock::at(model.now_ms()), ..self.clone() }
    }

    /// Goes on to the next scheme and the next layout.
    pub fn switch(&mut self) {
        self.scheme = next(tree::policy::registry().iter().map(|s| s.name), self.scheme);
        self.preset = preset_of(self.scheme);
        self.values = next(values::registry().iter().map(|l| l.name), self.values);
    }

    pub fn options(&self) -> Options {
        let expert = self.expert.clone();
        Options::new()
            .preset(self.preset)
            .scheme(self.scheme)
            .values(self.values)
            .value_threshold_bytes(self.value_threshold)
            .compression(self.compression)
            .filter_bits_per_key(self.filter_bits)
            .write_buffer_bytes(16 << 10)
            .cache_bytes(64 << 10)
            .changes_retention_bytes(if self.keeps_changes { 1 << 30 } else { 0 })
            .expert(|e| *e = expert)
    }

    pub fn runtime(&self) -> Arc<dyn Runtime> {
        let clock = &self.clock;
        match self.stepped {
            Some((seed, odds)) => {
                Arc::new(Clocked::new(clock, Arc::new(runtime::Stepped::new(seed, odds))))
            }
            None => Arc::new(Clocked::new(clock, Arc::new(runtime::Threads::new()))),
        }
    }

    pub fn levels(&self) -> u8 {
        self.expert.scheme.levels.unwrap_or(7)
    }

    pub fn open(&self, store: Arc<dyn FileStore>) -> shingle::Result<Db> {
        let options = self.options().event_listener(Arc::new(Lawful::default()));
        options.open_in(Arc::new(Guarded::new(store)), self.runtime())
    }
}

/// The options of a slot's keyspace.
pub fn keyspace_options(slot: usize) -> KeyspaceOptions {
    KeyspaceOptions {
        without_wal: SLOTS[slot].without_wal,
        ingests_below: SLOTS[slot].ingests_below,
        merge_operator: match SLOTS[slot].operator {
            Operator::None => None,
            Operator::Add => Some("add-u64".into()),
            Operator::Append => Some("append".into()),
        },
        prefix: if SLOTS[slot].prefix { PrefixRule::Fixed(3) } else { PrefixRule::None },
        ..KeyspaceOptions::default()
    }
}

#[test]
fn consecutive_turns_as_many_as_there_are_cells_reach_every_cell() {
    for (firsts, seconds) in (1..=12).flat_map(|n| (1..=12).map(move |m| (n, m))) {
        let cells = firsts * seconds;
        for start in 0..=cells {
            let turns = start..start + cells;
            let mut pairs: Vec<_> = turns.map(|turn| pair_in_turn(turn, firsts, seconds)).collect();
            assert!(pairs.windows(2).all(|two| two[1].0 == (two[0].0 + 1) % firsts));
            pairs.sort();
            let all = (0..firsts).flat_map(|n| (0..seconds).map(move |m| (n, m)));
            assert!(pairs.into_iter().eq(all), "{firsts} x {seconds} from turn {start}");
        }
    }
}
