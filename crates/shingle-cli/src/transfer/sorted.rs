//! Records in the order of their keys, stored by an ingestion: all of them or none.
//!
//! The records go to sorted files in a folder of this process, beside the database, so that the
//! database takes the files over by links. The folder is removed in the end.

use super::Record;
use crate::failure::{Failure, Outcome};
use crate::open::is_device;
use crate::text::brief;
use shingle::{IngestOptions, Keyspace, SortedFileWriter};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// A sorted file ends when it has this many bytes.
const FILE_BYTES: u64 = 64 << 20;

/// A folder that is removed when this is dropped.
struct Folder(PathBuf);

impl Folder {
    /// Beside the database. Where that is a device, below the system's folder of temporary files.
    fn create(database: &Path) -> Outcome<Folder> {
        let file = database.file_name().unwrap_or(OsStr::new("shingle")).to_string_lossy();
        let name = format!(".{file}-import-{}", std::process::id());
        let path = match is_device(database) || database.file_name().is_none() {
            true => std::env::temp_dir().join(name),
            false => database.with_file_name(name),
        };
        std::fs::create_dir(&path)
            .map_err(|error| Failure::io(format!("create {}", path.display()), &error))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The files that are left belong to no database.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Sorted files for one ingestion.
pub struct SortedFiles<'a> {
    keyspace: &'a Keyspace,
    folder: Folder,
    /// The file that has no end yet.
    writer: Option<SortedFileWriter>,
    paths: Vec<PathBuf>,
    last_key: Vec<u8>,
    records: u64,
    bytes: u64,
}

impl<'a> SortedFiles<'a> {
    /// For `keyspace` of the database in `path`.
    pub fn begin(path: &Path, keyspace: &'a Keyspace) -> Outcome<SortedFiles<'a>> {
        // A database that refuses ingestions says so before the source is read.
        keyspace.ingest::<PathBuf>(&[], &IngestOptions::default())?;
        let (writer, paths) = (None, Vec::new());
        let (folder, last_key) = (Folder::create(path)?, Vec::new());
        Ok(SortedFiles { keyspace, folder, writer, paths, last_key, records: 0, bytes: 0 })
    }

    /// One more record of the source called `name`. Its key is behind the last one.
    pub fn put(&mut self, name: &str, record: Record<'_>) -> Outcome {
        if self.records > 0 && record.key <= &self.last_key[..] {
            let (number, key, last) = (self.records + 1, brief(record.key), brief(&self.last_key));
            return Err(Failure::said(
                format!("{name}, record {number}: key {key} does not come after key {last}"),
                "sort the records by the bytes of their keys, each key once, or leave out --sorted",
            ));
        }
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None => self.next_file()?,
        };
        // Files do not know the time to live of the keyspace.
        let record = record.expiring_after(self.keyspace.options().ttl, self.keyspace);
        match record.expiry {
            None => writer.put(record.key, record.value)?,
            Some(expiry) => writer.put_expiring(record.key, record.value, expiry)?,
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(record.key);
        self.records += 1;
        self.bytes += record.bytes();
        match writer.bytes() < FILE_BYTES {
            true => self.writer = Some(writer),
            false => drop(writer.finish()?),
        }
        Ok(())
    }

    fn next_file(&mut self) -> Outcome<SortedFileWriter> {
        let path = self.folder.0.join(format!("{:06}.sorted", self.paths.len()));
        let writer = SortedFileWriter::create(&path, &self.keyspace.sorted_file_options())?;
        self.paths.push(path);
        Ok(writer)
    }

    /// Stores all records; gives their number and bytes.
    pub fn ingest(mut self) -> Outcome<(u64, u64)> {
        if let Some(writer) = self.writer.take() {
            writer.finish()?;
        }
        // This process has just written and synced the files.
        let options = IngestOptions { move_files: true, verify: false, ..IngestOptions::default() };
        self.keyspace.ingest(&self.paths, &options)?;
        Ok((self.records, self.bytes))
    }
}
