//! The bytes of a file in chunks that copies share until one of them is written.

use std::sync::Arc;

/// Bytes of a chunk.
const CHUNK_BYTES: usize = 16 << 10;

type Chunk = Arc<Vec<u8>>;

/// Bytes of a file. Every chunk but the last is full. A clone costs one count per chunk.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    chunks: Vec<Chunk>,
    len: u64,
}

impl Content {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Fills `into` from `offset`; the caller has checked that the range exists.
    pub(super) fn read_at(&self, offset: u64, into: &mut [u8]) {
        let mut done = 0;
        while done < into.len() {
            let (chunk, within) = place(offset + done as u64);
            let bytes = &self.chunks[chunk][within..];
            let count = bytes.len().min(into.len() - done);
            into[done..done + count].copy_from_slice(&bytes[..count]);
            done += count;
        }
    }

    /// Puts `bytes` at `offset`; a gap before it becomes zeros.
    pub(super) fn write_at(&mut self, offset: u64, bytes: &[u8]) {
        if offset > self.len {
            self.grow(offset);
        }
        let mut done = 0;
        while done < bytes.len() {
            let (chunk, within) = place(offset + done as u64);
            let count = (CHUNK_BYTES - within).min(bytes.len() - done);
            if chunk == self.chunks.len() {
                self.chunks.push(Chunk::default());
            }
            let target = Arc::make_mut(&mut self.chunks[chunk]);
            let end = within + count;
            if target.len() < end {
                target.resize(end, 0);
            }
            target[within..end].copy_from_slice(&bytes[done..done + count]);
            done += count;
        }
        self.len = self.len.max(offset + bytes.len() as u64);
    }

    /// Appends zeros up to `len`.
    fn grow(&mut self, len: u64) {
        let zeros = [0; 4096];
        while self.len < len {
            let count = (len - self.len).min(zeros.len() as u64) as usize;
            self.write_at(self.len, &zeros[..count]);
        }
    }

    /// Drops the bytes from `len` on.
    pub(super) fn truncate(&mut self, len: u64) {
        if len >= self.len {
            return;
        }
        let (chunk, within) = place(len);
        self.chunks.truncate(chunk + usize::from(within > 0));
        if within > 0 {
            Arc::make_mut(&mut self.chunks[chunk]).truncate(within);
        }
        self.len = len;
    }

    /// All bytes, piece by piece.
    pub(super) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.chunks.iter().map(|chunk| chunk.as_slice())
    }
}

fn place(offset: u64) -> (usize, usize) {
    ((offset / CHUNK_BYTES as u64) as usize, (offset % CHUNK_BYTES as u64) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    #[test]
    fn agrees_with_a_vector_and_copies_stay_as_they_were() {
        let mut random = Random::new(5);
        let (mut content, mut model) = (Content::default(), Vec::new());
        let mut copies: Vec<(Content, Vec<u8>)> = Vec::new();
        for _ in 0..300 {
            let offset = random.below(model.len() as u64 + 100) as usize;
            if random.one_in(5) {
                content.truncate(offset as u64);
                model.truncate(offset);
            } else {
                let mut bytes = vec![0; random.below(20_000) as usize];
                random.fill(&mut bytes);
                content.write_at(offset as u64, &bytes);
                let end = offset + bytes.len();
                model.resize(model.len().max(offset).max(end), 0);
                model[offset..end].copy_from_slice(&bytes);
            }
            if random.one_in(20) {
                copies.push((content.clone(), model.clone()));
            }
            assert_eq!(content.pieces().collect::<Vec<_>>().concat(), model);
        }
        for (copy, model) in copies {
            let mut bytes = vec![0; copy.len() as usize];
            copy.read_at(0, &mut bytes);
            assert_eq!(bytes, model);
        }
    }
}
