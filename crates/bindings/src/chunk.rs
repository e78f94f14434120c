//! Many entries of a scan in one piece of memory, so that a scan crosses the boundary to another
//! language once for all of them.
//!
//! | bytes | content, for each entry |
//! |---|---|
//! | 4 | size of the key, little-endian |
//! | 4 | size of the value, little-endian |
//! | as said | the key, then the value |

use shingle::{Cursor, Result};

/// Sizes before an entry.
const SIZES_BYTES: usize = 8;

/// Entries in a row.
#[derive(Debug, Default)]
pub struct Chunk {
    bytes: Vec<u8>,
    count: usize,
}

impl Chunk {
    /// Entries.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The entries as their table says.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The entries, one after the other.
    pub fn entries(&self) -> Entries<'_> {
        Entries::from(&self.bytes[..])
    }

    /// Removes the entries and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
    }

    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.reserve(SIZES_BYTES + key.len() + value.len());
        self.bytes.extend_from_slice(&(key.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.count += 1;
    }
}

/// Keys and values of a [`Chunk`].
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    rest: &'a [u8],
}

impl<'a> From<&'a [u8]> for Entries<'a> {
    /// The entries in bytes that a chunk has.
    fn from(bytes: &'a [u8]) -> Entries<'a> {
        Entries { rest: bytes }
    }
}

impl<'a> Entries<'a> {
    /// The bytes of the entries that are left.
    pub fn bytes(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let (sizes, rest) = self.rest.split_first_chunk::<SIZES_BYTES>()?;
        let [k0, k1, k2, k3, v0, v1, v2, v3] = *sizes;
        let key_bytes = u32::from_le_bytes([k0, k1, k2, k3]) as usize;
        let value_bytes = u32::from_le_bytes([v0, v1, v2, v3]) as usize;
        let (key, rest) = rest.split_at_checked(key_bytes)?;
        let (value, rest) = rest.split_at_checked(value_bytes)?;
        self.rest = rest;
        Some((key, value))
    }
}

/// Moves the entries from the cursor's position on into `chunk`, in place of what it has, and the
/// cursor behind them: forward, or in reverse. At least one entry where there is one, and no other
/// after `bytes_max` bytes or `count_max` entries.
///
/// # Errors
///
/// Those of the cursor's movements. The entries before the error are in the chunk.
pub fn fill(
    cursor: &mut Cursor,
    in_reverse: bool,
    count_max: usize,
    bytes_max: usize,
    chunk: &mut Chunk,
) -> Result<()> {
    chunk.clear();
    while cursor.valid() {
        chunk.push(cursor.key(), cursor.value());
        if in_reverse {
            cursor.prev()?
        } else {
            cursor.next()?
        }
        if chunk.count >= count_max || chunk.bytes.len() >= bytes_max {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use shingle::{Options, ReadOptions};

    #[test]
    fn chunks_in_both_directions_have_each_entry_once() {
        let dir = tempfile::tempdir().unwrap();
        let db = Options::new().open(dir.path()).unwrap();
        let key = |n: u32| format!("key{n:03}").into_bytes();
        for n in 0..100 {
            db.put(key(n), vec![n as u8; n as usize]).unwrap();
        }
        for in_reverse in [false, true] {
            let mut cursor = db.cursor(ReadOptions::default());
            if in_reverse {
                cursor.seek_to_last().unwrap()
            } else {
                cursor.seek_to_first().unwrap()
            }
            let (mut chunk, mut seen, mut chunks) = (Chunk::default(), Vec::new(), 0);
            loop {
                fill(&mut cursor, in_reverse, 30, 700, &mut chunk).unwrap();
                if chunk.count() == 0 {
                    break;
                }
                assert!(chunk.count() <= 30 && chunk.bytes().len() < 700 + 8 + 6 + 100);
                assert_eq!(chunk.entries().count(), chunk.count());
                let pairs = chunk.entries().map(|(key, value)| (key.to_vec(), value.to_vec()));
                seen.extend(pairs);
                chunks += 1;
            }
            assert!(chunks > 5, "{chunks}");
            if in_reverse {
                seen.reverse();
            }
            let all: Vec<_> = (0..100).map(|n| (key(n), vec![n as u8; n as usize])).collect();
            assert_eq!(seen, all);
        }
    }
}
