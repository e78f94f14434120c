//! The bytes of a medium, sparse, in chunks that copies share until one of them is written.

use base::random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a chunk; a multiple of every sector.
const CHUNK_BYTES: u64 = 16 << 10;

/// Bytes that were never written are zeros. A clone costs one count per chunk.
#[derive(Clone, Debug, Default)]
pub(super) struct Plate {
    chunks: BTreeMap<u64, Arc<Vec<u8>>>,
    /// First bytes of sectors whose content a write nearby destroyed.
    destroyed: BTreeSet<u64>,
}

impl Plate {
    /// Fills `into` from `offset`, destroyed bytes included.
    pub(super) fn read(&self, offset: u64, into: &mut [u8]) {
        each_chunk(offset, into.len(), |chunk, within, piece| {
            let into = &mut into[piece];
            match self.chunks.get(&chunk) {
                Some(bytes) => into.copy_from_slice(&bytes[within..within + into.len()]),
                None => into.fill(0),
            }
        });
    }

    /// Puts `bytes` at `offset`; what was destroyed there is whole again.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        each_chunk(offset, bytes.len(), |chunk, within, piece| {
            let bytes = &bytes[piece];
            let target = self.chunks.entry(chunk);
            let target = target.or_insert_with(|| Arc::new(vec![0; CHUNK_BYTES as usize]));
            Arc::make_mut(target)[within..within + bytes.len()].copy_from_slice(bytes);
        });
        let healed: Vec<u64> =
            self.destroyed.range(offset..offset + bytes.len() as u64).copied().collect();
        for sector in healed {
            self.destroyed.remove(&sector);
        }
    }

    /// Destroys the sectors of `range` that may hold something.
    pub(super) fn destroy(&mut self, range: Range<u64>, sector_bytes: u64) {
        let mut sector = range.start.next_multiple_of(sector_bytes);
        while sector < range.end {
            if self.chunks.contains_key(&(sector / CHUNK_BYTES)) {
                let noise = vec![0xa5; sector_bytes as usize];
                self.write(sector, &noise);
                self.destroyed.insert(sector);
            }
            sector += sector_bytes;
        }
    }

    /// The first destroyed sector of `range`.
    pub(super) fn first_destroyed(&self, range: Range<u64>) -> Option<u64> {
        self.destroyed.range(range).next().copied()
    }

    /// Fills `range` with anything: what a discard leaves.
    pub(super) fn scramble(&mut self, range: Range<u64>) {
        let mut random = Random::new(range.start);
        let mut noise = vec![0; CHUNK_BYTES as usize];
        let mut offset = range.start;
        while offset < range.end {
            let count = (CHUNK_BYTES - offset % CHUNK_BYTES).min(range.end - offset);
            if self.chunks.contains_key(&(offset / CHUNK_BYTES)) {
                random.fill(&mut noise);
                self.write(offset, &noise[..count as usize]);
            }
            offset += count;
        }
    }

    /// Forgets `range`: it reads as zeros.
    pub(super) fn clear(&mut self, range: Range<u64>, sector_bytes: u64) {
        let zeros = vec![0; sector_bytes as usize];
        let mut sector = range.start;
        while sector < range.end {
            if self.chunks.contains_key(&(sector / CHUNK_BYTES)) {
                self.write(sector, &zeros);
            }
            sector += sector_bytes;
        }
    }
}

/// Calls `visit` for each chunk of a range with its number, the place in it, and the part of the
/// range.
fn each_chunk(offset: u64, bytes: usize, mut visit: impl FnMut(u64, usize, Range<usize>)) {
    let mut done = 0;
    while done < bytes {
        let at = offset + done as u64;
        let within = (at % CHUNK_BYTES) as usize;
        let count = (CHUNK_BYTES as usize - within).min(bytes - done);
        visit(at / CHUNK_BYTES, within, done..done + count);
        done += count;
    }
}
