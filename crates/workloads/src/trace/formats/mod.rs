//! Formats of traces: each a function from a line to operations, without state.
//!
//! A format is a module here and a line in [`Format::ALL`].

mod own;
mod redis;
mod rocksdb;
#[cfg(test)]
mod tests;
mod twitter;
mod ycsb;

use super::operation::Operation;
use base::{Error, Result};

pub use own::{HEADER, write};

/// What a line was. An error is what is wrong with it.
pub type Parsed = std::result::Result<Line, &'static str>;

/// A line that was understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// It held operations.
    Operations,
    /// It belongs to the format and holds nothing that a key-value store would do.
    Other,
}

/// Takes what a line holds.
pub type Visit<'a> = dyn FnMut(&Operation<'_>) + 'a;

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

/// A decimal number and nothing else.
fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok().filter(|text| !text.starts_with('+'))?.parse().ok()
}

/// Decimal seconds, with or without a fraction, as nanoseconds.
fn seconds(text: &[u8]) -> Option<u64> {
    let mut parts = text.splitn(2, |&byte| byte == b'.');
    let whole = number(parts.next()?)?.checked_mul(1_000_000_000)?;
    let Some(fraction) = parts.next() else { return Some(whole) };
    if fraction.is_empty() || !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = fraction.iter().map(|digit| u64::from(digit - b'0')).chain(std::iter::repeat(0));
    whole.checked_add(digits.take(9).fold(0, |sum, digit| sum * 10 + digit))
}
