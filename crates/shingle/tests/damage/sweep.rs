//! Damage of every byte of every file.

use crate::build::{History, database, open, options};
use crate::image::Image;
use crate::verdict::{Verdict, judge};
use base::random::Random;
use media::{FileKind, FileName};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Mutations of single bytes that the usual volume tries, over all files.
const BYTE_MUTATIONS: usize = 12_000;
/// Lengths that the usual volume tries for each file.
const CUTS: usize = 100;
/// One mutation in so many is opened for writing too, which changes and removes files.
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

    /// Prints the table; fails when anything was wrong.
    pub fn finish(self) {
        let rows: BTreeSet<&String> = self.counts.keys().map(|(row, _)| row).collect();
        println!("{:<28} {:>9} {:>9} {:>9}", "", "detected", "harmless", "torn tail");
        for row in rows {
            let count = |verdict| self.counts.get(&(row.clone(), verdict)).copied().unwrap_or(0);
            let (detected, harmless) = (count(Verdict::Detected), count(Verdict::Harmless));
            let torn = count(Verdict::TornTail);
            println!("{row:<28} {detected:>9} {harmless:>9} {torn:>9}");
        }
        let shown: Vec<&String> = self.failures.iter().take(20).collect();
        assert!(shown.is_empty(), "{} failures, the first: {shown:#?}", self.failures.len());
    }
}

/// Runs `work` with a panic as a failure.
fn guarded(work: impl FnOnce() -> Result<Verdict, String>) -> Result<Verdict, String> {
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

/// The database under test.
struct Subject {
    image: Image,
    history: History,
    /// Files without which it does not open.
    needed: BTreeSet<FileName>,
}

impl Subject {
    fn new(seed: u64) -> Subject {
        let (image, history) = database(seed);
        let is_needed = |name: &FileName| open(image.without(*name).in_memory(), true).is_err();
        let needed = image.files.keys().copied().filter(is_needed).collect();
        Subject { image, history, needed }
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
        let verdict = guarded(|| judge(open(image.in_memory(), read_only), &self.history, first))?;
        let is_extended = matches!(mutation, Mutation::Extend(_));
        let may_pass = match (name.kind, verdict) {
            (_, Verdict::Detected) => true,
            (FileKind::Wal, _) => true,
            // The last edit may be done again from the logs.
            (FileKind::Manifest, verdict) => verdict == Verdict::Harmless,
            _ => is_extended || !self.needed.contains(&name),
        };
        match may_pass {
            true => Ok(verdict),
            false => Err(format!("nobody noticed: {verdict:?}")),
        }
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
            tally.lock().unwrap().note(&row, text.clone(), verdict);
            if index % WRITABLE_ONE_IN == 0 {
                let verdict = self.judge(*name, mutation, &mutated, false);
                tally.lock().unwrap().note(&row, format!("{text}, for writing"), verdict);
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(work);
            work();
        });
        tally.into_inner().unwrap()
    }
}

#[test]
fn damage_of_any_byte_is_detected_or_harmless() {
    let subject = Subject::new(1);
    let image = &subject.image;
    for (name, bytes) in &image.files {
        println!("{name}: {} bytes", bytes.len());
    }
    let wanted = BYTE_MUTATIONS * crate::scale();
    let stride = (image.bytes() * 3).div_ceil(wanted).max(1);
    let mut random = Random::new(3);
    let mut mutations = Vec::new();
    for (&name, bytes) in &image.files {
        let all = (0..bytes.len() * 3).map(|n| (n / 3, n % 3));
        for (at, how) in all.skip(random.below(stride as u64) as usize).step_by(stride) {
            mutations.push((
                name,
                match how {
                    0 => Mutation::FlipBit(at, random.below(8) as u32),
                    1 => Mutation::Set(at, 0),
                    _ => Mutation::Set(at, 0xff),
                },
            ));
        }
    }
    subject.try_all(&mutations).finish();
}

#[test]
fn cut_extended_missing_and_mixed_up_files_are_detected_or_harmless() {
    let subject = Subject::new(1);
    let image = &subject.image;
    let (other, _) = database(2);
    let mut random = Random::new(4);
    let mut mutations = Vec::new();
    for (&name, bytes) in &image.files {
        let stride = (bytes.len() / (CUTS * crate::scale())).max(1);
        let cuts = (0..bytes.len()).skip(random.below(stride as u64) as usize).step_by(stride);
        mutations.extend(cuts.map(|length| (name, Mutation::Cut(length))));
        mutations.push((name, Mutation::Remove));
        for garbage in [vec![0; 1], vec![0; 600], vec![0xff; 40], bytes.to_vec()] {
            mutations.push((name, Mutation::Extend(garbage)));
        }
        let noise = (0..300).map(|_| random.next_u64() as u8).collect();
        mutations.push((name, Mutation::Extend(noise)));
        for (theirs, bytes) in image.files.iter().filter(|(other, _)| **other != name) {
            if theirs.kind == name.kind {
                mutations.push((name, Mutation::Replace("swapped", bytes.to_vec())));
            }
        }
        for (theirs, bytes) in other.files.iter().filter(|(theirs, _)| theirs.kind == name.kind) {
            if theirs.id == name.id || name.kind != FileKind::Table {
                mutations.push((name, Mutation::Replace("foreign", bytes.to_vec())));
            }
        }
    }
    subject.try_all(&mutations).finish();
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
