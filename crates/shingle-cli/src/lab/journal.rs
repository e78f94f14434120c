//! Runs that ended, kept while the others go on, so that what was broken off goes on where it was.
//!
//! `runs.csv` has a row for each metric of each run, by a fingerprint of the program and of all
//! that the run depends on, and a row `end` behind them: what has none was broken off and counts
//! for nothing. What begins anew leaves the file of before as `runs.old.csv`: hours may be in it.

use crate::failure::{Failure, Outcome};
use lab::run::Metrics;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

const NAME: &str = "runs.csv";
const OLD_NAME: &str = "runs.old.csv";
const END: &str = "end";

/// The journal of a folder of results.
pub struct Journal {
    path: PathBuf,
    program: u64,
    known: HashMap<String, Metrics>,
    file: Mutex<File>,
    /// Runs whose rows this command found or wrote.
    ended: AtomicUsize,
}

impl Journal {
    /// Goes on with that of `folder`, or puts it aside and begins anew.
    pub fn open(folder: &Path, goes_on: bool) -> Outcome<Journal> {
        let path = folder.join(NAME);
        let failed =
            |error: std::io::Error| Failure::io(format!("open {}", path.display()), &error);
        let mut known = read(&path)?;
        if !goes_on && !known.is_empty() {
            std::fs::rename(&path, folder.join(OLD_NAME)).map_err(failed)?;
            known.clear();
        }
        let file = File::options().create(true).append(true).open(&path).map_err(failed)?;
        let (file, ended) = (Mutex::new(file), AtomicUsize::new(0));
        Ok(Journal { program: program()?, known, file, path, ended })
    }

    fn fingerprint(&self, identity: &str) -> String {
        let mut hasher = DefaultHasher::new();
        (self.program, identity).hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }

    /// The metrics of the run of this identity, if it ended before.
    pub fn find(&self, identity: &str) -> Option<Metrics> {
        let found = self.known.get(&self.fingerprint(identity)).cloned();
        self.ended.fetch_add(usize::from(found.is_some()), Ordering::Relaxed);
        found
    }

    /// Lets no more rows be written, after those that are being written. Gives the number of runs
    /// that have ended.
    pub fn end(&self) -> usize {
        std::mem::forget(self.file.lock());
        self.ended.load(Ordering::Relaxed)
    }

    /// Keeps what came of a run.
    pub fn keep(&self, identity: &str, metrics: &Metrics) -> Outcome {
        let run = self.fingerprint(identity);
        // The line before may have been broken off.
        let mut rows = String::from("\n");
        for (name, value) in metrics {
            rows.push_str(&format!("{run},{name},{value}\n"));
        }
        rows.push_str(&format!("{run},{END},\n"));
        let mut file = self.file.lock();
        let written = file.write_all(rows.as_bytes());
        self.ended.fetch_add(1, Ordering::Relaxed);
        written.map_err(|error| Failure::cannot_write(&self.path, &error))
    }
}

/// What the metrics of a run depend on besides its identity.
fn program() -> Outcome<u64> {
    let failed = |error: std::io::Error| Failure::io("read the program's own file", &error);
    let path = std::env::current_exe().map_err(failed)?;
    let mut hasher = DefaultHasher::new();
    std::fs::read(path).map_err(failed)?.hash(&mut hasher);
    Ok(hasher.finish())
}

fn read(path: &Path) -> Outcome<HashMap<String, Metrics>> {
    let mut text = String::new();
    match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(HashMap::new()),
        opened => opened.and_then(|mut file| file.read_to_string(&mut text)),
    }
    .map_err(|error| Failure::io(format!("read {}", path.display()), &error))?;
    Ok(complete(&text))
}

/// The runs whose rows are all there.
fn complete(text: &str) -> HashMap<String, Metrics> {
    let (mut begun, mut known) = (HashMap::<&str, Metrics>::new(), HashMap::new());
    for line in text.lines() {
        let mut fields = line.splitn(3, ',');
        let (Some(run), Some(name), Some(value)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        if name == END {
            known.insert(run.to_string(), begun.remove(run).unwrap_or_default());
        } else if let Ok(value) = value.parse() {
            begun.entry(run).or_default().insert(name.to_string(), value);
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_was_broken_off_is_not_known() {
        let known = complete("\na,load.wa,2.5\na,load.ra,NaN\na,end,\n\nb,load.wa,3\nb,load.r");
        assert_eq!(known.len(), 1);
        assert_eq!(known["a"]["load.wa"], 2.5);
        assert!(known["a"]["load.ra"].is_nan());
    }

    #[test]
    fn runs_outlive_a_command_that_forgot_to_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let metrics = Metrics::from([("load.wa".to_string(), 2.5)]);
        let begun = Journal::open(folder.path(), false).unwrap();
        begun.keep("a run", &metrics).unwrap();
        drop(begun);
        let anew = Journal::open(folder.path(), false).unwrap();
        assert_eq!(anew.find("a run"), None);
        drop(anew);
        std::fs::rename(folder.path().join(OLD_NAME), folder.path().join(NAME)).unwrap();
        let back = Journal::open(folder.path(), true).unwrap();
        assert_eq!(back.find("a run"), Some(metrics));
    }

    #[test]
    fn what_follows_a_broken_line_is_known() {
        let known = complete("\nb,load.wa,3\nb,load.r\nb,load.wa,4\nb,end,\n");
        assert_eq!(known["b"]["load.wa"], 4.0);
    }
}
