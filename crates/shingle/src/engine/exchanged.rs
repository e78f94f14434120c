//! Files that bear each other's names: a restore by hand or a repair of the file system leaves such
//! a directory. No byte in it is damaged, but a log under another file's name looks like one that
//! was lost, and recovery would end the history before it and remove the rest.
//!
//! So before recovery takes a log or a value for lost, it looks for it under the other names; and
//! before files without use are removed, it looks whether one of them is a file of use that is not
//! at its own name. Either way the answer is an error, and nothing was changed.
//!
//! A crash leaves blocks of one file in another, where a length became durable before its data. It
//! is not taken for an exchange: a stale block is a block, so that a log or a segment is found only
//! by more than one or by its very end; and what was durable keeps its own bytes.

use crate::engine::recover::Found;
use base::{Cause, Error, ErrorKind, FileId, Result};
use media::{FileKind, FileName, FileStore, ReadFile};
use std::collections::BTreeSet;
use table::format::header_place;
use table::log::{End, LogKind, LogReader, named_log};
use values::{SegmentPlace, segment};

/// A crash leaves no more bytes of another file in one piece.
const STALE_BYTES_MAX: u64 = 512;

const CAUSE: Cause = Cause::Recovery;

/// The files of a database that is being opened, and what the manifest says of them.
pub(crate) struct Exchanged<'a> {
    store: &'a dyn FileStore,
    found: &'a Found,
    /// Files that the manifest refers to, with bytes that it vouches for.
    durable: BTreeSet<FileName>,
    /// Segments of which it vouches for nothing yet.
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

    /// `log` seems to be lost: nothing of it is under its name, if that is there.
    pub(crate) fn check_lost_log(&self, log: FileId) -> Result<()> {
        let lost = FileName::wal(log);
        for &name in &self.found.names {
            let file = self.store.open(name, true)?;
            match told(self.held_log(&*file))?.flatten() {
                Some(held) if name != lost && held == log => return Err(exchanged(name, lost)),
                // What took its name may be a log that is needed, and safe under its own as well.
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

    /// A stale block begins like its segment; a file of use under a wrong name is all of it.
    fn is_segment(&self, file: &dyn ReadFile, name: FileName, segment: FileId) -> Result<bool> {
        Ok(self.holds_segment(file, segment)?
            || (self.begins_segment(file, segment)?
                && self.durable.contains(&name)
                && !self.is_itself(name)?))
    }

    /// Looks at the files that are to be removed, and at `lost` logs, which will be.
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

    /// The file says that it is what its name says. A segment without records may be any.
    fn is_itself(&self, name: FileName) -> Result<bool> {
        let file = match self.store.open(name, true) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            opened => opened?,
        };
        let database = self.found.database;
        Ok(match name.kind {
            FileKind::Wal | FileKind::Manifest => {
                named_log(&*file, CAUSE)?.is_some_and(|header| header.file == name.id)
            }
            FileKind::Table => header_place(&*file, CAUSE)?
                .is_some_and(|place| place.database == database && place.file == name.id),
            FileKind::Value => {
                let place = self.segment_place(name.id);
                file.len()? == 0 || segment::first_of(&*file, [place], CAUSE)?.is_some()
            }
        })
    }

    /// What the file called `name` holds, as far as it tells.
    fn held_file(&self, name: FileName, file: &dyn ReadFile) -> Result<Option<FileName>> {
        if let Some(place) = header_place(file, CAUSE)? {
            return Ok(Some(FileName::table(place.file)));
        }
        if let Some(log) = self.held_log(file)? {
            return Ok(Some(FileName::wal(log)));
        }
        if name.kind == FileKind::Manifest && named_log(file, CAUSE)?.is_some() {
            return Ok(None);
        }
        // Segments do not say which they are: it must be tried.
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
                // Damage of what was durable.
                Err(error) if error.kind() == ErrorKind::Corruption => break,
                Err(error) => return Err(error),
            };
            if reader.bytes() > STALE_BYTES_MAX {
                break;
            }
            if is_over {
                let is_whole = reader.records() > 0 && reader.end() == Some(End::Clean);
                return Ok(is_whole.then_some(header.file));
            }
        }
        Ok(Some(header.file))
    }

    /// The file has more of the segment than a crash leaves elsewhere.
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

/// `None`: the file is damaged where it would tell. Whoever needs it finds that out.
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
