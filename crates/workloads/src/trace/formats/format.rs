//! The formats, by name.

use super::{Line, Parsed, Visit, own, redis, rocksdb, twitter, ycsb};
use base::{Error, Result};

/// A format of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Shingle's own, `docs/format/trace.md`.
    Shingle,
    /// The cache traces that Twitter published.
    Twitter,
    /// What RocksDB's `trace_analyzer -convert_to_human_readable_trace` writes.
    RocksDb,
    /// What YCSB's binding `basic` prints.
    Ycsb,
    /// What Redis's command `MONITOR` prints.
    Redis,
}

impl Format {
    /// Every format, those first whose lines are hardest to mistake.
    pub const ALL: [Format; 5] =
        [Format::Shingle, Format::RocksDb, Format::Ycsb, Format::Redis, Format::Twitter];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Shingle => "shingle",
            Format::Twitter => "twitter",
            Format::RocksDb => "rocksdb",
            Format::Ycsb => "ycsb",
            Format::Redis => "redis",
        }
    }

    /// The format of this name; an error that lists the names otherwise.
    pub fn by_name(name: &str) -> Result<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
            let names = Format::ALL.map(Format::name).join(", ");
            Error::invalid(format!("no format of traces is called {name}; there are {names}"))
        })
    }

    /// Reads one line, without its end.
    pub fn parse(self, line: &[u8], visit: &mut Visit<'_>) -> Parsed {
        match self {
            Format::Shingle => own::parse(line, visit),
            Format::Twitter => twitter::parse(line, visit),
            Format::RocksDb => rocksdb::parse(line, visit),
            Format::Ycsb => ycsb::parse(line, visit),
            Format::Redis => redis::parse(line, visit),
        }
    }

    /// The format that most of these lines are in. `None`: none understands any.
    pub fn recognise<'a>(lines: impl Iterator<Item = &'a [u8]> + Clone) -> Option<Format> {
        let understood = |format: Format| {
            let is_operation =
                |line: &&[u8]| format.parse(line, &mut |_| {}) == Ok(Line::Operations);
            lines.clone().filter(is_operation).count()
        };
        let counts = Format::ALL.map(|format| (format, understood(format)));
        // The first of equals: `max_by_key` would take the last.
        let best = counts.into_iter().rev().max_by_key(|(_, count)| *count)?;
        (best.1 > 0).then_some(best.0)
    }
}
