//! The bytes on a simulated device: sparse, and as few in memory as may be.
//!
//! Pieces stay as they are, and are written in place, until they take [`PLAIN_BYTES_MAX`] together.
//! After that they are stored as references into a dictionary of what was written before, which
//! takes 1 % of the space where values come again, or else are compressed by LZ4.
//!
//! Invariants: what was never written, and what was forgotten, reads as zeros; pieces of zeros take
//! no memory when they are written whole; a piece is in its slot or in the store or in both, and
//! the slot is newer.

mod dictionary;

use base::{Error, Result};
use dictionary::Dictionary;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Bytes that are stored together: as far as LZ4 looks back.
const PIECE_BYTES: usize = 64 << 10;
/// Pieces that lie open, so that small writes one after another do not store a piece each.
const SLOTS: u64 = 256;
/// References are stored without a try of LZ4 if they take at most one of this many parts of a
/// piece.
const REFERENCES_MIN: usize = 8;
/// Bytes of pieces that are neither: a small simulation compresses nothing.
const PLAIN_BYTES_MAX: u64 = 256 << 20;

struct Slot {
    piece: u64,
    bytes: Box<[u8]>,
    is_changed: bool,
}

/// A piece in memory.
enum Stored {
    /// What the dictionary made of it.
    References(Box<[u8]>),
    Lz4(Box<[u8]>),
    Plain(Box<[u8]>),
}

impl Stored {
    fn bytes(&self) -> &[u8] {
        let (Stored::References(bytes) | Stored::Lz4(bytes) | Stored::Plain(bytes)) = self;
        bytes
    }
}

#[derive(Default)]
struct Store {
    pieces: HashMap<u64, Stored>,
    bytes: u64,
    /// Those of plain pieces.
    plain_bytes: u64,
    dictionary: Dictionary,
    scratch: Vec<u8>,
}

pub(super) struct Content {
    store: Store,
    slots: Vec<Option<Slot>>,
}

impl Store {
    fn remove(&mut self, piece: u64) {
        let Some(old) = self.pieces.remove(&piece) else { return };
        let bytes = old.bytes().len() as u64;
        self.bytes -= bytes;
        if matches!(old, Stored::Plain(_)) {
            self.plain_bytes -= bytes;
        }
    }

    fn insert(&mut self, piece: u64, bytes: &[u8]) {
        if is_zero(bytes) {
            return self.remove(piece);
        }
        if let Some(plain) = self.plain(piece) {
            return plain.copy_from_slice(bytes);
        }
        self.remove(piece);
        let stored = self.compressed(bytes);
        self.bytes += stored.bytes().len() as u64;
        self.pieces.insert(piece, stored);
    }

    /// The bytes of a piece to write into, if it is plain or can begin as such.
    fn plain(&mut self, piece: u64) -> Option<&mut [u8]> {
        let has_room = self.plain_bytes < PLAIN_BYTES_MAX;
        match self.pieces.entry(piece) {
            Entry::Occupied(entry) => match entry.into_mut() {
                Stored::Plain(bytes) => Some(bytes),
                _ => None,
            },
            Entry::Vacant(entry) if has_room => {
                self.bytes += PIECE_BYTES as u64;
                self.plain_bytes += PIECE_BYTES as u64;
                let zeros = Stored::Plain(vec![0; PIECE_BYTES].into());
                match entry.insert(zeros) {
                    Stored::Plain(bytes) => Some(bytes),
                    _ => None,
                }
            }
            Entry::Vacant(_) => None,
        }
    }

    /// The shorter of references and LZ4; references where they are short, as they are cheap.
    fn compressed(&mut self, bytes: &[u8]) -> Stored {
        self.scratch.clear();
        self.dictionary.encode(bytes, &mut self.scratch);
        if self.scratch.len() <= PIECE_BYTES / REFERENCES_MIN {
            return Stored::References(self.scratch.as_slice().into());
        }
        let compressed = lz4_flex::block::compress(bytes);
        if compressed.len() <= self.scratch.len() {
            Stored::Lz4(compressed.into())
        } else {
            Stored::References(self.scratch.as_slice().into())
        }
    }

    /// Fills `into` from byte `within` of a piece.
    fn read(&self, piece: u64, within: usize, into: &mut [u8]) -> Result<()> {
        let broken = |what: &str| {
            let message = format!("simulated content cannot be read back: {what}");
            Err(Error::corruption("simulated device", piece * PIECE_BYTES as u64, message))
        };
        match self.pieces.get(&piece) {
            None => into.fill(0),
            Some(Stored::Plain(bytes)) => into.copy_from_slice(&bytes[within..within + into.len()]),
            Some(Stored::References(encoded)) => {
                if !self.dictionary.decode(encoded, within, into) {
                    return broken("its references");
                }
            }
            Some(Stored::Lz4(compressed)) => {
                let mut bytes = vec![0; PIECE_BYTES];
                if let Err(error) = lz4_flex::block::decompress_into(compressed, &mut bytes) {
                    return broken(&error.to_string());
                }
                into.copy_from_slice(&bytes[within..within + into.len()]);
            }
        }
        Ok(())
    }
}

impl Content {
    pub(super) fn new() -> Content {
        let slots = (0..SLOTS).map(|_| None).collect();
        Content { store: Store::default(), slots }
    }

    /// Bytes of memory that the stored pieces take.
    pub(super) fn stored_bytes(&self) -> u64 {
        self.store.bytes
    }

    pub(super) fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<()> {
        let mut at = offset;
        let mut rest = into;
        while !rest.is_empty() {
            let (piece, within, count) = place(at, rest.len());
            let (part, after) = rest.split_at_mut(count);
            let is_compressed = matches!(self.store.pieces.get(&piece), Some(Stored::Lz4(_)));
            if self.is_open(piece) || (is_compressed && count < PIECE_BYTES) {
                part.copy_from_slice(&self.open(piece)?.bytes[within..within + count]);
            } else {
                self.store.read(piece, within, part)?;
            }
            (at, rest) = (at + count as u64, after);
        }
        Ok(())
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut at = offset;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (piece, within, count) = place(at, rest.len());
            let (part, after) = rest.split_at(count);
            if count == PIECE_BYTES {
                self.close(piece);
                self.store.insert(piece, part);
            } else if let Some(plain) = self.writable(piece) {
                plain[within..within + count].copy_from_slice(part);
            } else {
                let slot = self.open(piece)?;
                slot.bytes[within..within + count].copy_from_slice(part);
                slot.is_changed = true;
            }
            (at, rest) = (at + count as u64, after);
        }
        Ok(())
    }

    /// Lets go of the pieces that lie within the range whole.
    pub(super) fn forget(&mut self, offset: u64, bytes: u64) {
        let first = offset.div_ceil(PIECE_BYTES as u64);
        let end = offset.saturating_add(bytes) / PIECE_BYTES as u64;
        for piece in first..end {
            self.close(piece);
            self.store.remove(piece);
        }
    }

    /// The bytes of a plain piece, unless its slot has newer ones.
    fn writable(&mut self, piece: u64) -> Option<&mut [u8]> {
        if self.is_open(piece) { None } else { self.store.plain(piece) }
    }

    /// Lets go of what a slot has of `piece`.
    fn close(&mut self, piece: u64) {
        if self.is_open(piece) {
            self.slots[(piece % SLOTS) as usize] = None;
        }
    }

    fn is_open(&self, piece: u64) -> bool {
        self.slots[(piece % SLOTS) as usize].as_ref().is_some_and(|slot| slot.piece == piece)
    }

    fn open(&mut self, piece: u64) -> Result<&mut Slot> {
        let index = (piece % SLOTS) as usize;
        let old = self.slots[index].take();
        let slot = match old {
            Some(slot) if slot.piece == piece => slot,
            old => {
                if let Some(slot) = old.filter(|slot| slot.is_changed) {
                    self.store.insert(slot.piece, &slot.bytes);
                }
                let mut bytes: Box<[u8]> = vec![0; PIECE_BYTES].into();
                self.store.read(piece, 0, &mut bytes)?;
                Slot { piece, bytes, is_changed: false }
            }
        };
        Ok(self.slots[index].insert(slot))
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.chunks(64).all(|chunk| chunk.iter().fold(0, |any, byte| any | byte) == 0)
}

/// The piece of byte `at`, the place in it, and how many of `len` bytes lie in it.
fn place(at: u64, len: usize) -> (u64, usize, usize) {
    let within = (at % PIECE_BYTES as u64) as usize;
    (at / PIECE_BYTES as u64, within, len.min(PIECE_BYTES - within))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    #[test]
    fn agrees_with_a_vector() {
        // More pieces than slots, so that some are stored and come back.
        let len = 400 * PIECE_BYTES;
        let (mut content, mut model) = (Content::new(), vec![0; len]);
        let mut random = Random::new(7);
        for round in 0..2000 {
            let offset = random.below(len as u64) as usize;
            let room = len - offset;
            let count = (random.below(3 * PIECE_BYTES as u64) as usize).min(room);
            let range = offset..offset + count;
            match random.below(8) {
                0 => {
                    let first = offset.next_multiple_of(PIECE_BYTES);
                    let end = (offset + count) / PIECE_BYTES * PIECE_BYTES;
                    content.forget(offset as u64, count as u64);
                    model.get_mut(first..end).into_iter().for_each(|range| range.fill(0));
                }
                1..4 => {
                    if round % 2 == 0 {
                        random.fill(&mut model[range.clone()]);
                    } else {
                        model[range.clone()].fill(round as u8);
                    }
                    content.write(offset as u64, &model[range]).unwrap();
                }
                _ => {
                    let mut bytes = vec![1; count];
                    content.read(offset as u64, &mut bytes).unwrap();
                    assert!(bytes == model[range], "round {round}");
                }
            }
        }
        let mut bytes = vec![1; len];
        content.read(0, &mut bytes).unwrap();
        assert!(bytes == model);
    }

    /// Values as db_bench makes them: slices of one buffer, each behind a key of its own. A load of
    /// 100 GB has to fit into memory.
    #[test]
    fn values_that_come_again_take_a_fiftieth_of_their_room() {
        let (mut content, mut random) = (Content::new(), Random::new(1));
        let mut buffer = vec![0; 1 << 20];
        random.fill(&mut buffer);
        let mut written = 0;
        for index in 0..90_000 {
            let mut key = [0; 24];
            random.fill(&mut key);
            let value = index % 256 * 4096;
            content.write(written, &key).unwrap();
            content.write(written + 24, &buffer[value..value + 4096]).unwrap();
            written += 24 + 4096;
        }
        content.write(written % PIECE_BYTES as u64, &[1]).unwrap();
        let (open, learnt) = (SLOTS * PIECE_BYTES as u64, 1 << 20);
        let closed = written - PLAIN_BYTES_MAX;
        let stored = content.stored_bytes() - PLAIN_BYTES_MAX;
        assert!(stored > (closed - open) / 4120 * 24, "nothing is free");
        assert!(stored - learnt < closed / 50, "{stored}");
    }

    /// Short values do not come again as they are: 10 % of their bytes are random.
    #[test]
    fn compressible_values_take_a_fifth_of_their_room() {
        let (mut content, mut random) = (Content::new(), Random::new(1));
        let values: u64 = 6_000_000;
        let mut value = [0; 104];
        for index in 0..values {
            random.fill(&mut value[..12]);
            for at in 12..104 {
                value[at] = value[at - 12];
            }
            content.write(index * 104, &value).unwrap();
        }
        let closed = values * 104 - SLOTS * PIECE_BYTES as u64 - PLAIN_BYTES_MAX;
        let stored = content.stored_bytes() - PLAIN_BYTES_MAX;
        assert!(stored > closed / 20, "nothing is free");
        assert!(stored < closed / 3, "{stored} of {closed}");
    }

    #[test]
    fn zeros_and_forgotten_pieces_take_no_memory() {
        let mut content = Content::new();
        let far = SLOTS * PIECE_BYTES as u64;
        for piece in 0..2 * SLOTS {
            let byte = if piece < SLOTS { 0 } else { 5 };
            assert_eq!(content.stored_bytes() > 0, piece > SLOTS);
            content.write(piece * PIECE_BYTES as u64, &[byte; PIECE_BYTES]).unwrap();
        }
        content.forget(far, far);
        let mut byte = [9];
        content.read(far, &mut byte).unwrap();
        assert_eq!((byte, content.stored_bytes()), ([0], 0));
    }
}
