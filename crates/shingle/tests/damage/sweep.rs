//! Damage of every byte of every file.

use crate::build::{
    History, Setup, Writer, database, database_under, open_under, options, separating_setups,
    setups,
};
use crate::image::Image;
use crate::verdict::{Verdict, judge};
use base::random::Random;
use media::{FileKind, FileName};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use table::format::HEADER_BYTES;

/// Mutations of single bytes at the usual volume, over all setups and files.
const BYTE_MUTATIONS: usize = 18_000;
/// Lengths tried per file at the usual volume, over all setups.
const CUTS: usize = 160;
/// Minimum number of mutations of a setup's database that must be detected, at the usual volume.
const DETECTED_MIN: usize = 100;
/// One mutation in this many is opened for writing too, which changes and removes files.
const WRITABLE_ONE_IN: usize = 16;

/// What is done to a file.
#[derive(Clone, Debug)]
enum Mutation {
    FlipBit(usize, u32),
    Set(usize, u8),
    Cut(usize),
    Extend(Vec<u8>),
    Remove,
    Replace(&'static str, Vec<u8>),
}

impl Mutation {
    fn name(&self) -> &'static str {
        match self {
            Mutation::FlipBit(..) | Mutation::Set(..) => "byte",
            Mutation::Cut(_) => "cut",
            Mutation::Extend(_) => "extended",
            Mutation::Remove => "removed",
            Mutation::Replace(how, _) => how,
        }
    }

    /// `None`: the file would stay as it is.
    fn apply(&self, image: &Image, name: FileName) -> Option<Image> {
        let mut bytes = image.files[&name].to_vec();
        match self {
            Mutation::FlipBit(at, bit) => bytes[*at] ^= 1 << bit,
            Mutation::Set(at, byte) => bytes[*at] = *byte,
            Mutation::Cut(length) => bytes.truncate(*length),
            Mutation::Extend(garbage) => bytes.extend(garbage),
            Mutation::Remove => return Some(image.without(name)),
            Mutation::Replace(_, other) => bytes.clone_from(other),
        }
        (bytes != *image.files[&name]).then(|| image.with(name, bytes))
    }
}

/// Counts of verdicts by kind of file, and what went wrong.
#[derive(Default)]
pub struct Tally {
    counts: BTreeMap<(String, Verdict), usize>,
    failures: Vec<String>,
}

impl Tally {
    pub fn note(&mut self, row: &str, what: String, verdict: Result<Verdict, String>) {
        match verdict {
            Ok(verdict) => *self.counts.entry((row.into(), verdict)).or_default() += 1,
            Err(failure) => self.failures.push(format!("{row}: {what}: {failure}")),
        }
    }

    /// Adds the counts of another tally.
    pub fn add(&mut self, other: Tally) {
        for (key, count) in other.counts {
            *self.counts.entry(key).or_default() += count;
        }
        self.failures.extend(other.failures);
    }

    /// The number of mutations with this verdict.
    fn total(&self, verdict: Verdict) -> usize {
        let counts = self.counts.iter().filter(|((_, v), _)| *v == verdict);
        counts.map(|(_, count)| count).sum()
    }

    /// The number of mutations of a row with this verdict.
    pub fn count(&self, row: &str, verdict: Verdict) -> usize {
        self.counts.get(&(row.into(), verdict)).copied().unwrap_or(0)
    }

    /// Prints the table; fails when anything was wrong.
    pub fn finish(self) {
        let rows: BTreeSet<&String> = self.counts.keys().map(|(row, _)| row).collect();
        println!("{:<28} {:>9} {:>9} {:>9}", "", "detected", "harmless", "torn tail");
        for row in rows {
            let count = |verdict| self.count(row, verdict);
            let (detected, harmless) = (count(Verdict::Detected), count(Verdict::Harmless));
            let torn = count(Verdict::TornTail);
            println!("{row:<28} {detected:>9} {harmless:>9} {torn:>9}");
        }
        let shown: Vec<&String> = self.failures.iter().take(20).collect();
        assert!(shown.is_empty(), "{} failures, the first: {shown:#?}", self.failures.len());
    }
}

/// Runs `work` with a panic as a failure.
pub fn guarded(work: impl FnOnce() -> Result<Verdict, String>) -> Result<Verdict, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err("panic".into()))
}

fn kind_name(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Table => "table",
        FileKind::Wal => "wal",
        FileKind::Manifest => "manifest",
        FileKind::Value => "value",
    }
}

/// The live runs of a database, by table, and the bytes of segments that the manifest vouches for.
fn live_runs(setup: Setup, image: &Image) -> BTreeMap<FileName, Vec<Range<u64>>> {
    let db = open_under(setup, image.in_memory(), true).unwrap();
    let mut runs: BTreeMap<FileName, Vec<Range<u64>>> = BTreeMap::new();
    for name in db.keyspaces() {
        let version = db.keyspace(&name).unwrap().tree_for_test().unwrap();
        for run in version.runs() {
            let of = runs.entry(FileName::table(run.file.id)).or_default();
            of.push(run.offset..run.offset + run.bytes);
        }
        for segment in version.segments.iter() {
            let of = runs.entry(FileName::value(segment.file.id)).or_default();
            of.push(0..segment.bytes);
        }
    }
    runs
}

/// The database under test.
struct Subject {
    setup: Setup,
    image: Image,
    history: History,
    /// Files without which it does not open.
    needed: BTreeSet<FileName>,
    /// The live runs of table files, and the records of segments.
    runs: BTreeMap<FileName, Vec<Range<u64>>>,
}

impl Subject {
    fn new(setup: Setup, seed: u64, fill: fn(&mut Writer)) -> Subject {
        let (image, history) = database_under(setup, seed, fill);
        let is_needed =
            |name: &FileName| open_under(setup, image.without(*name).in_memory(), true).is_err();
        let needed = image.files.keys().copied().filter(is_needed).collect();
        let runs = live_runs(setup, &image);
        Subject { setup, image, history, needed, runs }
    }

    /// Opens one mutation and judges it.
    fn judge(
        &self,
        name: FileName,
        mutation: &Mutation,
        image: &Image,
        read_only: bool,
    ) -> Result<Verdict, String> {
        // A log that lost its end has lost the proof of its end.
        let first = match mutation {
            Mutation::FlipBit(..) | Mutation::Set(..) => self.history.proven,
            _ => self.history.flushed,
        };
        let open = || open_under(self.setup, image.in_memory(), read_only);
        let verdict = guarded(|| judge(open(), &self.history, first))?;
        let is_extended = matches!(mutation, Mutation::Extend(_));
        let may_pass = match (name.kind, verdict) {
            (_, Verdict::Detected) => true,
            (FileKind::Wal, _) => true,
            // The logs may give the last edit again.
            (FileKind::Manifest, verdict) => verdict == Verdict::Harmless,
            // Values that a log names, and that the manifest does not vouch for yet.
            (FileKind::Value, Verdict::TornTail) => {
                let is_byte = matches!(mutation, Mutation::FlipBit(..) | Mutation::Set(..));
                !is_byte || self.is_dead(name, mutation)
            }
            _ => {
                let is_dead = verdict == Verdict::Harmless && self.is_dead(name, mutation);
                is_extended || is_dead || !self.needed.contains(&name)
            }
        };
        match may_pass {
            true => Ok(verdict),
            false => Err(format!("nobody noticed: {verdict:?}")),
        }
    }

    /// The mutation is of a byte that nothing refers to: between the live runs of a table.
    fn is_dead(&self, name: FileName, mutation: &Mutation) -> bool {
        let (Mutation::FlipBit(at, _) | Mutation::Set(at, _)) = mutation else { return false };
        let Some(runs) = self.runs.get(&name) else { return false };
        let at = *at as u64;
        let header = if name.kind == FileKind::Table { HEADER_BYTES } else { 0 };
        at >= header && !runs.iter().any(|run| run.contains(&at))
    }

    /// Tries all `mutations` on two threads.
    fn try_all(&self, mutations: &[(FileName, Mutation)]) -> Tally {
        let (next, tally) = (AtomicUsize::new(0), Mutex::new(Tally::default()));
        let work = || loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some((name, mutation)) = mutations.get(index) else { break };
            let Some(mutated) = mutation.apply(&self.image, *name) else { continue };
            let unneeded = if self.needed.contains(name) || name.kind == FileKind::Wal {
                ""
            } else {
                "unneeded "
            };
            let row = format!("{unneeded}{} {}", kind_name(name.kind), mutation.name());
            let length = self.image.files[name].len();
            let text = format!("{name} of {length} bytes: {:.60}", format!("{mutation:?}"));
            let verdict = self.judge(*name, mutation, &mutated, true);
            tally.lock().note(&row, text.clone(), verdict);
            if index % WRITABLE_ONE_IN == 0 {
                let verdict = self.judge(*name, mutation, &mutated, false);
                tally.lock().note(&row, format!("{text}, for writing"), verdict);
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(work);
            work();
        });
        tally.into_inner()
    }
}

/// Damages the database of every setup; `mutations` gets the number of shares of the volume.
fn sweep(mutations: impl Fn(&Image, usize) -> Vec<(FileName, Mutation)>) {
    for setup in setups() {
        let subject = Subject::new(setup, 1, Writer::fill);
        let mutations = mutations(&subject.image, setups().len());
        println!("{setup:?}: {} bytes, {} mutations", subject.image.bytes(), mutations.len());
        let tally = subject.try_all(&mutations);
        let detected = tally.total(Verdict::Detected);
        tally.finish();
        assert!(detected >= DETECTED_MIN, "{setup:?}: only {detected} were detected");
    }
}

#[test]
fn damage_of_each_byte_of_each_value_segment_is_detected() {
    for setup in separating_setups() {
        let subject = Subject::new(setup, 1, Writer::fill_a_little);
        let mut random = Random::new(6);
        let segments = subject.image.files.iter().filter(|(name, _)| name.kind == FileKind::Value);
        let mutations: Vec<(FileName, Mutation)> = segments
            .flat_map(|(&name, bytes)| (0..bytes.len()).map(move |at| (name, at)))
            .map(|(name, at)| (name, Mutation::FlipBit(at, random.below(8) as u32)))
            .collect();
        println!("{setup:?}: {} bytes of segments", mutations.len());
        assert!(mutations.len() > 1000);
        let tally = subject.try_all(&mutations);
        let vouched = mutations.iter().filter(|(name, flip)| !subject.is_dead(*name, flip)).count();
        let (detected, torn) = (tally.total(Verdict::Detected), tally.total(Verdict::TornTail));
        let opened = mutations.len().div_ceil(WRITABLE_ONE_IN);
        tally.finish();
        // Every byte counts; what the manifest does not vouch for may be the end of a log.
        assert_eq!(detected + torn, mutations.len() + opened, "{setup:?}");
        assert!(detected >= vouched && (torn > 0) == (vouched < mutations.len()), "{setup:?}");
    }
}

#[test]
fn damage_of_any_byte_is_detected_or_harmless() {
    sweep(|image, shares| {
        let wanted = (BYTE_MUTATIONS * crate::scale()).div_ceil(shares);
        let stride = (image.bytes() * 3).div_ceil(wanted).max(1);
        let mut random = Random::new(3);
        let mut mutations = Vec::new();
        for (&name, bytes) in &image.files {
            let all = (0..bytes.len() * 3).map(|n| (n / 3, n % 3));
            for (at, how) in all.skip(random.below(stride as u64) as usize).step_by(stride) {
                let mutation = match how {
                    0 => Mutation::FlipBit(at, random.below(8) as u32),
                    1 => Mutation::Set(at, 0),
                    _ => Mutation::Set(at, 0xff),
                };
                mutations.push((name, mutation));
            }
        }
        mutations
    });
}

#[test]
fn cut_extended_missing_and_mixed_up_files_are_detected_or_harmless() {
    let (other, _) = database(2);
    let other = &other;
    sweep(|image, shares| {
        let cuts_wanted = (CUTS * crate::scale()).div_ceil(shares);
        let mut random = Random::new(4);
        let mut mutations = Vec::new();
        for (&name, bytes) in &image.files {
            let stride = (bytes.len() / cuts_wanted).max(1);
            let cuts = (0..bytes.len()).skip(random.below(stride as u64) as usize).step_by(stride);
            mutations.extend(cuts.map(|length| (name, Mutation::Cut(length))));
            mutations.push((name, Mutation::Remove));
            for garbage in [vec![0; 1], vec![0; 600], vec![0xff; 40], bytes.to_vec()] {
                mutations.push((name, Mutation::Extend(garbage)));
            }
            let noise = (0..300).map(|_| random.next_u64() as u8).collect();
            mutations.push((name, Mutation::Extend(noise)));
            mutations.extend(mixed_up(image, other, name));
        }
        mutations
    });
}

/// A file with the bytes of another one of its database, or of its namesake in another database.
fn mixed_up(image: &Image, other: &Image, name: FileName) -> Vec<(FileName, Mutation)> {
    let own = image.files.iter().filter(|(theirs, _)| **theirs != name && theirs.kind == name.kind);
    let swapped = own.map(|(_, bytes)| ("swapped", bytes));
    let foreign = other.files.iter().filter(|(theirs, _)| theirs.kind == name.kind);
    let foreign = foreign
        .filter(|(theirs, _)| theirs.id == name.id || name.kind != FileKind::Table)
        .map(|(_, bytes)| ("foreign", bytes));
    let replace = |(how, bytes): (&'static str, &Arc<Vec<u8>>)| {
        (name, Mutation::Replace(how, bytes.to_vec()))
    };
    swapped.chain(foreign).map(replace).collect()
}

#[test]
fn damage_of_the_root_file_is_detected() {
    let (image, history) = database(1);
    let directory = image.in_directory();
    let path = directory.path().join("CURRENT");
    let bytes = std::fs::read(&path).unwrap();
    let mut tally = Tally::default();
    let mut judge_with = |what: String, bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let opened = options().read_only(true).open(directory.path());
        let verdict = guarded(|| judge(opened, &history, history.states.len() - 1));
        tally.note("CURRENT", what, verdict);
    };
    for at in 0..bytes.len() {
        for byte in (0..8).map(|bit| bytes[at] ^ (1 << bit)).chain([0, 0xff]) {
            if byte != bytes[at] {
                let mut damaged = bytes.clone();
                damaged[at] = byte;
                judge_with(format!("byte {at} is {byte}"), &damaged);
            }
        }
        judge_with(format!("cut to {at}"), &bytes[..at]);
    }
    judge_with("extended".into(), &[&bytes[..], b"x"].concat());
    tally.finish();
}
