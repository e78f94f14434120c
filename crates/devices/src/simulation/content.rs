//! The bytes on a simulated device: sparse, and compressed in memory.
//!
//! Invariants: what was never written, and what was forgotten, reads as zeros; pieces of zeros take
//! no memory; a piece is in its slot or in the store or in both, and the slot is newer.

use base::{Error, Result};
use std::collections::HashMap;

/// Bytes that are compressed together: as far as LZ4 looks back.
const PIECE_BYTES: usize = 64 << 10;
/// Pieces that lie open, so that small writes one after another do not compress a piece each.
const SLOTS: u64 = 256;

struct Slot {
    piece: u64,
    bytes: Box<[u8]>,
    is_changed: bool,
}

pub(super) struct Content {
    /// LZ4 blocks, or the bytes themselves where those would be longer.
    stored: HashMap<u64, Box<[u8]>>,
    stored_bytes: u64,
    slots: Vec<Option<Slot>>,
}

impl Content {
    pub(super) fn new() -> Content {
        let slots = (0..SLOTS).map(|_| None).collect();
        Content { stored: HashMap::new(), stored_bytes: 0, slots }
    }

    /// Bytes of memory that the compressed pieces take.
    pub(super) fn stored_bytes(&self) -> u64 {
        self.stored_bytes
    }

    pub(super) fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<()> {
        let mut at = offset;
        let mut rest = into;
        while !rest.is_empty() {
            let (piece, within, count) = place(at, rest.len());
            let (part, after) = rest.split_at_mut(count);
            if self.is_open(piece) || self.stored.contains_key(&piece) {
                part.copy_from_slice(&self.open(piece)?.bytes[within..within + count]);
            } else {
                part.fill(0);
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
                // Nothing of the old piece is left to be decompressed.
                self.drop_piece(piece);
            }
            let slot = self.open(piece)?;
            slot.bytes[within..within + count].copy_from_slice(part);
            slot.is_changed = true;
            (at, rest) = (at + count as u64, after);
        }
        Ok(())
    }

    /// Lets go of the pieces that lie within the range whole.
    pub(super) fn forget(&mut self, offset: u64, bytes: u64) {
        let first = offset.div_ceil(PIECE_BYTES as u64);
        let end = offset.saturating_add(bytes) / PIECE_BYTES as u64;
        (first..end).for_each(|piece| self.drop_piece(piece));
    }

    fn drop_piece(&mut self, piece: u64) {
        if self.is_open(piece) {
            self.slots[(piece % SLOTS) as usize] = None;
        }
        if let Some(old) = self.stored.remove(&piece) {
            self.stored_bytes -= old.len() as u64;
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
                    self.store(&slot);
                }
                Slot { piece, bytes: self.load(piece)?, is_changed: false }
            }
        };
        Ok(self.slots[index].insert(slot))
    }

    fn load(&self, piece: u64) -> Result<Box<[u8]>> {
        match self.stored.get(&piece) {
            None => Ok(vec![0; PIECE_BYTES].into()),
            Some(stored) if stored.len() == PIECE_BYTES => Ok(stored.clone()),
            Some(stored) => {
                let mut bytes = vec![0; PIECE_BYTES];
                lz4_flex::block::decompress_into(stored, &mut bytes).map_err(|error| {
                    let offset = piece * PIECE_BYTES as u64;
                    let message = format!("simulated content cannot be decompressed: {error}");
                    Error::corruption("simulated device", offset, message)
                })?;
                Ok(bytes.into())
            }
        }
    }

    fn store(&mut self, slot: &Slot) {
        if let Some(old) = self.stored.remove(&slot.piece) {
            self.stored_bytes -= old.len() as u64;
        }
        if slot.bytes.iter().all(|&byte| byte == 0) {
            return;
        }
        let compressed = lz4_flex::block::compress(&slot.bytes);
        let bytes: Box<[u8]> =
            if compressed.len() < PIECE_BYTES { compressed.into() } else { slot.bytes.clone() };
        self.stored_bytes += bytes.len() as u64;
        self.stored.insert(slot.piece, bytes);
    }
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

    /// Values as db_bench makes them, a tenth of their bytes random: 100 GB of them fit into 20 GiB
    /// with room to spare.
    #[test]
    fn compressible_values_take_a_fifth_of_their_room() {
        let (mut content, mut random) = (Content::new(), Random::new(1));
        let values = 32_000;
        for index in 0..values {
            let mut value = [0; 1040];
            random.fill(&mut value[..116]);
            for at in 116..1040 {
                value[at] = if at < 1024 { value[at - 100] } else { value[at - 1024] };
            }
            content.write(index * 1040, &value).unwrap();
        }
        content.write(0, &[1]).unwrap(); // the first slot is changed again
        let written = values * 1040;
        let open = SLOTS * PIECE_BYTES as u64;
        assert!(content.stored_bytes() > (written - open) / 20, "nothing is free");
        assert!(content.stored_bytes() < (written - open) / 5, "{}", content.stored_bytes());
    }

    #[test]
    fn zeros_and_forgotten_pieces_take_no_memory() {
        let mut content = Content::new();
        let far = SLOTS * PIECE_BYTES as u64;
        for piece in 0..2 * SLOTS {
            let byte = if piece < SLOTS { 0 } else { 5 };
            content.write(piece * PIECE_BYTES as u64, &[byte; PIECE_BYTES]).unwrap();
        }
        assert_eq!(content.stored_bytes(), 0);
        content.forget(far, far);
        let mut byte = [9];
        content.read(far, &mut byte).unwrap();
        assert_eq!((byte, content.stored_bytes()), ([0], 0));
    }
}
