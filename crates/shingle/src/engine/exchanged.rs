//! Detects files with exchanged names, as a restore by hand or a repair of the file system can
//! leave them. No byte is damaged, but a log under another file's name looks lost. Recovery would
//! end the history before it and remove the rest.
//!
//! So before recovery gives up a log or a value as lost, it looks for it under the other names.
//! Before it removes unused files, it checks whether one of them is a needed file under a wrong
//! name. In both cases the result is an error, and nothing has changed.
//!
//! A crash can also leave blocks of one file in another, where a length became durable before its
//! data. That is not an exchange. A stale block is a single block, so a log or a segment is
//! recognized only by more than one block or by its very end: that of the file, or of the data
//! where a log is longer than what was written to it. Durable bytes are never replaced by stale
//! ones.

use crate::engine::recover::Found;
use base::{Cause, Error, ErrorKind, FileId, Result};
use media::{FileKind, FileName, FileStore, ReadFile};
use std::collections::BTreeSet;
use table::TablePlace;
use table::format::header_place;
use table::log::{End, LogKind, LogReader, named_log};
use values::{SegmentPlace, segment};

/// Maximum bytes of another file that a crash leaves in one piece.
const STALE_BYTES_MAX: u64 = 512;

/// The least that the length of a log is ahead of its end, where it is; less is what was left of a
/// stale block.
const AHEAD_BYTES_MIN: u64 = 4096;

const CAUSE: Cause = Cause::Recovery;

/// The files of a database that is being opened, and what the manifest says of them.
pub(crate) struct Exchanged<'a> {
    store: &'a dyn FileStore,
    found: &'a Found,
    /// Files that the manifest refers to, with bytes that it vouches for.
    durable: BTreeSet<FileName>,
    /// Segments for which the manifest vouches for no bytes yet.
    begun: BTreeSet<FileName>,
}

impl<'a> Exchanged<'a> {
    pub(crate) fn new(store: &'a dyn FileStore, found: &'a Found) -> Exchanged<'a> {
        let mut durable: BTreeSet<FileName> =
            found.manifest.map(FileName::manifest).into_iter().collect();
        let mut begun = BTreeSet::new();
        for version in found.keyspaces.values().map(|keyspace| &keyspace.version) {
            durable.extend(version.files().iter().map(|usage| FileName::table(usage.file.id)));
            for segment in version.segments.iter() {
                let set = if segment.bytes > 0 { &mut durable } else { &mut begun };
                set.insert(FileName::value(segment.file.id));
            }
        }
        Exchanged { store, found, durable, begun }
    }

    /// `log` seems to be lost: if a file with its name exists, that file holds nothing of the log.
    pub(crate) fn check_lost_log(&self, log: FileId) -> Result<()> {
        let lost = FileName::wal(log);
        for &name in &self.found.names {
            let file = self.store.open(name, true)?;
            match told(self.held_log(&*file))?.flatten() {
                Some(held) if name != lost && held == log => return Err(exchanged(name, lost)),
                // The file that took its name may itself be a needed log, and also be safe under
                // its own name.
                Some(held) if name == lost && held != log && held >= self.found.log_floor => {
                    return Err(exchanged(name, FileName::wal(held)));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A value of the segment `id` seems to be lost.
    pub(crate) fn check_lost_value(&self, id: FileId) -> Result<()> {
        let lost = FileName::value(id);
        for &name in self.found.names.iter().filter(|&&name| name != lost) {
            let file = self.store.open(name, true)?;
            if told(self.is_segment(&*file, name, id))?.unwrap_or(false) {
                return Err(exchanged(name, lost));
            }
        }
        Ok(())
    }

    /// A stale block looks like the start of its segment; a needed file under a wrong name is
    /// whole.
    fn is_segment(&self, file: &dyn ReadFile, name: FileName, segment: FileId) -> Result<bool> {
        Ok(self.holds_segment(file, segment)?
            || (self.begins_segment(file, segment)?
                && self.durable.contains(&name)
                && !self.is_itself(name)?))
    }

    /// Checks the files that are to be removed, and the `lost` logs, which will be removed.
    pub(crate) fn check_useless(&self, lost: &[FileId]) -> Result<()> {
        let lost: BTreeSet<FileName> = lost.iter().map(|&log| FileName::wal(log)).collect();
        let useless = self.found.names.iter().filter(|name| !self.is_needed(**name));
        for &name in useless.chain(&lost) {
            let file = match self.store.open(name, true) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                opened => opened?,
            };
            let Some(held) = told(self.held_file(name, &*file))?.flatten() else { continue };
            let is_misplaced = held != name && self.is_needed(held);
            if is_misplaced && told(self.is_itself(held))? == Some(false) {
                return Err(exchanged(name, held));
            }
        }
        Ok(())
    }

    /// The manifest refers to it, or it is a log that has not been replaced.
    fn is_needed(&self, name: FileName) -> bool {
        let is_log = name.kind == FileKind::Wal && name.id >= self.found.log_floor;
        is_log || self.durable.contains(&name) || self.begun.contains(&name)
    }

    /// The file's content matches its name. A segment without records matches any name.
    fn is_itself(&self, name: FileName) -> Result<bool> {
        let file = match self.store.open(name, true) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            opened => opened?,
        };
        Ok(match name.kind {
            FileKind::Wal | FileKind::Manifest => {
                named_log(&*file, CAUSE)?.is_some_and(|header| header.file == name.id)
            }
            FileKind::Table => header_place(&*file, CAUSE)? == Some(self.table_place(name.id)),
            FileKind::Value => {
                let place = self.segment_place(name.id);
                file.len()? == 0 || segment::first_of(&*file, [place], CAUSE)?.is_some()
            }
        })
    }

    /// What the header of the table `id` must say.
    fn table_place(&self, id: FileId) -> TablePlace {
        let versions = self.found.keyspaces.values().map(|keyspace| &keyspace.version);
        let run = versions.flat_map(|v| v.slices()).find(|slice| slice.run.file.id == id);
        let database = self.found.database;
        let own = TablePlace { database, file: id };
        run.map_or(own, |slice| TablePlace::of(&slice.run.file, database))
    }

    /// The file whose content is stored under `name`, as far as the content tells.
    fn held_file(&self, name: FileName, file: &dyn ReadFile) -> Result<Option<FileName>> {
        if let Some(place) = header_place(file, CAUSE)? {
            // The header of a sorted file does not say under which name it was ingested.
            let is_ours = place.database == self.found.database;
            return Ok(is_ours.then(|| FileName::table(place.file)));
        }
        if let Some(log) = self.held_log(file)? {
            return Ok(Some(FileName::wal(log)));
        }
        if name.kind == FileKind::Manifest && named_log(file, CAUSE)?.is_some() {
            return Ok(None);
        }
        // Segments do not contain their own number: their records must be tried.
        let own = (name.kind == FileKind::Value).then_some(name.id);
        let values = self.durable.iter().chain(&self.begun);
        let listed = values.filter(|name| name.kind == FileKind::Value).map(|name| name.id);
        let places = own.into_iter().chain(listed).map(|id| self.segment_place(id));
        let Some(place) = segment::first_of(file, places, CAUSE)? else { return Ok(None) };
        let held = FileName::value(place.file);
        let is_sure = self.durable.contains(&held) || self.holds_segment(file, place.file)?;
        Ok(is_sure.then_some(held))
    }

    /// The log of this database that the file holds.
    fn held_log(&self, file: &dyn ReadFile) -> Result<Option<FileId>> {
        let Some(header) = named_log(file, CAUSE)? else { return Ok(None) };
        if header.database != self.found.database || header.kind != LogKind::Wal {
            return Ok(None);
        }
        let mut reader = LogReader::open(file, header.identity(), 0, CAUSE)?;
        loop {
            let is_over = match reader.next() {
                Ok(record) => record.is_none(),
                // Durable bytes are damaged.
                Err(error) if error.kind() == ErrorKind::Corruption => break,
                Err(error) => return Err(error),
            };
            if reader.bytes() > STALE_BYTES_MAX {
                break;
            }
            if is_over {
                let ahead_bytes = file.len()?.saturating_sub(reader.bytes());
                let is_at_end = ahead_bytes == 0 || ahead_bytes >= AHEAD_BYTES_MIN;
                let is_whole = reader.records() > 0 && reader.end() == Some(End::Clean);
                return Ok((is_whole && is_at_end).then_some(header.file));
            }
        }
        Ok(Some(header.file))
    }

    /// The file has more of the segment than a crash leaves in another file.
    fn holds_segment(&self, file: &dyn ReadFile, segment: FileId) -> Result<bool> {
        let bytes = segment::sound_bytes(file, self.segment_place(segment), CAUSE)?;
        Ok(bytes > STALE_BYTES_MAX || (bytes > 0 && bytes == file.len()?))
    }

    fn begins_segment(&self, file: &dyn ReadFile, segment: FileId) -> Result<bool> {
        Ok(segment::first_of(file, [self.segment_place(segment)], CAUSE)?.is_some())
    }

    fn segment_place(&self, file: FileId) -> SegmentPlace {
        SegmentPlace { database: self.found.database, file }
    }
}

/// `None`: the file is damaged where it would tell. A reader that needs the file reports the
/// damage.
fn told<T>(answer: Result<T>) -> Result<Option<T>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.kind() == ErrorKind::Corruption => Ok(None),
        Err(error) => Err(error),
    }
}

fn exchanged(name: FileName, held: FileName) -> Error {
    let message = format!(
        "the file holds {held}, so files have exchanged their names; nothing was changed: give \
         each file its own name again"
    );
    Error::new(ErrorKind::Corruption, message).in_file(name.to_string())
}
