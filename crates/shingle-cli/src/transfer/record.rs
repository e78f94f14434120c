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
