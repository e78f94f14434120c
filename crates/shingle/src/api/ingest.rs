//! Bulk ingestion into a keyspace, and the layout of files for it.

use super::db::Keyspace;
use crate::ingest::{IngestOptions, Ingested};
use crate::sorted_file::SortedFileOptions;
use base::Result;
use std::path::{Path, PathBuf};

/// A level that is not one of the first, which have options of their own.
const DEEP_LEVEL: u8 = u8::MAX;

impl Keyspace {
    /// Brings the sorted files at `paths` into the keyspace, all of them or none. Their entries are
    /// newer than everything that was written before, and become visible and durable together.
    /// [`SortedFileWriter`](crate::SortedFileWriter) writes such files. The files of one call must
    /// not overlap.
    ///
    /// Values of any size stay in the files, also where the value layout separates large ones.
    ///
    /// # Errors
    ///
    /// As for all writes, see [`Keyspace`]; the database is then unchanged. Also:
    ///
    /// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): two files overlap.
    /// - [`NotFound`](crate::ErrorKind::NotFound): there is no file at one of the paths.
    /// - [`Corruption`](crate::ErrorKind::Corruption): a file is damaged, or no sorted file.
    /// - [`Incompatible`](crate::ErrorKind::Incompatible): a file was written by a newer version.
    pub fn ingest<P: AsRef<Path>>(&self, paths: &[P], options: &IngestOptions) -> Result<Ingested> {
        self.state.check_open()?;
        let paths: Vec<PathBuf> = paths.iter().map(|path| path.as_ref().to_path_buf()).collect();
        self.engine().ingest(&self.state, &paths, options)
    }

    /// The layout of a sorted file that the database would give to its own tables on the deepest
    /// level of this keyspace.
    ///
    /// ```
    /// # fn main() -> shingle::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// use shingle::{Compression, Options, SortedFileWriter};
    ///
    /// let db = Options::new().compression(Compression::Lz4).open(dir.path().join("db"))?;
    /// let layout = db.default_keyspace().sorted_file_options();
    /// assert_eq!(layout.compression, Compression::Lz4);
    /// let file = SortedFileWriter::create(dir.path().join("part-1.sorted"), &layout)?;
    /// # drop(file);
    /// # Ok(())
    /// # }
    /// ```
    pub fn sorted_file_options(&self) -> SortedFileOptions {
        let settings = &self.engine().settings;
        SortedFileOptions::of_table(&settings.table_options(&self.state, DEEP_LEVEL, 0))
    }
}
