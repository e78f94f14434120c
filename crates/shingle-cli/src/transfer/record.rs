//! A record between a database and a file.

use crate::failure::Outcome;
use shingle::{Expiry, Keyspace};
use std::time::Duration;

/// A key with its value, and when the value expires.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// None: without end, or as the keyspace says.
    pub expiry: Option<Expiry>,
}

impl<'a> Record<'a> {
    /// Without an expiry of its own.
    pub fn new(key: &'a [u8], value: &'a [u8]) -> Record<'a> {
        Record { key, value, expiry: None }
    }

    /// Bytes of key and value.
    pub fn bytes(&self) -> u64 {
        (self.key.len() + self.value.len()) as u64
    }

    /// Expires after `ttl`, unless the record has an expiry or there is no `ttl`.
    pub fn expiring_after(self, ttl: Option<Duration>, keyspace: &Keyspace) -> Record<'a> {
        let expiry = self.expiry.or_else(|| ttl.map(|ttl| keyspace.expiry_after(ttl)));
        Record { expiry, ..self }
    }

    /// The keyspace has this record, or the record has expired and the keyspace does not have it.
    pub fn is_in(&self, keyspace: &Keyspace) -> Outcome<bool> {
        // Taken before the value: what has expired then is missing in the read.
        let now = keyspace.expiry_after(Duration::ZERO);
        let is_over = self.expiry.is_some_and(|expiry| expiry <= now);
        let found = keyspace.get_with_expiry(self.key)?;
        let found = found.as_ref().map(|(value, expiry)| (&value[..], *expiry));
        Ok(match (self.expiry, found) {
            (_, None) => is_over,
            (None, Some((value, _))) => value == self.value,
            (Some(_), Some(found)) => found == (self.value, self.expiry),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In March 2030.
    const LATER_MS: u64 = 1_900_000_000_000;

    #[test]
    fn a_record_is_in_a_keyspace_with_its_value_and_its_expiry_only() {
        let home = tempfile::tempdir().unwrap();
        let db = shingle::Options::new().open(home.path()).unwrap();
        let keyspace = db.keyspace("default").unwrap();
        let later = Expiry::from_millis(LATER_MS);
        keyspace.put_expiring("a", "1", later).unwrap();
        keyspace.put("b", "2").unwrap();
        let is_in = |key: &str, value: &str, expiry| {
            let (key, value) = (key.as_bytes(), value.as_bytes());
            Record { key, value, expiry }.is_in(&keyspace).unwrap()
        };
        assert!(is_in("a", "1", Some(later)));
        assert!(!is_in("a", "1", Some(Expiry::from_millis(LATER_MS + 1))), "another expiry");
        assert!(!is_in("a", "2", Some(later)), "another value");
        assert!(!is_in("b", "2", Some(later)), "a value that does not expire");
        assert!(is_in("b", "2", None));
        assert!(!is_in("b", "1", None), "another value");
        assert!(!is_in("c", "3", Some(later)) && !is_in("c", "3", None), "a missing key");
        assert!(is_in("c", "3", Some(Expiry::from_millis(1000))), "it has expired");
    }
}
