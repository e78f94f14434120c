//! How many bytes a range of keys takes, about.
//!
//! A range up to [`READ_BYTES_MAX`] is read, and its keys and values are counted. What is behind
//! that is estimated from the files.

use shingle::{Db, FileInfo, ReadOptions, Result};

/// Bytes that are read for a range at most, so that a call takes milliseconds.
const READ_BYTES_MAX: u64 = 4 << 20;

/// About how many bytes the keys from `start` on and before `limit` take, with their values.
pub fn approximate(db: &Db, start: &[u8], limit: &[u8]) -> Result<u64> {
    if limit <= start {
        return Ok(0);
    }
    let within = ReadOptions { fill_cache: false, ..ReadOptions::range(start..limit) };
    let mut cursor = db.cursor(within);
    cursor.seek_to_first()?;
    let mut bytes = 0;
    while cursor.valid() && bytes < READ_BYTES_MAX {
        bytes += (cursor.key().len() + cursor.value().len()) as u64;
        cursor.next()?;
    }
    if !cursor.valid() {
        return Ok(bytes);
    }
    let first = cursor.key().to_vec();
    cursor.seek_to_last()?;
    let rest = Span { first, last: cursor.key().to_vec() };
    let all = Span::of(db)?;
    let files = db.files();
    let of_file = |file: &FileInfo| {
        let last = file.largest.as_deref().unwrap_or(&all.last).min(&all.last);
        let first = file.smallest.as_slice().max(&all.first);
        rest.share_of(first, last) * file.live_bytes as f64
    };
    Ok(bytes + files.iter().map(of_file).sum::<f64>() as u64)
}

/// Keys from the first to the last.
struct Span {
    first: Vec<u8>,
    last: Vec<u8>,
}

impl Span {
    /// The keys of a database.
    fn of(db: &Db) -> Result<Span> {
        let mut cursor = db.cursor(ReadOptions { fill_cache: false, ..ReadOptions::default() });
        cursor.seek_to_first()?;
        let first = cursor.key().to_vec();
        cursor.seek_to_last()?;
        Ok(Span { first, last: cursor.key().to_vec() })
    }

    /// Which part of the keys of a file is in the span, as if they were spread evenly.
    fn share_of(&self, first: &[u8], last: &[u8]) -> f64 {
        if self.last.as_slice() < first || self.first.as_slice() > last {
            return 0.0;
        }
        let from =
            if self.first.as_slice() <= first { 0.0 } else { place(&self.first, first, last) };
        let to = if self.last.as_slice() >= last { 1.0 } else { place(&self.last, first, last) };
        to - from
    }
}

/// Where `key` stands between `first`, at 0, and `last`, at 1.
fn place(key: &[u8], first: &[u8], last: &[u8]) -> f64 {
    let shared = first.iter().zip(last).take_while(|(a, b)| a == b).count();
    let number = |key: &[u8]| {
        let digits = (0..8).map(|at| f64::from(key.get(shared + at).copied().unwrap_or(0)));
        digits.fold(0.0, |number, digit| number * 256.0 + digit)
    };
    let (low, high) = (number(first), number(last));
    if high <= low { 0.5 } else { ((number(key) - low) / (high - low)).clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_the_part_of_a_file_that_their_keys_have() {
        let share = |first: &str, last: &str| {
            let span = Span { first: first.into(), last: last.into() };
            span.share_of(b"key100", b"key900")
        };
        assert_eq!((share("", "z"), share("key100", "key900")), (1.0, 1.0));
        assert_eq!((share("a", "b"), share("key901", "z")), (0.0, 0.0));
        assert!((share("key500", "z") - 0.5).abs() < 0.01, "{}", share("key500", "z"));
        assert!((share("key2", "key3") - 0.125).abs() < 0.01, "{}", share("key2", "key3"));
    }

    #[test]
    fn ranges_that_are_read_and_ranges_that_are_estimated_have_about_their_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let options = shingle::Options::new().compression(shingle::Compression::None);
        let db = options.open(folder.path()).unwrap();
        for n in 0..20_000 {
            db.put(format!("key{n:05}"), vec![n as u8; 992]).unwrap();
        }
        db.compact().unwrap();
        let bytes = |start: &str, limit: &str| {
            approximate(&db, start.as_bytes(), limit.as_bytes()).unwrap()
        };
        assert_eq!(bytes("key00100", "key00200"), 100_000);
        assert_eq!((bytes("l", "m"), bytes("m", "l")), (0, 0));
        for (limit, expected) in [("key10000", 10e6), ("key15000", 15e6), ("z", 20e6)] {
            let found = bytes("", limit) as f64;
            assert!((found / expected - 1.0).abs() < 0.2, "{limit}: {found}");
        }
    }
}
