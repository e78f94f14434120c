//! Pointers: what the tree keeps in place of a value that lies in a segment.
//!
//! A pointer names its record exactly, so that garbage collection can move a value on the condition
//! that the tree still holds this very pointer. On disk: varint file, varint offset, varint record
//! bytes, varint value bytes.

use crate::record::HEADER_BYTES_MAX;
use base::coding::{Reader, push_varint};
use base::key::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use base::{Error, ErrorKind, FileId, Result};

/// Where a record lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValuePointer {
    /// The segment.
    pub file: FileId,
    /// The record's first byte.
    pub offset: u64,
    /// Bytes of the record, its header and key included.
    pub record_bytes: u32,
    /// Bytes of the value.
    pub value_bytes: u32,
}

impl ValuePointer {
    /// The byte behind the record.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(u64::from(self.record_bytes))
    }

    /// Appends the pointer to `out`.
    pub fn push(&self, out: &mut Vec<u8>) {
        push_varint(out, self.file.0);
        push_varint(out, self.offset);
        push_varint(out, u64::from(self.record_bytes));
        push_varint(out, u64::from(self.value_bytes));
    }

    /// The pointer as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16);
        self.push(&mut out);
        out
    }

    /// The pointer that `bytes` are, all of them; `Corruption` otherwise.
    pub fn decode(bytes: &[u8]) -> Result<ValuePointer> {
        let mut reader = Reader::new(bytes);
        let mut decode = || {
            Some(ValuePointer {
                file: FileId(reader.varint()?),
                offset: reader.varint()?,
                record_bytes: reader.varint_u32()?,
                value_bytes: reader.varint_u32()?,
            })
        };
        let pointer = decode();
        pointer
            .filter(|p| reader.is_empty() && p.value_bytes < p.record_bytes)
            .filter(|p| p.offset.checked_add(p.record_bytes.into()).is_some())
            .filter(|p| {
                let rest = (p.record_bytes - p.value_bytes) as usize;
                p.value_bytes as usize <= VALUE_BYTES_MAX
                    && rest <= HEADER_BYTES_MAX + KEY_BYTES_MAX
            })
            .ok_or_else(|| {
                let shown = bytes.len().min(16);
                let message = format!("no value pointer: {:02x?}", &bytes[..shown]);
                Error::new(ErrorKind::Corruption, message)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_come_back_and_every_other_byte_string_is_refused_or_a_pointer() {
        let pointer = ValuePointer {
            file: FileId(300),
            offset: 1 << 40,
            record_bytes: 1 << 20,
            value_bytes: 1_000_000,
        };
        let bytes = pointer.encode();
        assert_eq!(ValuePointer::decode(&bytes).unwrap(), pointer);
        for length in 0..bytes.len() {
            assert!(ValuePointer::decode(&bytes[..length]).is_err(), "{length}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            if let Ok(other) = ValuePointer::decode(&damaged) {
                assert_ne!(other, pointer);
            }
        }
    }
}
