//! Which writes belong to a sequential stream: the drive follows a few at a time.

/// Streams followed at a time.
const STREAMS: usize = 8;

/// Where each stream goes on, and the bytes that it has had.
#[derive(Clone, Debug, Default)]
pub struct Streams {
    streams: [(u64, u64); STREAMS],
    oldest: usize,
}

impl Streams {
    /// Takes a write; answers the bytes of its stream, itself included.
    pub fn follow(&mut self, offset: u64, bytes: u64) -> u64 {
        let known = self.streams.iter_mut().find(|(next, had)| *next == offset && *had > 0);
        if let Some((next, had)) = known {
            *next = offset + bytes;
            *had += bytes;
            return *had;
        }
        if let Some(slot) = self.streams.get_mut(self.oldest) {
            *slot = (offset + bytes, bytes);
        }
        self.oldest = (self.oldest + 1) % STREAMS;
        bytes
    }

    /// All streams end. A flush does this: small synced appends are no streams.
    pub fn end(&mut self) {
        *self = Streams::default();
    }
}
