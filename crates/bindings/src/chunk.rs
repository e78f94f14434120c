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
    /// The entries, and space for more.
    memory: Vec<u8>,
    /// Bytes of the entries.
    bytes: usize,
    /// Bytes of those that [`Chunk::next_entry`] gave.
    given: usize,
    count: usize,
}

impl Chunk {
    /// Entries.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The entries as their table says.
    pub fn bytes(&self) -> &[u8] {
        &self.memory[..self.bytes]
    }

    /// The entries, one after the other.
    pub fn entries(&self) -> Entries<'_> {
        Entries::from(self.bytes())
    }

    /// Removes the entries and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes = 0;
        self.given = 0;
        self.count = 0;
    }

    /// The first entry, at the next call the one after it, and so on. `None`: all were given.
    #[inline]
    pub fn next_entry(&mut self) -> Option<(&[u8], &[u8])> {
        let rest = self.memory.get(self.given..self.bytes)?;
        let (key, value, rest) = split_entry(rest)?;
        self.given = self.bytes - rest.len();
        Some((key, value))
    }

    /// Whether [`Chunk::next_entry`] gave all.
    pub fn is_given(&self) -> bool {
        self.given == self.bytes
    }

    /// Adds an entry.
    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        let end = self.bytes + SIZES_BYTES + key.len() + value.len();
        if end > self.memory.len() {
            self.memory.resize(end.next_power_of_two(), 0);
        }
        let entry = &mut self.memory[self.bytes..end];
        let sizes = key.len() as u64 & 0xffff_ffff | (value.len() as u64) << 32;
        let (head, rest) = entry.split_at_mut(SIZES_BYTES);
        head.copy_from_slice(&sizes.to_le_bytes());
        let (to_key, to_value) = rest.split_at_mut(key.len());
        to_key.copy_from_slice(key);
        to_value.copy_from_slice(value);
        self.bytes = end;
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

impl<'a> Iterator for Entries<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let (key, value, rest) = split_entry(self.rest)?;
        self.rest = rest;
        Some((key, value))
    }
}

/// The key and value of the first entry, and the bytes behind it. `None`: it is not whole.
#[inline]
pub fn split_entry(entries: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (sizes, rest) = entries.split_first_chunk::<SIZES_BYTES>()?;
    let sizes = u64::from_le_bytes(*sizes);
    let (key, rest) = rest.split_at_checked(sizes as u32 as usize)?;
    let (value, rest) = rest.split_at_checked((sizes >> 32) as usize)?;
    Some((key, value, rest))
}

/// Moves the entries from the cursor's position on into `chunk`, in place of what it has, and the
/// cursor behind them: forward, or in reverse. At least one entry where there is one, and no other
/// after `bytes_max` bytes or `count_max` entries.
///
/// # Errors
///
/// Those of the cursor's movements, when the entries before them were given: the call that finds
/// an error gives these, and every later one the error. An error of one key alone is given once.
pub fn fill(
    cursor: &mut Cursor,
    in_reverse: bool,
    count_max: usize,
    bytes_max: usize,
    chunk: &mut Chunk,
) -> Result<()> {
    chunk.clear();
    // What goes wrong in a movement is the cursor's status until the next one.
    if let Err(error) = cursor.status() {
        if cursor.unmerged().is_some() {
            drop(if in_reverse { cursor.prev() } else { cursor.next() });
        }
        return Err(error);
    }
    let push = |key: &[u8], value: &[u8]| {
        chunk.push(key, value);
        chunk.count < count_max && chunk.bytes < bytes_max
    };
    drop(if in_reverse { cursor.prev_while(push) } else { cursor.next_while(push) });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use shingle::{KeyspaceOptions, Options, ReadOptions};

    fn keys(chunk: &Chunk) -> Vec<Vec<u8>> {
        chunk.entries().map(|(key, _)| key.to_vec()).collect()
    }

    #[test]
    fn an_error_of_one_key_comes_once_after_the_entries_before_it() {
        let dir = tempfile::tempdir().unwrap();
        let db = Options::new().open(dir.path()).unwrap();
        let options =
            KeyspaceOptions { merge_operator: Some("add-u64".into()), ..Default::default() };
        let counts = db.open_or_create_keyspace("counts", options).unwrap();
        for key in ["a", "c"] {
            counts.put(key, 1u64.to_le_bytes()).unwrap();
        }
        counts.put("b", "no number").unwrap();
        counts.merge("b", 1u64.to_le_bytes()).unwrap();
        for (in_reverse, before, after) in [(false, b"a", b"c"), (true, b"c", b"a")] {
            let (mut cursor, mut chunk) = (counts.cursor(ReadOptions::default()), Chunk::default());
            let moved = if in_reverse { cursor.seek_to_last() } else { cursor.seek_to_first() };
            moved.unwrap();
            fill(&mut cursor, in_reverse, 10, 1000, &mut chunk).unwrap();
            assert_eq!(keys(&chunk), [before]);
            fill(&mut cursor, in_reverse, 10, 1000, &mut chunk).unwrap_err();
            assert_eq!(chunk.count(), 0);
            fill(&mut cursor, in_reverse, 10, 1000, &mut chunk).unwrap();
            assert_eq!(keys(&chunk), [after]);
            fill(&mut cursor, in_reverse, 10, 1000, &mut chunk).unwrap();
            assert_eq!(chunk.count(), 0);
        }
    }

    #[test]
    fn a_damaged_block_is_an_error_for_ever_after_the_entries_before_it() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Options::new().set("compression", "none").unwrap().open(dir.path()).unwrap();
        let db = open();
        let key = |n: u32| format!("key{n:05}");
        for n in 0..10_000 {
            db.put(key(n), "value").unwrap();
        }
        db.flush().unwrap();
        let table = db.files().into_iter().find(|file| file.name.ends_with(".table")).unwrap().name;
        db.close().unwrap();
        let mut bytes = std::fs::read(dir.path().join(&table)).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(dir.path().join(&table), bytes).unwrap();
        let db = open();
        // Entry by entry: what can be read before the error.
        let readable = db.iter().take_while(Result::is_ok).count();
        assert!(readable > 100, "{readable}");
        let (mut cursor, mut chunk) = (db.cursor(ReadOptions::default()), Chunk::default());
        cursor.seek_to_first().unwrap();
        let mut given = 0;
        let error = loop {
            match fill(&mut cursor, false, 777, 1 << 20, &mut chunk) {
                Ok(()) => given += chunk.count(),
                Err(error) => break error,
            }
            assert!(chunk.count() > 0, "the error looks like the end");
        };
        assert_eq!((given, error.kind()), (readable, shingle::ErrorKind::Corruption));
        for _ in 0..3 {
            let again = fill(&mut cursor, false, 777, 1 << 20, &mut chunk).unwrap_err();
            assert_eq!((again.message(), chunk.count()), (error.message(), 0));
            assert_eq!(cursor.next().unwrap_err().message(), error.message());
        }
    }

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
