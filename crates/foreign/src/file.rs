//! A file of which pieces are read.

use crate::coding::{damage, unread};
use base::{Error, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// No block is larger: what says so is damage.
pub const BLOCK_BYTES_MAX: u64 = 2 << 30;

/// An open file with its length.
pub struct Pieces {
    pub path: PathBuf,
    pub bytes: u64,
    file: File,
}

/// Where a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub offset: u64,
    pub bytes: u64,
}

impl Pieces {
    pub fn open(path: PathBuf) -> Result<Pieces> {
        let file = File::open(&path).map_err(|error| unread(&path, error))?;
        let bytes = file.metadata().map_err(|error| unread(&path, error))?.len();
        Ok(Pieces { path, bytes, file })
    }

    /// The bytes of `place`, and as many behind them as a trailer has. Memory is taken only for
    /// what the file has.
    pub fn read(&self, place: Place, trailer_bytes: u64) -> Result<Vec<u8>> {
        let whole = place.bytes.saturating_add(trailer_bytes);
        if whole > BLOCK_BYTES_MAX || place.offset.saturating_add(whole) > self.bytes {
            return Err(self.damage(place.offset, "a block ends behind the end of the file"));
        }
        let mut bytes = vec![0; whole as usize];
        self.file
            .read_exact_at(&mut bytes, place.offset)
            .map_err(|error| unread(&self.path, error))?;
        Ok(bytes)
    }

    /// The last bytes of the file, which is a table, and where they begin.
    pub fn end(&self, bytes: u64) -> Result<(u64, Vec<u8>)> {
        let Some(offset) = self.bytes.checked_sub(bytes) else {
            return Err(self.damage(self.bytes, "the file is too short for a table"));
        };
        Ok((offset, self.read(Place { offset, bytes }, 0)?))
    }

    pub fn damage(&self, offset: u64, message: impl Into<String>) -> Error {
        damage(&self.path, offset, message)
    }
}
