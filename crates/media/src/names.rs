//! Names: of files, of notes, and of a store's own files in the directory.

use base::{Error, FileId, Result};
use std::fmt;

/// What a file holds. The store may place kinds differently; names follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileKind {
    /// Runs.
    Table,
    /// The write-ahead log.
    Wal,
    /// The log of edits.
    Manifest,
    /// Large values.
    Value,
}

/// The name of a file in a store: a kind and a number, never a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileName {
    /// What the file holds.
    pub kind: FileKind,
    /// Its number, unique over all kinds.
    pub id: FileId,
}

impl FileName {
    /// A table file.
    pub fn table(id: FileId) -> FileName {
        FileName { kind: FileKind::Table, id }
    }

    /// A log file.
    pub fn wal(id: FileId) -> FileName {
        FileName { kind: FileKind::Wal, id }
    }

    /// A manifest file.
    pub fn manifest(id: FileId) -> FileName {
        FileName { kind: FileKind::Manifest, id }
    }

    /// A file of values.
    pub fn value(id: FileId) -> FileName {
        FileName { kind: FileKind::Value, id }
    }

    /// The name that `text` spells; `None` when it is not one of ours.
    pub fn parse(text: &str) -> Option<FileName> {
        let (kind, digits) = if let Some(digits) = text.strip_prefix("MANIFEST-") {
            (FileKind::Manifest, digits)
        } else {
            let (digits, extension) = text.split_once('.')?;
            let kind = match extension {
                "table" => FileKind::Table,
                "wal" => FileKind::Wal,
                "value" => FileKind::Value,
                _ => return None,
            };
            (kind, digits)
        };
        let id = FileId(digits.parse().ok()?);
        let name = FileName { kind, id };
        (name.to_string() == text).then_some(name)
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            FileKind::Table => write!(f, "{:06}.table", self.id.0),
            FileKind::Wal => write!(f, "{:06}.wal", self.id.0),
            FileKind::Value => write!(f, "{:06}.value", self.id.0),
            FileKind::Manifest => write!(f, "MANIFEST-{:06}", self.id.0),
        }
    }
}

/// The file that names the root.
pub(crate) const ROOT_NAME: &str = "CURRENT";

/// The file that is locked.
pub(crate) const LOCK_NAME: &str = "LOCK";

/// The file that reserves space.
pub(crate) const RESERVE_NAME: &str = "RESERVE";

/// The name of a file of the store itself, which no note may take.
pub(crate) fn is_reserved(name: &str) -> bool {
    [ROOT_NAME, LOCK_NAME, RESERVE_NAME].contains(&name)
}

/// A file that will replace another has the other's name and this.
pub(crate) const TEMPORARY_SUFFIX: &str = ".tmp";

/// Whether a store of files gives this name to one of a database whose notes are `notes`: a file of
/// data, one of its own, a note, or what will replace one of these.
pub(crate) fn is_database_file(name: &str, notes: &[&str]) -> bool {
    let whole = name.strip_suffix(TEMPORARY_SUFFIX).unwrap_or(name);
    is_reserved(whole) || notes.contains(&whole) || FileName::parse(name).is_some()
}

/// Refuses a note's name that is no plain file name, or that is the store's own: `InvalidArgument`.
pub fn check_note_name(name: &str) -> Result<()> {
    let plain = !name.is_empty()
        && name.len() <= 200
        && !name.starts_with('.')
        && !name.ends_with(TEMPORARY_SUFFIX)
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    if !plain || is_reserved(name) || FileName::parse(name).is_some() {
        let message = format!("{name:?} cannot name a note: use a plain file name of your own");
        return Err(Error::invalid(message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_what_they_print_and_nothing_else() {
        for kind in [FileKind::Table, FileKind::Wal, FileKind::Manifest, FileKind::Value] {
            for id in [0, 7, 999_999, 12_345_678] {
                let name = FileName { kind, id: FileId(id) };
                assert_eq!(FileName::parse(&name.to_string()), Some(name));
            }
        }
        for foreign in
            ["7.table", "000007.sst", "MANIFEST-7", "CURRENT", "+00007.wal", "000007.wal.bak"]
        {
            assert_eq!(FileName::parse(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn names_of_others_are_not_those_of_a_database() {
        let notes = ["LOG", "LOG.old"];
        for ours in ["MANIFEST-000007", "000012.table", "1234567.wal", "000001.value", "CURRENT"]
            .into_iter()
            .chain(["CURRENT.tmp", "LOCK", "RESERVE", "LOG", "LOG.tmp", "LOG.old", "LOG.old.tmp"])
        {
            assert!(is_database_file(ours, &notes), "{ours}");
        }
        for foreign in ["12.table", "MANIFEST-x", "000012.ldb", "notes", "a.wal", "OPTIONS", ".tmp"]
            .into_iter()
            .chain(["000012.table.tmp", "LOG.new", "LOCK.bak", "CURRENT.tmp.tmp"])
        {
            assert!(!is_database_file(foreign, &notes), "{foreign}");
        }
    }
}
