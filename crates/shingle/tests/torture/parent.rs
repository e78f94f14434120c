//! The parent: starts a child, kills it, and compares what it left with what it reported.

use crate::child::options;
use crate::medium::{Quota, Tell};
use crate::model::{Model, Space, last_key};
use crate::{DIRECTORY, PLAN, Plan, Torment, WRITERS};
use base::random::Random;
use parking_lot::Mutex;
use shingle::{Db, ErrorKind};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Rounds that a directory lives through.
const ROUNDS: u64 = 6;

/// What was done and found.
#[derive(Default)]
pub struct Counts {
    cells: BTreeMap<(String, String), Cell>,
    torments: BTreeMap<Torment, Cell>,
    pub problems: Vec<String>,
}

#[derive(Clone, Copy, Default)]
struct Cell {
    rounds: u64,
    kills: u64,
    batches: u64,
    failures: u64,
    full: u64,
    lost_ranges: u64,
    checkpoints: u64,
    ingestions: u64,
}

impl Cell {
    fn add(&mut self, other: &Cell) {
        self.rounds += other.rounds;
        self.kills += other.kills;
        self.batches += other.batches;
        self.failures += other.failures;
        self.full += other.full;
        self.lost_ranges += other.lost_ranges;
        self.checkpoints += other.checkpoints;
        self.ingestions += other.ingestions;
    }
}

impl Counts {
    pub fn sum(mut self, other: Counts) -> Counts {
        for (cell, counts) in other.cells {
            self.cells.entry(cell).or_default().add(&counts);
        }
        for (torment, counts) in other.torments {
            self.torments.entry(torment).or_default().add(&counts);
        }
        self.problems.extend(other.problems);
        self
    }

    fn add(&mut self, plan: &Plan, cell: &Cell) {
        let name = (plan.scheme.clone(), plan.layout.clone());
        self.cells.entry(name).or_default().add(cell);
        self.torments.entry(plan.torment).or_default().add(cell);
    }

    /// Sorted files ingested.
    pub fn ingestions(&self) -> u64 {
        self.cells.values().map(|cell| cell.ingestions).sum()
    }

    /// Batches acknowledged.
    pub fn batches(&self) -> u64 {
        self.cells.values().map(|cell| cell.batches).sum()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = Cell::default();
        self.cells.values().for_each(|cell| all.add(cell));
        let mut line = |name: String, cell: &Cell| {
            writeln!(
                f,
                "{name:<24} {:>7} {:>7} {:>9} {:>9} {:>7} {:>7} {:>11} {:>9}",
                cell.rounds,
                cell.kills,
                cell.batches,
                cell.failures,
                cell.full,
                cell.lost_ranges,
                cell.checkpoints,
                cell.ingestions
            )
        };
        for (torment, cell) in &self.torments {
            line(format!("{torment:?}").to_lowercase(), cell)?;
        }
        for ((scheme, layout), cell) in &self.cells {
            line(format!("{scheme}, {layout}"), cell)?;
        }
        line("all".to_string(), &all)?;
        writeln!(
            f,
            "columns: rounds, kills, batches acknowledged, failed calls, refusals for space, \
             ranges lost by failed syncs, checkpoints, files ingested; problems: {}",
            self.problems.len()
        )
    }
}

/// Bytes of a file that a failed sync left to the page cache.
struct Lost {
    file: String,
    /// Identifies the file itself: another file may take its name.
    inode: u64,
    from: u64,
    to: u64,
}

/// What a child reported.
#[derive(Default)]
struct Report {
    acknowledged: [u64; WRITERS as usize],
    synced: [u64; WRITERS as usize],
    lost: Vec<(String, u64, u64)>,
    checkpoints: Vec<(String, Vec<u64>)>,
    cell: Cell,
    wrong: Vec<String>,
}

impl Report {
    fn take(&mut self, line: &str) {
        // The test harness writes before the first line.
        let Some((_, line)) = line.split_once("~ ") else { return };
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse().ok()).unwrap_or(0u64);
        match words[0] {
            "written" | "synced" => {
                let writer = number(1) as usize;
                self.cell.batches += 1;
                self.acknowledged[writer] = number(2);
                if words[0] == "synced" {
                    self.synced[writer] = number(2);
                }
            }
            "lost" => {
                self.cell.lost_ranges += 1;
                self.lost.push((words[1].to_string(), number(2), number(3)));
            }
            "cut" => {
                let at = number(2);
                for lost in self.lost.iter_mut().filter(|lost| lost.0 == words[1]) {
                    lost.2 = lost.2.min(at);
                }
            }
            "checkpoint" => {
                self.cell.checkpoints += 1;
                let before = (2..words.len()).map(number).collect();
                self.checkpoints.push((words[1].to_string(), before));
            }
            "struck" => self.cell.failures = number(1),
            "full" => self.cell.full += 1,
            "ingested" => self.cell.ingestions += 1,
            "wrong" => self.wrong.push(line.to_string()),
            _ => {}
        }
    }
}

/// The files that the opening after a death continued, as [`Quota`] reports them.
type Cuts = Arc<Mutex<Vec<String>>>;

/// A directory that lives through some rounds.
struct Place {
    home: tempfile::TempDir,
    models: Vec<Model>,
    /// To be destroyed later: the pages are still in the cache.
    later: Vec<Lost>,
}

impl Place {
    fn new() -> Place {
        let models = (0..WRITERS).map(|_| Model::default()).collect();
        Place { home: tempfile::tempdir().unwrap(), models, later: Vec::new() }
    }

    fn path(&self) -> PathBuf {
        self.home.path().join("db")
    }

    /// Evicts the pages that the kernel took for written.
    fn evict(&self, lost: &[Lost]) {
        for each in lost {
            let path = self.path().join(&each.file);
            let Ok(file) = std::fs::OpenOptions::new().write(true).open(path) else { continue };
            let about = file.metadata().unwrap();
            let end = each.to.min(about.len());
            if about.ino() == each.inode && each.from < end {
                file.write_all_at(&vec![0; (end - each.from) as usize], each.from).unwrap();
            }
        }
    }

    /// Forgets lost bytes that the opening wrote again and synced.
    fn keep_from_cuts(&mut self, cuts: &Cuts) {
        for line in cuts.lock().iter() {
            let words: Vec<&str> = line.split(' ').collect();
            if let ["cut", file, at] = words[..] {
                let at = at.parse().unwrap();
                let same = self.later.iter_mut().filter(|lost| lost.file == file);
                same.for_each(|lost| lost.to = lost.to.min(at));
            }
        }
    }

    /// Finds the files of what was lost.
    fn identify(&self, lost: &[(String, u64, u64)]) -> Vec<Lost> {
        let found = lost.iter().filter_map(|(file, from, to)| {
            let inode = std::fs::metadata(self.path().join(file)).ok()?.ino();
            Some(Lost { file: file.clone(), inode, from: *from, to: *to })
        });
        found.collect()
    }
}

/// Rounds from `first` on, in every second cell.
pub fn run_lane(first: u64, lane: u64, end: Instant) -> Counts {
    let mut counts = Counts::default();
    let mut place = Place::new();
    for number in first.. {
        if Instant::now() >= end || counts.problems.len() >= 3 {
            break;
        }
        if number % ROUNDS == 0 {
            place = Place::new();
        }
        let plan = plan_of(number, lane);
        let mut cell = Cell { rounds: 1, ..Cell::default() };
        if let Err(problem) = round(&plan, &mut place, &mut cell) {
            let kept = std::mem::replace(&mut place, Place::new()).home.keep();
            let problem =
                format!("round {number} {plan:?}: {problem}; files in {}", kept.display());
            println!("{problem}");
            counts.problems.push(problem);
        }
        counts.add(&plan, &cell);
    }
    counts
}

/// One round in four of a directory is under the scheme and layout of another.
fn plan_of(number: u64, lane: u64) -> Plan {
    let cell = number / ROUNDS * 2 + lane;
    let moved = if number % 4 == 3 { 5 * number } else { 0 };
    let torments = Torment::ALL.len() as u64;
    let torment = Torment::ALL[((number + number / torments) % torments) as usize];
    Plan::of(cell + moved, torment, number * 2 + lane)
}

/// Runs the child for a moment.
fn run_child(plan: &Plan, path: &Path, random: &mut Random) -> Report {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_of_the_torture", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, path)
        .env(PLAN, plan.encode())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let reader = std::thread::spawn(move || {
        let mut report = Report::default();
        lines.map_while(Result::ok).for_each(|line| report.take(&line));
        report
    });
    let mut ended = None;
    for _ in 0..10 + random.below(90) {
        std::thread::sleep(Duration::from_millis(10));
        ended = child.try_wait().unwrap();
        if ended.is_some() {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let mut report = reader.join().unwrap();
    report.cell.kills += u64::from(ended.is_none());
    if ended.is_some_and(|status| !status.success()) {
        report.wrong.push(format!("the process ended by itself: {ended:?}"));
    }
    report
}

fn round(plan: &Plan, place: &mut Place, cell: &mut Cell) -> Result<(), String> {
    let mut random = Random::new(plan.seed ^ 0xd1e);
    let path = place.path();
    let report = run_child(plan, &path, &mut random);
    cell.add(&report.cell);
    if let Some(wrong) = report.wrong.first() {
        return Err(format!("{wrong} ({} in all)", report.wrong.len()));
    }
    let lost = place.identify(&report.lost);
    let is_evicted = random.one_in(2);
    let required = match is_evicted && !lost.is_empty() {
        true => report.synced,
        false => report.acknowledged,
    };
    if is_evicted {
        place.evict(&lost);
    } else {
        place.later = lost;
    }
    let cuts = Cuts::default();
    let Some(db) = open(plan, &path, &report, &cuts)? else { return Ok(()) };
    let db = verify(db, place, &required).map_err(|what| format!("reopened: {what}"))?;
    db.close().map_err(|error| format!("close: {error}"))?;
    place.keep_from_cuts(&cuts);
    if !place.later.is_empty() {
        let later = std::mem::take(&mut place.later);
        place.evict(&later);
        let db = options(plan).open(&path).map_err(|error| format!("after eviction: {error}"))?;
        let required: Vec<u64> = place.models.iter().map(|model| model.last).collect();
        let db = verify(db, place, &required).map_err(|what| format!("evicted: {what}"))?;
        db.close().map_err(|error| format!("close after eviction: {error}"))?;
    }
    checkpoints(plan, place, &report)?;
    // Whatever was done to checkpoints, the database is as it was.
    let db = options(plan).open(&path).map_err(|error| format!("after checkpoints: {error}"))?;
    let required: Vec<u64> = place.models.iter().map(|model| model.last).collect();
    verify(db, place, &required).map_err(|what| format!("after checkpoints: {what}"))?;
    Ok(())
}

/// The database, or `None` where the child was killed before it created one.
fn open(plan: &Plan, path: &Path, report: &Report, cuts: &Cuts) -> Result<Option<Db>, String> {
    let heard = cuts.clone();
    let tell: Tell = Arc::new(move |line| heard.lock().push(line));
    let options = options(plan).create(false);
    let store = options.directory(path, Arc::default()).and_then(|store| Quota::new(store, tell));
    match store.and_then(|store| options.open_store(Arc::new(store))) {
        Ok(db) => Ok(Some(db)),
        Err(error)
            if error.kind() == ErrorKind::NotFound
                && report.acknowledged == [0; WRITERS as usize] =>
        {
            Ok(None)
        }
        Err(error) => Err(format!("reopening: {error}")),
    }
}

fn last(db: &Db, writer: u64) -> Result<u64, String> {
    let found = db.get(last_key(writer)).map_err(|error| error.to_string())?;
    Ok(found.map_or(0, |bytes| u64::from_le_bytes(bytes[..].try_into().unwrap())))
}

/// Every writer's keys match some number of batches, `required` or more.
fn verify(db: Db, place: &mut Place, required: &[u64]) -> Result<Db, String> {
    for writer in 0..WRITERS {
        let last = last(&db, writer)?;
        let model = &mut place.models[writer as usize];
        let floor = required[writer as usize].max(model.last);
        if last < floor {
            return Err(format!("writer {writer} is at batch {last}, {floor} were acknowledged"));
        }
        model.advance(writer, last);
        compare(&db, writer, model)?;
    }
    let report = db.check(&mut |_| {}).map_err(|error| format!("check: {error}"))?;
    if !report.is_clean() {
        return Err(format!("check: {:?}", report.problems));
    }
    Ok(db)
}

fn compare(db: &Db, writer: u64, model: &Model) -> Result<(), String> {
    let mut found = BTreeMap::new();
    let appended = db.keyspace("appended");
    let spaces =
        [(Space::Default, Some(db.default_keyspace().clone())), (Space::Appended, appended.ok())];
    for (space, keyspace) in spaces {
        let Some(keyspace) = keyspace else { continue };
        for pair in keyspace.prefix(format!("{writer}/")) {
            let (key, value) = pair.map_err(|error| format!("scan: {error}"))?;
            found.insert((space, key.to_vec()), value.to_vec());
        }
    }
    let differs = found.iter().find(|(key, value)| model.pairs.get(key) != Some(value));
    let differs = differs.or_else(|| model.pairs.iter().find(|(key, _)| !found.contains_key(key)));
    match differs {
        None => Ok(()),
        Some(((space, key), value)) => Err(format!(
            "writer {writer} after batch {}: {space:?} {} has {} bytes, found {:?}, wanted {:?}",
            model.last,
            base::key::display_key(key),
            value.len(),
            found.get(&(*space, key.clone())).map(Vec::len),
            model.pairs.get(&(*space, key.clone())).map(Vec::len),
        )),
    }
}

/// Each checkpoint holds a moment after it began. It is then written to, and removed.
fn checkpoints(plan: &Plan, place: &Place, report: &Report) -> Result<(), String> {
    let path = place.path();
    for (number, before) in &report.checkpoints {
        let target = path.with_extension(format!("checkpoint-{number}"));
        let said = |what: String| format!("checkpoint {number}: {what}");
        let db = options(plan).open(&target).map_err(|error| said(error.to_string()))?;
        for writer in 0..WRITERS {
            let last = last(&db, writer).map_err(said)?;
            if last < before[writer as usize] {
                return Err(said(format!("batch {last}, {before:?} were acknowledged")));
            }
            let mut model = Model::default();
            model.advance(writer, last);
            compare(&db, writer, &model).map_err(said)?;
        }
        for key in 0..4000u64 {
            db.put(format!("0/{key}"), vec![b'x'; 300]).map_err(|error| said(error.to_string()))?;
        }
        db.compact().map_err(|error| said(error.to_string()))?;
        db.close().map_err(|error| said(error.to_string()))?;
    }
    let directory = std::fs::read_dir(place.home.path()).unwrap();
    for entry in directory.map(Result::unwrap).filter(|entry| entry.path() != path) {
        // Checkpoints, and sorted files that a child had no time to ingest.
        match entry.path().is_dir() {
            true => std::fs::remove_dir_all(entry.path()).unwrap(),
            false => std::fs::remove_file(entry.path()).unwrap(),
        }
    }
    Ok(())
}
