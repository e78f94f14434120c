//! Frames: the sectors of a log, each of which says what it is.
//!
//! | bytes | content |
//! |---|---|
//! | sector - 32 | bytes of the file, zeros behind them |
//! | 8 | generation of the extent, never used twice on the device |
//! | 8 | place of the first byte in the file |
//! | 8 | how many bytes of the file |
//! | 8 | XXH3-64 of all before, seeded with the store |
//!
//! So an append needs no other write to be found again, and a stale sector is never taken for one.

use base::checksum::hash64_seeded;
use base::coding::Reader;

/// Bytes of a sector that are not the file's.
pub const FRAME_BYTES: u64 = 32;

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    pub generation: u64,
    pub logical: u64,
    pub bytes: u64,
}

/// Fills `sector` with `content`, which fits, as the frame at `logical`.
pub fn encode(sector: &mut [u8], content: &[u8], logical: u64, generation: u64, store: u64) {
    let foot = sector.len() - FRAME_BYTES as usize;
    sector[..content.len()].copy_from_slice(content);
    sector[content.len()..foot].fill(0);
    let mut fields = Vec::with_capacity(FRAME_BYTES as usize);
    fields.extend(generation.to_le_bytes());
    fields.extend(logical.to_le_bytes());
    fields.extend((content.len() as u64).to_le_bytes());
    let end = sector.len() - 8;
    sector[foot..end].copy_from_slice(&fields);
    let hash = hash64_seeded(&sector[..end], store);
    sector[end..].copy_from_slice(&hash.to_le_bytes());
}

/// The frame in `sector`; `None` if there is none.
pub fn decode(sector: &[u8], store: u64) -> Option<Frame> {
    let (body, hash) = sector.split_last_chunk::<8>()?;
    if hash64_seeded(body, store) != u64::from_le_bytes(*hash) {
        return None;
    }
    let room = body.len().checked_sub(24)?;
    let mut reader = Reader::new(&body[room..]);
    let frame = Frame { generation: reader.u64()?, logical: reader.u64()?, bytes: reader.u64()? };
    (frame.bytes <= room as u64).then_some(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_back_and_no_flipped_bit_is_one() {
        let mut sector = vec![0xff; 512];
        encode(&mut sector, b"content", 7, 9, 3);
        let frame = Frame { generation: 9, logical: 7, bytes: 7 };
        assert_eq!(decode(&sector, 3), Some(frame));
        assert_eq!(decode(&sector, 4), None, "another store's");
        assert_eq!(&sector[..8], b"content\0");
        for bit in 0..512 * 8 {
            sector[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&sector, 3), None);
            sector[bit / 8] ^= 1 << (bit % 8);
        }
        assert_eq!(decode(&[0; 512], 3), None);
    }
}
