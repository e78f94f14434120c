//! A trace in a file.

use super::operation::Operation;
use super::read::read;
use base::{Error, Result};
use std::fs::{self, File, Metadata};
use std::io::BufReader;
use std::path::Path;

/// A file with a trace, in any format.
#[derive(Clone, Copy, Debug)]
pub struct TraceFile<'a> {
    path: &'a Path,
}

impl<'a> TraceFile<'a> {
    /// The file at `path`.
    pub fn new(path: &'a Path) -> TraceFile<'a> {
        TraceFile { path }
    }

    /// Gives `visit` every operation. An error where a line is no operation.
    pub fn each(&self, visit: &mut dyn FnMut(&Operation<'_>)) -> Result<()> {
        let path = self.path.display();
        let file = File::open(self.path)
            .map_err(|error| Error::io(format!("open the trace {path}"), error))?;
        let mut input = BufReader::with_capacity(1 << 20, file);
        let reading = read(&mut input, None, visit, &mut |_| {})?;
        match reading.first_bad_lines.first() {
            None => Ok(()),
            Some(bad) => Err(Error::invalid(format!(
                "the trace {path} has {} lines that are no operations; the first is line {}: {}",
                reading.bad_lines, bad.number, bad.reason
            ))),
        }
    }

    fn metadata(&self) -> Option<Metadata> {
        fs::metadata(self.path).ok()
    }

    /// Its bytes; 0 where it is not there.
    pub fn bytes(&self) -> u64 {
        self.metadata().map_or(0, |file| file.len())
    }

    /// What tells one state of it from another: its length and the time of its last change.
    pub fn state(&self) -> String {
        let changed = self.metadata().and_then(|file| file.modified().ok());
        format!("{} {changed:?}", self.bytes())
    }
}
