//! Numbers and byte strings as bytes: little-endian fixed widths and LEB128 varints.
//!
//! [`Reader`] never reads past its slice and never allocates: hostile bytes give `None`.

/// The longest varint of a `u64`.
pub const VARINT_BYTES_MAX: usize = 10;

/// Appends `value` as a varint.
#[inline]
pub fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Bytes that [`push_varint`] appends for `value`.
#[inline]
pub fn varint_bytes(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Decodes a varint at the start of `bytes`; gives the value and its length.
/// `None` when the bytes end early or the value does not fit 64 bits.
#[inline]
pub fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    if first < 0x80 {
        return Some((u64::from(first), 1));
    }
    let mut value = u64::from(first & 0x7f);
    for (index, &byte) in bytes.iter().enumerate().take(VARINT_BYTES_MAX).skip(1) {
        let part = u64::from(byte & 0x7f);
        if index == VARINT_BYTES_MAX - 1 && byte > 1 {
            return None;
        }
        value |= part << (7 * index);
        if byte < 0x80 {
            return Some((value, index + 1));
        }
    }
    None
}

/// Appends `bytes` with its length before it.
#[inline]
pub fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    push_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads encoded values off the front of a slice.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// The bytes not yet read.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Everything was read.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `count` bytes.
    #[inline]
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    /// The next byte.
    #[inline]
    pub fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|b| b[0])
    }

    /// The next four bytes as a little-endian number.
    #[inline]
    pub fn u32(&mut self) -> Option<u32> {
        self.take(4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes)
    }

    /// The next eight bytes as a little-endian number.
    #[inline]
    pub fn u64(&mut self) -> Option<u64> {
        self.take(8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes)
    }

    /// The next varint.
    #[inline]
    pub fn varint(&mut self) -> Option<u64> {
        let (value, length) = varint(self.rest)?;
        self.rest = &self.rest[length..];
        Some(value)
    }

    /// The next varint, as a length or count that must fit a `u32`.
    #[inline]
    pub fn varint_u32(&mut self) -> Option<u32> {
        self.varint().and_then(|v| v.try_into().ok())
    }

    /// The next length-prefixed byte string.
    #[inline]
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.varint()?).ok()?;
        self.take(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip_at_every_width() {
        for bits in 0..64 {
            for value in [(1u64 << bits) - 1, 1 << bits, u64::MAX >> bits] {
                let mut out = Vec::new();
                push_varint(&mut out, value);
                assert_eq!(out.len(), varint_bytes(value));
                assert_eq!(varint(&out), Some((value, out.len())));
                assert_eq!(varint(&out[..out.len() - 1]), None);
            }
        }
    }

    #[test]
    fn varints_that_do_not_fit_are_refused() {
        assert_eq!(varint(&[0xff; 10]), None);
        assert_eq!(varint(&[0x80; 12]), None);
        assert_eq!(varint(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]), None);
    }

    #[test]
    fn a_reader_stops_at_the_end() {
        let mut reader = Reader::new(&[3, b'a', b'b']);
        assert_eq!(reader.bytes(), None);
        let mut out = Vec::new();
        push_bytes(&mut out, b"xyz");
        out.extend_from_slice(&7u32.to_le_bytes());
        let mut reader = Reader::new(&out);
        assert_eq!(reader.bytes(), Some(&b"xyz"[..]));
        assert_eq!(reader.u32(), Some(7));
        assert!(reader.is_empty() && reader.byte().is_none());
    }
}
