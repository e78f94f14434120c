//! Frames: how a block becomes bytes of a file and back.
//!
//! A frame is the stored bytes, one byte that says how they are compressed, and a checksum over
//! both and their place. Compressed bytes begin with the length of the raw ones, a varint.
//! Raw lengths are believed only up to [`RAW_BYTES_MAX`] and a ratio, so that damage or malice can
//! not make a reader allocate much.

use crate::options::Compression;
use crate::piece::BlockKind;
use crate::place::TablePlace;
use base::coding::{push_varint, varint, varint_bytes};
use base::{Error, Result};
use std::cell::RefCell;
use zstd::bulk::{Compressor, Decompressor};

/// Blocks longer than this are stored raw.
pub const RAW_BYTES_MAX: usize = 4 << 20;

/// Maximum raw bytes for each compressed byte, beside a fixed allowance.
const RATIO_MAX: usize = 256;
const RATIO_ALLOWANCE: usize = 16 << 10;

const RAW: u8 = 0;
const LZ4: u8 = 1;
const ZSTD: u8 = 2;
/// The largest number of a method: the byte before a data block's checksum is no larger.
pub(crate) const METHOD_MAX: u8 = ZSTD;

/// Turns blocks into frames. Keeps buffers and contexts between blocks.
pub(crate) struct Sealer {
    compression: Compression,
    zstd: Option<Compressor<'static>>,
    scratch: Vec<u8>,
    tries: Tries,
}

/// Which data blocks are tried. A block that turns out not worth compressing has cost more time
/// than one that is. Where several follow each other, the next ones are stored raw without a try:
/// one at first, and twice as many with each further failure.
#[derive(Debug, Default)]
struct Tries {
    /// In a row, up to now.
    failures: u32,
    /// Blocks to be stored raw before the next try.
    skips: u32,
}

/// Failures in a row that skip nothing yet: compressible blocks may lie between others.
const FAILURES_FREE: u32 = 3;
/// Maximum blocks stored raw for each try.
const SKIPS_MAX: u32 = 16;

impl Tries {
    /// Whether the next block is tried.
    fn begin(&mut self) -> bool {
        let is_tried = self.skips == 0;
        self.skips = self.skips.saturating_sub(1);
        is_tried
    }

    fn end(&mut self, is_worth_it: bool) {
        self.failures = if is_worth_it { 0 } else { self.failures + 1 };
        let beyond = self.failures.saturating_sub(FAILURES_FREE);
        self.skips = (1_u32 << beyond.min(31) >> 1).min(SKIPS_MAX);
    }
}

impl Sealer {
    pub fn new(compression: Compression) -> Result<Sealer> {
        let zstd = match compression {
            Compression::Zstd(level) => Some(
                Compressor::new(i32::from(level))
                    .map_err(|error| Error::io("set up Zstandard compression", error))?,
            ),
            _ => None,
        };
        Ok(Sealer { compression, zstd, scratch: Vec::new(), tries: Tries::default() })
    }

    /// Appends the frame of `raw`, which will stand at `offset` of its file, to `out`; gives the
    /// stored bytes without the trailer. Filters and pinned pieces stay raw.
    pub fn seal(
        &mut self,
        kind: BlockKind,
        raw: &[u8],
        place: TablePlace,
        offset: u64,
        out: &mut Vec<u8>,
    ) -> u32 {
        let start = out.len();
        match self.compress(kind, raw) {
            Some((method, packed)) => {
                push_varint(out, raw.len() as u64);
                out.extend_from_slice(&self.scratch[..packed]);
                out.push(method);
            }
            None => {
                out.extend_from_slice(raw);
                out.push(RAW);
            }
        }
        let place = place.at(offset, kind.piece());
        let covered = &out[start..];
        let stored = covered.len() - 1;
        if kind == BlockKind::Data {
            let sum = place.crc32c(covered);
            out.extend_from_slice(&sum.to_le_bytes());
        } else {
            let sum = place.hash64(covered);
            out.extend_from_slice(&sum.to_le_bytes());
        }
        stored as u32
    }

    /// Leaves the compressed form of `raw` at the beginning of `scratch` where that is worth it:
    /// the method and its bytes.
    fn compress(&mut self, kind: BlockKind, raw: &[u8]) -> Option<(u8, usize)> {
        let compressible = matches!(kind, BlockKind::Data | BlockKind::Index);
        if !compressible || self.compression == Compression::None || raw.len() > RAW_BYTES_MAX {
            return None;
        }
        if kind == BlockKind::Index {
            return self.pack(raw);
        }
        if !self.tries.begin() {
            return None;
        }
        let packed = self.pack(raw);
        self.tries.end(packed.is_some());
        packed
    }

    fn pack(&mut self, raw: &[u8]) -> Option<(u8, usize)> {
        let worth = raw.len() - raw.len() / 8;
        let bound = match self.compression {
            Compression::Lz4 => lz4_flex::block::get_maximum_output_size(raw.len()),
            _ => zstd::zstd_safe::compress_bound(raw.len()),
        };
        if self.scratch.len() < bound {
            self.scratch.resize(bound, 0);
        }
        let (method, packed) = match &mut self.zstd {
            Some(zstd) => (ZSTD, zstd.compress_to_buffer(raw, &mut self.scratch[..]).ok()?),
            None => (LZ4, lz4_flex::block::compress_into(raw, &mut self.scratch).ok()?),
        };
        let stored = varint_bytes(raw.len() as u64) + packed;
        (stored < worth && raw.len() <= raw_bytes_limit(packed)).then_some((method, packed))
    }
}

/// What stands behind a data block longer than [`RAW_BYTES_MAX`], which will lie at `offset`.
pub(crate) fn large_trailer(raw: &[u8], place: TablePlace, offset: u64) -> [u8; 5] {
    let sum = place.at(offset, BlockKind::Data.piece()).crc32c_of([raw, &[RAW]]);
    let [a, b, c, d] = sum.to_le_bytes();
    [RAW, a, b, c, d]
}

fn raw_bytes_limit(packed: usize) -> usize {
    packed.saturating_mul(RATIO_MAX).saturating_add(RATIO_ALLOWANCE).min(RAW_BYTES_MAX)
}

/// Takes a frame off: verifies `frame`, which stood at `offset`, and gives the raw bytes, in the
/// same buffer where they were stored raw. Says what is wrong otherwise.
pub(crate) fn open(
    kind: BlockKind,
    mut frame: Vec<u8>,
    place: TablePlace,
    offset: u64,
) -> std::result::Result<Vec<u8>, String> {
    let method = verify(kind, &frame, place, offset)?;
    frame.truncate(frame.len() - kind.trailer_bytes());
    decompress(method, frame)
}

/// Like [`open`], for a frame in a buffer of the caller.
pub(crate) fn open_slice(
    kind: BlockKind,
    frame: &[u8],
    place: TablePlace,
    offset: u64,
) -> std::result::Result<Vec<u8>, String> {
    let method = verify(kind, frame, place, offset)?;
    let stored = &frame[..frame.len() - kind.trailer_bytes()];
    if method == RAW { Ok(stored.to_vec()) } else { decompress(method, stored.to_vec()) }
}

/// The bytes in a frame that was verified, if they are stored raw.
#[inline]
pub(crate) fn raw(kind: BlockKind, frame: &[u8]) -> Option<&[u8]> {
    let (stored, trailer) =
        frame.split_at_checked(frame.len().checked_sub(kind.trailer_bytes())?)?;
    (*trailer.first()? == RAW).then_some(stored)
}

/// The checksum is right; gives the method of compression.
pub(crate) fn verify(
    kind: BlockKind,
    frame: &[u8],
    place: TablePlace,
    offset: u64,
) -> std::result::Result<u8, String> {
    let sum_bytes = kind.trailer_bytes() - 1;
    let Some((covered, stored)) =
        frame.len().checked_sub(sum_bytes).and_then(|at| frame.split_at_checked(at))
    else {
        return Err("a block shorter than its trailer".into());
    };
    let place = place.at(offset, kind.piece());
    let mut found = [0; 8];
    found[..sum_bytes].copy_from_slice(stored);
    let found = u64::from_le_bytes(found);
    let expected = if kind == BlockKind::Data {
        u64::from(place.crc32c(covered))
    } else {
        place.hash64(covered)
    };
    if expected != found {
        let name = kind.name();
        return Err(format!(
            "{name} block checksum: its bytes give {expected:#x}, {found:#x} is stored"
        ));
    }
    covered.last().copied().ok_or_else(|| "a block shorter than its trailer".into())
}

thread_local! {
    static ZSTD_CONTEXT: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

fn decompress(method: u8, stored: Vec<u8>) -> std::result::Result<Vec<u8>, String> {
    if method == RAW {
        return Ok(stored);
    }
    let (raw_bytes, prefix) = varint(&stored).ok_or("a compressed block without its length")?;
    let packed = &stored[prefix..];
    let raw_bytes = usize::try_from(raw_bytes)
        .ok()
        .filter(|&raw| raw <= raw_bytes_limit(packed.len()))
        .ok_or_else(|| format!("{} stored bytes cannot hold {raw_bytes}", packed.len()))?;
    let mut raw = vec![0; raw_bytes];
    let written = match method {
        LZ4 => lz4_flex::block::decompress_into(packed, &mut raw).ok(),
        ZSTD => ZSTD_CONTEXT.with_borrow_mut(|context| {
            if context.is_none() {
                *context = Decompressor::new().ok();
            }
            context.as_mut()?.decompress_to_buffer(packed, &mut raw[..]).ok()
        }),
        _ => return Err(format!("compression method {method} is unknown")),
    };
    match written {
        Some(written) if written == raw_bytes => Ok(raw),
        _ => Err("a compressed block does not unpack to its length".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{DatabaseId, FileId};
    use proptest::prelude::*;

    const PLACE: TablePlace = TablePlace { database: DatabaseId(1), file: FileId(2) };

    fn sealed(compression: Compression, kind: BlockKind, raw: &[u8]) -> (Vec<u8>, usize) {
        let mut out = Vec::new();
        let stored = Sealer::new(compression).unwrap().seal(kind, raw, PLACE, 77, &mut out);
        (out, stored as usize)
    }

    proptest! {
        #[test]
        fn frames_open_to_what_was_sealed(
            raw in prop::collection::vec(0u8..4, 0..3000),
            method in 0..3usize,
        ) {
            let method = [Compression::None, Compression::Lz4, Compression::Zstd(1)][method];
            for kind in [BlockKind::Data, BlockKind::Index, BlockKind::Filter, BlockKind::Top] {
                let (frame, stored) = sealed(method, kind, &raw);
                prop_assert_eq!(stored + kind.trailer_bytes(), frame.len());
                prop_assert_eq!(&open_slice(kind, &frame, PLACE, 77).unwrap(), &raw);
                prop_assert_eq!(&open(kind, frame, PLACE, 77).unwrap(), &raw);
            }
        }

        #[test]
        fn any_stored_bytes_decompress_to_something_or_an_error(
            stored in prop::collection::vec(any::<u8>(), 0..200),
            method in 0u8..4,
        ) {
            let _ = decompress(method, stored);
        }
    }

    #[test]
    fn what_saves_little_is_stored_raw_and_what_saves_much_is_not() {
        let mut noise = vec![0; 4096];
        base::random::Random::new(1).fill(&mut noise);
        for method in [Compression::Lz4, Compression::Zstd(1)] {
            assert_eq!(sealed(method, BlockKind::Data, &noise).1, 4096);
            assert!(sealed(method, BlockKind::Data, &[7; 4096]).1 < 100);
            assert_eq!(sealed(method, BlockKind::Filter, &[7; 4096]).1, 4096);
            let zeros = vec![0; RAW_BYTES_MAX];
            let (frame, _) = sealed(method, BlockKind::Data, &zeros);
            assert_eq!(open(BlockKind::Data, frame, PLACE, 77).unwrap(), zeros);
        }
    }

    /// Noise of 100 blocks, then zeros: which of the blocks are compressed.
    #[test]
    fn blocks_after_several_that_saved_little_are_seldom_tried() {
        let mut random = base::random::Random::new(1);
        let mut noise = vec![0; 4096];
        for method in [Compression::Lz4, Compression::Zstd(1)] {
            let mut sealer = Sealer::new(method).unwrap();
            let mut tried = 0;
            let mut seal = |raw: &[u8]| {
                tried += u32::from(sealer.tries.skips == 0);
                let mut out = Vec::new();
                let stored = sealer.seal(BlockKind::Data, raw, PLACE, 77, &mut out);
                assert_eq!(open(BlockKind::Data, out, PLACE, 77).unwrap(), raw);
                (stored < 4096, tried)
            };
            for _ in 0..100 {
                random.fill(&mut noise);
                assert!(!seal(&noise).0);
            }
            let after_noise = seal(&noise).1;
            assert!((8..=13).contains(&after_noise), "{after_noise}");
            let raw_zeros = (0..100).filter(|_| !seal(&[0; 4096]).0).count();
            assert!(raw_zeros <= SKIPS_MAX as usize, "{raw_zeros}");
            // Blocks that alternate are all tried.
            let (_, before) = seal(&noise);
            let alternating = (0..50).all(|_| !seal(&noise).0 && seal(&[0; 4096]).0);
            assert!(alternating && seal(&noise).1 == before + 101);
        }
    }

    #[test]
    fn a_declared_length_is_not_believed_beyond_its_ratio() {
        let mut bomb = Vec::new();
        push_varint(&mut bomb, 4 << 20);
        bomb.extend_from_slice(&[0; 20]);
        assert!(decompress(LZ4, bomb.clone()).unwrap_err().contains("cannot hold"));
        assert!(decompress(ZSTD, bomb).unwrap_err().contains("cannot hold"));
    }

    #[test]
    fn a_large_block_is_sealed_as_any_other() {
        let raw = vec![7; RAW_BYTES_MAX + 1];
        let (frame, stored) = sealed(Compression::Lz4, BlockKind::Data, &raw);
        assert_eq!(frame[stored..], large_trailer(&raw, PLACE, 77));
    }

    #[test]
    fn a_frame_opens_only_at_its_place() {
        let (frame, _) = sealed(Compression::None, BlockKind::Data, b"bytes");
        assert!(open_slice(BlockKind::Data, &frame, PLACE, 78).is_err());
        assert!(open_slice(BlockKind::Index, &frame, PLACE, 77).is_err());
    }
}
