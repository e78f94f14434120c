//! Workloads for the simulated store, and what they cost.

use crate::policy::{Descriptor, Limits, PROBES_PER_SEEK};
use crate::simulate::{Entry, Store};
use crate::version::LEVEL0_NODE;
use base::random::Random;
use base::{Error, Result};
use std::fmt;

/// How keys are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Keys {
    /// Each key as often as any other.
    Uniform,
    /// Ascending.
    Sequential,
    /// By Zipf's law with this exponent below 1.0, the popular keys scattered over all keys.
    Zipf(f64),
}

impl Keys {
    /// Skewed as YCSB's keys are.
    pub const ZIPF: Keys = Keys::Zipf(0.99);
}

/// Writes of equal size.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// How keys are drawn.
    pub keys: Keys,
    /// Writes.
    pub writes: u64,
    /// Different keys that there can be.
    pub keys_count: u64,
    /// Bytes of a write, key and value.
    pub entry_bytes: u64,
    /// Bytes of a memtable.
    pub memtable_bytes: u64,
    /// One simulated entry stands for this many.
    pub scale: u64,
    /// Moves that are done for each flush; none: all that are due.
    pub moves_per_flush: Option<usize>,
    /// Of all operations, how many are reads that the policy is told of.
    pub reads_share: f64,
}

impl Workload {
    /// The shape of the papers about shingled disks: 1 million writes of 4 KiB over as many keys,
    /// a 25th of theirs, with memtables of 4 MiB.
    pub const SHINGLED: Workload = Workload {
        keys: Keys::Uniform,
        writes: 1_000_000,
        keys_count: 1_000_000,
        entry_bytes: 4112,
        memtable_bytes: 4 << 20,
        scale: 16,
        moves_per_flush: None,
        reads_share: 0.0,
    };
}

/// What a workload cost.
#[derive(Clone, Debug)]
pub struct Report {
    /// The scheme.
    pub name: &'static str,
    /// Bytes that the user wrote.
    pub user_bytes: u64,
    /// Bytes that flushes wrote.
    pub flushed_bytes: u64,
    /// Bytes that moves wrote to each level.
    pub written_bytes: Vec<u64>,
    /// Of these, what divisions wrote.
    pub divided_bytes: u64,
    /// Bytes in each level at the end.
    pub level_bytes: Vec<u64>,
    /// Nodes of each level at the end.
    pub level_nodes: Vec<usize>,
    /// Moves done.
    pub moves: u64,
    /// Maximum number of runs that level 0 had.
    pub level0_runs_max: usize,
    /// Maximum number of slices that a node below level 0 had in a settled tree.
    pub stack_max: usize,
    /// The largest file.
    pub file_bytes_max: u64,
    /// Bytes of files that no slice shows, at the end.
    pub dead_bytes: u64,
    /// Merges whose output was a set, and the tables of those sets.
    pub sets: (u64, u64),
    /// The largest ratio of the bytes of all files to those of the different keys so far.
    pub space_amplification_max: f64,
    /// The same ratio at the end.
    pub space_amplification: f64,
    /// Slices that a read of a key asks at the end, on average, filters aside.
    pub slices_per_get: f64,
    /// The same after a phase of reads alone.
    pub slices_per_get_read_only: f64,
}

impl Report {
    /// Bytes written for a byte of the user, without the log.
    pub fn write_amplification(&self) -> f64 {
        let written = self.flushed_bytes + self.written_bytes.iter().sum::<u64>();
        written as f64 / self.user_bytes.max(1) as f64
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |bytes: u64| bytes as f64 / self.user_bytes.max(1) as f64;
        write!(
            f,
            "{:10} WA {:5.2} = flush {:.2}",
            self.name,
            self.write_amplification(),
            of(self.flushed_bytes)
        )?;
        for (level, &bytes) in self.written_bytes.iter().enumerate() {
            if bytes > 0 {
                write!(f, " + L{level} {:.2}", of(bytes))?;
            }
        }
        write!(
            f,
            "; moves {}, level 0 at most {} runs, stacks {}, space at most {:.2}, at the end \
             {:.2}, slices for a get {:.2}, after reads alone {:.2}",
            self.moves,
            self.level0_runs_max,
            self.stack_max,
            self.space_amplification_max,
            self.space_amplification,
            self.slices_per_get,
            self.slices_per_get_read_only,
        )?;
        if self.sets.0 > 0 {
            write!(f, ", {:.2} tables in a set", self.sets.1 as f64 / self.sets.0 as f64)?;
        }
        write!(f, ", files at most {} MiB; levels MiB", self.file_bytes_max >> 20)?;
        for bytes in &self.level_bytes {
            write!(f, " {}", bytes >> 20)?;
        }
        Ok(())
    }
}

impl Workload {
    /// Runs the workload under a scheme.
    pub fn run(&self, scheme: &Descriptor) -> Result<Report> {
        self.run_under(scheme, (scheme.limits)(self.memtable_bytes))
    }

    /// Runs the workload under a scheme with other limits than its own.
    pub fn run_under(&self, scheme: &Descriptor, limits: Limits) -> Result<Report> {
        self.run_watched(scheme, limits, &mut |_| {})
    }

    /// The same, and calls `watch` after each flush with the writes that it took.
    pub fn run_watched(
        &self,
        scheme: &Descriptor,
        limits: Limits,
        watch: &mut dyn FnMut(u64),
    ) -> Result<Report> {
        let entry_bytes = self.entry_bytes * self.scale;
        let mut store = Store::new((scheme.make)(), limits, entry_bytes);
        store.observed.reads_share = Some(self.reads_share);
        let writes = self.writes / self.scale;
        let keys_count = (self.keys_count / self.scale).max(1);
        let memtable_entries = (self.memtable_bytes / entry_bytes).max(1);
        let mut random = Random::new(1);
        let mut keys = vec![false; keys_count as usize];
        let mut distinct = 0u64;
        let mut space_max = 0.0f64;
        let mut sequence = 0;
        while sequence < writes {
            let count = memtable_entries.min(writes - sequence);
            let mut memtable = Vec::with_capacity(count as usize);
            for _ in 0..count {
                sequence += 1;
                let key = self.keys.draw(&mut random, sequence, keys_count);
                distinct += u64::from(!std::mem::replace(&mut keys[key as usize], true));
                memtable.push(Entry { key: spread(key, keys_count), sequence, is_delete: false });
            }
            memtable.sort_by_key(|entry| (entry.key, std::cmp::Reverse(entry.sequence)));
            memtable.dedup_by_key(|entry| entry.key);
            store.flush(&memtable)?;
            reads_of_level0(&mut store, self.reads_share);
            self.settle(&mut store)?;
            let below = store.version.levels.iter().skip(1).flat_map(|level| level.nodes.iter());
            store.stack_max = below.map(|node| node.slices.len()).fold(store.stack_max, usize::max);
            let live = (distinct * entry_bytes).max(1);
            space_max = space_max.max(store.version.file_bytes() as f64 / live as f64);
            watch(count * self.scale);
        }
        let space = store.version.file_bytes() as f64 / (distinct * entry_bytes).max(1) as f64;
        let mut report = self.report(scheme, &store, (space_max, space));
        store.observed.reads_share = Some(1.0);
        reads_of_level0(&mut store, 1.0);
        self.settle(&mut store)?;
        report.slices_per_get_read_only = store.slices_for_a_key();
        Ok(report)
    }

    fn report(
        &self,
        scheme: &Descriptor,
        store: &Store,
        (space_max, space_amplification): (f64, f64),
    ) -> Report {
        let entry_bytes = self.entry_bytes * self.scale;
        Report {
            name: scheme.name,
            user_bytes: self.writes / self.scale * entry_bytes,
            flushed_bytes: store.flushed_bytes,
            written_bytes: store.written_bytes.clone(),
            divided_bytes: store.divided_bytes,
            level_bytes: store.version.levels.iter().map(|level| level.bytes()).collect(),
            level_nodes: store.version.levels.iter().map(|level| level.nodes.len()).collect(),
            moves: store.moves,
            level0_runs_max: store.level0_runs_max,
            stack_max: store.stack_max,
            file_bytes_max: store.file_bytes_max,
            dead_bytes: store.version.file_bytes() - store.version.bytes(),
            sets: store.sets,
            space_amplification_max: space_max,
            space_amplification,
            slices_per_get: store.slices_for_a_key(),
            slices_per_get_read_only: 0.0,
        }
    }

    fn settle(&self, store: &mut Store) -> Result<()> {
        for _ in 0..self.moves_per_flush.unwrap_or(100_000) {
            if !store.step()? {
                return Ok(());
            }
        }
        match self.moves_per_flush {
            Some(_) => Ok(()),
            None => Err(Error::invalid("the policy does not settle: it always has another move")),
        }
    }
}

/// A million operations, of which this share reads, pass the runs of level 0.
fn reads_of_level0(store: &mut Store, reads_share: f64) {
    let passed = store.version.level0().len().saturating_sub(1) as f64;
    let seeks = 1e6 * reads_share * passed / PROBES_PER_SEEK as f64;
    store.observed.seeks.insert((0, LEVEL0_NODE), seeks as u64);
}

impl Keys {
    /// The key, one of `count`, of the write with this number, the first being 1.
    pub fn draw(self, random: &mut Random, sequence: u64, count: u64) -> u32 {
        let key = match self {
            Keys::Uniform => random.below(count),
            Keys::Sequential => (sequence - 1).min(count - 1),
            Keys::Zipf(exponent) => {
                // The rank by the inverse of the continuous distribution, then scattered.
                let n = count as f64;
                let power = 1.0 - exponent;
                let rank = ((n.powf(power) - 1.0) * random.unit() + 1.0).powf(1.0 / power);
                Random::new(rank as u64).below(count)
            }
        };
        key as u32
    }
}

/// Spreads the keys over all numbers, in order, so that sizes guessed from keys are right.
pub fn spread(key: u32, count: u64) -> u32 {
    ((u64::from(key) << 32) / count.max(1)) as u32
}
