//! Writes a block entry by entry; see [`crate::block`] for the layout.

use crate::block::{BUCKET_EMPTY, BUCKET_SHARED, HASH_RESTARTS_MAX, bucket_of};
use base::coding::push_varint;

/// A value of this many bytes gets exactly the capacity that it needs, and a buffer that grew
/// beyond this for one is given back.
const LARGE_BYTES: usize = 1 << 20;

/// What a block has beside its entries, restarts and hashes, at most: lengths, and its end.
const REST_BYTES: usize = 64;

/// A block being written. Its buffers are kept from block to block.
#[derive(Debug, Default)]
pub(crate) struct BlockBuilder {
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    restart_interval: u32,
    since_restart: u32,
    hash_index: bool,
    /// Hash of each user key and the restart it stands after.
    hashes: Vec<(u32, u32)>,
}

impl BlockBuilder {
    pub fn new(restart_interval: u16, hash_index: bool) -> BlockBuilder {
        BlockBuilder {
            restart_interval: u32::from(restart_interval),
            hash_index,
            ..BlockBuilder::default()
        }
    }

    pub fn is_empty(&self) -> bool {
        self.restarts.is_empty()
    }

    /// Bytes that [`BlockBuilder::finish`] will give, about: the hash index is estimated.
    #[inline]
    pub fn estimated_bytes(&self) -> usize {
        self.bytes.len() + 4 * self.restarts.len() + self.hashes.len() * 4 / 3 + 4
    }

    /// Adds an entry, which must be after all others. `shared`: bytes that its user key has in
    /// common with the one before. `internal_key`: user key and trailer. `hash`: of the user key.
    #[inline]
    pub fn add(&mut self, mut shared: usize, internal_key: &[u8], value: &[u8], hash: u64) {
        if self.since_restart == self.restart_interval || self.restarts.is_empty() {
            self.restarts.push(self.bytes.len() as u32);
            self.since_restart = 0;
            shared = 0;
        }
        self.since_restart += 1;
        if self.hash_index {
            let entry = (hash as u32, self.restarts.len() as u32 - 1);
            if self.hashes.last() != Some(&entry) {
                self.hashes.push(entry);
            }
        }
        let stored = &internal_key[shared..];
        if value.len() >= LARGE_BYTES {
            // It ends the block: capacity for that end too, or the buffer would double for it.
            let end = self.estimated_bytes() - self.bytes.len() + REST_BYTES;
            self.bytes.reserve_exact(stored.len() + value.len() + end);
        }
        let unshared = stored.len() - base::key::TRAILER_BYTES;
        if (shared | unshared | value.len()) < 0x80 {
            self.bytes.extend_from_slice(&[shared as u8, unshared as u8, value.len() as u8]);
        } else {
            push_varint(&mut self.bytes, shared as u64);
            push_varint(&mut self.bytes, unshared as u64);
            push_varint(&mut self.bytes, value.len() as u64);
        }
        self.bytes.extend_from_slice(stored);
        self.bytes.extend_from_slice(value);
    }

    /// The bytes of the block. [`BlockBuilder::clear`] begins the next.
    pub fn finish(&mut self) -> &[u8] {
        let mut count = self.restarts.len() as u32;
        for restart in &self.restarts {
            self.bytes.extend_from_slice(&restart.to_le_bytes());
        }
        let buckets = (self.hashes.len() * 4 / 3 + 1).min(usize::from(u16::MAX));
        if self.hash_index && self.restarts.len() <= HASH_RESTARTS_MAX {
            let start = self.bytes.len();
            self.bytes.resize(start + buckets, BUCKET_EMPTY);
            for &(hash, restart) in &self.hashes {
                let bucket = &mut self.bytes[start + bucket_of(u64::from(hash), buckets)];
                *bucket = match *bucket {
                    BUCKET_EMPTY => restart as u8,
                    held if u32::from(held) == restart => held,
                    _ => BUCKET_SHARED,
                };
            }
            self.bytes.extend_from_slice(&(buckets as u16).to_le_bytes());
            count |= 1 << 31;
        }
        self.bytes.extend_from_slice(&count.to_le_bytes());
        &self.bytes
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        if self.bytes.capacity() > LARGE_BYTES {
            self.bytes = Vec::new();
        }
        self.restarts.clear();
        self.hashes.clear();
        self.since_restart = 0;
    }
}
