//! Files in and out of a backup directory, in pieces, with a digest of all bytes.

use super::catalog::Content;
use crate::progress::Reporter;
use base::checksum::hash64_seeded;
use base::{Cause, Error, Result};
use media::{AppendFile, FileHint, FileName, FileStore, ReadFile};
use std::sync::Arc;

const PIECE_BYTES: u64 = 1 << 20;

/// The digest of a file: each piece of 1 MiB is hashed with the hash before it as its seed.
#[derive(Default)]
pub(super) struct Digest(u64);

impl Digest {
    fn add(&mut self, piece: &[u8]) {
        self.0 = hash64_seeded(piece, self.0);
    }
}

/// Tells a user of the bytes that were worked through.
pub(super) struct Meter<'a> {
    pub done_bytes: u64,
    pub total_bytes: u64,
    pub report: Reporter<'a>,
}

impl Meter<'_> {
    fn add(&mut self, bytes: u64, what: &str) -> Result<()> {
        self.done_bytes += bytes;
        let total_bytes = self.total_bytes.max(self.done_bytes);
        self.report.step(self.done_bytes, total_bytes, what.to_string())
    }
}

/// Gives each piece of the first `bytes` of `file` to `take`.
fn for_pieces(
    file: &dyn ReadFile,
    bytes: u64,
    mut take: impl FnMut(&[u8]) -> Result<()>,
) -> Result<Content> {
    let mut digest = Digest::default();
    let mut piece = vec![0; bytes.min(PIECE_BYTES) as usize];
    let mut offset = 0;
    while offset < bytes {
        let count = (bytes - offset).min(PIECE_BYTES) as usize;
        file.read_at(offset, &mut piece[..count], Cause::Checkpoint)?;
        digest.add(&piece[..count]);
        take(&piece[..count])?;
        offset += count as u64;
    }
    Ok(Content { bytes, hash: digest.0 })
}

/// What the first `bytes` of `file` are.
pub(super) fn content(file: &dyn ReadFile, bytes: u64, meter: &mut Meter<'_>) -> Result<Content> {
    let what = file.name().to_string();
    for_pieces(file, bytes, |piece| meter.add(piece.len() as u64, &what))
}

/// Copies the first `bytes` of `file` to `target` as `name`, durably but for the name.
pub(super) fn copy(
    file: &dyn ReadFile,
    bytes: u64,
    target: &dyn FileStore,
    name: FileName,
    meter: &mut Meter<'_>,
) -> Result<Content> {
    let hint = FileHint { bytes_max: Some(bytes), background: true, ..FileHint::default() };
    let mut out: Box<dyn AppendFile> = target.create(name, &hint)?;
    let what = file.name().to_string();
    let content = for_pieces(file, bytes, |piece| {
        out.append(piece, Cause::Checkpoint)?;
        meter.add(piece.len() as u64, &what)
    })?;
    out.sync(Cause::Checkpoint)?;
    Ok(content)
}

/// All bytes of a small file.
pub(super) fn read_whole(store: &dyn FileStore, name: FileName) -> Result<Vec<u8>> {
    let file: Arc<dyn ReadFile> = store.open(name, true)?;
    let mut bytes = vec![0; usize::try_from(file.len()?).unwrap_or(usize::MAX)];
    file.read_at(0, &mut bytes, Cause::Checkpoint)?;
    Ok(bytes)
}

/// A file in the backup directory that is not what was stored.
pub(super) fn wrong(name: FileName, expected: Content, found: Content) -> Error {
    let message = format!(
        "{} bytes with the digest {:016x} were stored; there are {} with {:016x}",
        expected.bytes, expected.hash, found.bytes, found.hash
    );
    Error::corruption(name.to_string(), 0, message)
}
