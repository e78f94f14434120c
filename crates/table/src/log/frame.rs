//! One record: `marker checksum link length distance payload`.
//!
//! The checksum covers everything behind it and the record's place, and nothing of the records
//! before it, so a record can be verified wherever it is found.

use super::header::LogIdentity;
use super::source::Source;
use base::Result;
use base::checksum::hash64_seeded;
use base::coding::{Reader, VARINT_BYTES_MAX, push_varint};

/// The longest payload of a record, in bytes.
pub const RECORD_BYTES_MAX: usize = u32::MAX as usize;

/// Where the bytes begin that the checksum covers.
const COVERED_AT: usize = 6;
/// Marker, checksum, link and two varints of one byte.
pub(super) const RECORD_BYTES_MIN: usize = COVERED_AT + 4;
/// Maximum bytes of a record before its payload, whose length has at most five bytes.
pub const RECORD_HEAD_BYTES_MAX: usize = COVERED_AT + 2 + 5 + VARINT_BYTES_MAX;

/// What a log's records have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    identity: LogIdentity,
    /// How its records begin, so that a scan finds them. Never begins with zero.
    pub marker: [u8; 2],
}

/// A record without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// The stored checksum.
    pub checksum: u32,
    /// The low bits of the digest of everything before the record.
    pub link: u16,
    /// Everything before this byte of the file was durable when the record was appended.
    pub watermark: u64,
    /// Bytes before the payload.
    pub head_bytes: usize,
    /// Bytes of the record, payload included.
    pub bytes: u64,
}

/// The digest of a log after a record with `checksum`.
pub(super) fn extend_digest(digest: u64, checksum: u32) -> u64 {
    hash64_seeded(&checksum.to_le_bytes(), digest)
}

impl Frame {
    pub fn new(identity: LogIdentity) -> Frame {
        let [low, high, ..] = identity.record_place(0).hash64(b"marker").to_le_bytes();
        Frame { identity, marker: [low.max(1), high] }
    }

    /// Appends the record at file offset `offset` to `out`; gives its checksum.
    pub fn push(
        &self,
        out: &mut Vec<u8>,
        offset: u64,
        digest: u64,
        watermark: u64,
        parts: &[&[u8]],
    ) -> u32 {
        let begin = out.len();
        let payload_bytes: usize = parts.iter().map(|part| part.len()).sum();
        out.reserve(RECORD_HEAD_BYTES_MAX + payload_bytes);
        self.push_head(out, digest, payload_bytes, offset - watermark);
        for part in parts {
            out.extend_from_slice(part);
        }
        self.seal(&mut out[begin..], offset)
    }

    /// Writes the head of the record at file offset `offset` right before its payload. `buffer` has
    /// [`RECORD_HEAD_BYTES_MAX`] bytes of space, then the payload. Gives the record and its
    /// checksum. `scratch` is empty.
    pub fn complete<'b>(
        &self,
        scratch: &mut Vec<u8>,
        buffer: &'b mut [u8],
        offset: u64,
        digest: u64,
        watermark: u64,
    ) -> (&'b [u8], u32) {
        let payload_bytes = buffer.len() - RECORD_HEAD_BYTES_MAX;
        self.push_head(scratch, digest, payload_bytes, offset - watermark);
        let record = &mut buffer[RECORD_HEAD_BYTES_MAX - scratch.len()..];
        record[..scratch.len()].copy_from_slice(scratch);
        let checksum = self.seal(record, offset);
        (record, checksum)
    }

    /// Appends a head without its checksum.
    fn push_head(&self, out: &mut Vec<u8>, digest: u64, payload_bytes: usize, distance: u64) {
        let [low, high] = (digest as u16).to_le_bytes();
        out.extend_from_slice(&[self.marker[0], self.marker[1], 0, 0, 0, 0, low, high]);
        push_varint(out, payload_bytes as u64);
        push_varint(out, distance);
    }

    /// Stores the checksum of `record`, which stands at file offset `offset`.
    fn seal(&self, record: &mut [u8], offset: u64) -> u32 {
        let checksum = self.identity.record_place(offset).crc32c(&record[COVERED_AT..]);
        record[2..COVERED_AT].copy_from_slice(&checksum.to_le_bytes());
        checksum
    }

    /// The head in `bytes`, which begin at file offset `offset`; unverified.
    fn head(&self, bytes: &[u8], offset: u64) -> Option<Head> {
        let mut reader = Reader::new(bytes);
        if reader.take(2)? != self.marker {
            return None;
        }
        let checksum = reader.u32()?;
        let link = u16::from_le_bytes(reader.take(2)?.try_into().ok()?);
        let payload_bytes = u64::from(reader.varint_u32()?);
        let watermark = offset.checked_sub(reader.varint()?)?;
        let head_bytes = bytes.len() - reader.rest().len();
        Some(Head {
            checksum,
            link,
            watermark,
            head_bytes,
            bytes: head_bytes as u64 + payload_bytes,
        })
    }

    /// The head of the record at `offset`, if the file is long enough for what it declares.
    /// Nothing is verified yet.
    pub fn read_head(&self, source: &mut Source<'_>, offset: u64) -> Result<Option<Head>> {
        let rest = source.bytes_after(offset);
        let head_bytes = rest.min(RECORD_HEAD_BYTES_MAX as u64) as usize;
        let head = self.head(source.read(offset, head_bytes)?, offset);
        Ok(head.filter(|head| head.bytes <= rest))
    }

    /// Whether the record at `offset`, whose head was read there, is what was written there.
    pub fn verify(&self, source: &mut Source<'_>, offset: u64, head: &Head) -> Result<bool> {
        let record = source.read(offset, head.bytes as usize)?;
        let checksum = self.identity.record_place(offset).crc32c(&record[COVERED_AT..]);
        Ok(checksum == head.checksum)
    }
}
