//! Bytes that are written again and again, kept once.
//!
//! A workload writes the same values many times over: into a log, into a table, and again with each
//! compaction, and a generator cuts its values from one buffer. The dictionary learns long runs of
//! bytes that it does not know until it is full; from then on what is written becomes references to
//! it and the few bytes between them. Unlike a compressor it compares most bytes only once.
//!
//! Invariants: bytes of the dictionary never change and never move, so references stay good; what
//! it knows depends on the order of writes alone.
//!
//! Encoded bytes are a sequence of: varint n, n literal bytes, and unless they end the sequence,
//! varint length and varint place of a copy.

use base::checksum::hash64;
use base::coding::{push_varint, varint};

/// Bytes that are kept: several times the buffer that values of a benchmark are cut from.
const BYTES_MAX: usize = 4 << 20;
/// Bytes that are looked up together. Less would be ambiguous: compressible values repeat
/// themselves at short distances.
const WINDOW: usize = 128;
/// A copy of fewer bytes is not worth its reference.
const COPY_MIN: usize = 64;
/// Literal runs of at least this many bytes are learnt.
const LEARN_MIN: usize = 256;
/// Windows are looked up so far from each other; after [`NEAR_LOOKUPS`] misses `FAR_STEP`.
const NEAR_STEP: usize = 32;
const NEAR_LOOKUPS: usize = 8;
const FAR_STEP: usize = WINDOW;
/// Bytes that are compared at a time.
const COMPARE_BYTES: usize = 256;

/// Places of windows by their hash.
const SLOTS: usize = 1 << 22;

/// What was learnt so far.
#[derive(Default)]
pub(super) struct Dictionary {
    bytes: Vec<u8>,
    /// One more than the place of the window with this hash; 0: none. The first one stays.
    places: Vec<u32>,
}

impl Dictionary {
    /// Appends `piece`, encoded, to `out`, and learns what was new in it, to know it next time.
    pub(super) fn encode(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        let (mut done, mut at, mut misses) = (0, 0, 0);
        let mut new = Vec::new();
        while at + WINDOW <= piece.len() {
            let Some(copy) = self.find(piece, done, at) else {
                misses += 1;
                at += if misses <= NEAR_LOOKUPS { NEAR_STEP } else { FAR_STEP };
                continue;
            };
            push_literals(out, &piece[done..copy.start], &mut new);
            push_varint(out, copy.bytes as u64);
            push_varint(out, copy.place as u64);
            (done, misses) = (copy.start + copy.bytes, 0);
            at = done;
        }
        push_literals(out, &piece[done..], &mut new);
        self.learn(&new);
    }

    /// Fills `into` with the bytes from `skip` on of what `encoded` stands for. `false`: they are
    /// not all there, or it is no encoding.
    pub(super) fn decode(&self, mut encoded: &[u8], mut skip: usize, into: &mut [u8]) -> bool {
        let mut rest = into;
        while !rest.is_empty() {
            let Some((count, head)) = varint(encoded) else { return false };
            let Some((literals, after)) = encoded[head..].split_at_checked(count as usize) else {
                return false;
            };
            fill(&mut rest, &mut skip, literals);
            if after.is_empty() {
                return rest.is_empty();
            }
            let Some((count, head)) = varint(after) else { return false };
            let Some((place, tail)) = varint(&after[head..]) else { return false };
            let Some(known) = self.bytes.get(place as usize..) else { return false };
            let Some(known) = known.get(..count as usize) else { return false };
            fill(&mut rest, &mut skip, known);
            encoded = &after[head + tail..];
        }
        true
    }

    /// The longest known run around the window at `at`, not before `done`.
    fn find(&self, piece: &[u8], done: usize, at: usize) -> Option<Copied> {
        let slot = hash64(&piece[at..at + WINDOW]) as usize % SLOTS;
        let place = (*self.places.get(slot)?).checked_sub(1)? as usize;
        let ahead = common(&piece[at..], &self.bytes[place..]);
        let before = piece[done..at].iter().rev().zip(self.bytes[..place].iter().rev());
        let behind = before.take_while(|(a, b)| a == b).count();
        let bytes = behind + ahead;
        let (start, place) = (at - behind, place - behind);
        (bytes >= COPY_MIN).then_some(Copied { start, place, bytes })
    }

    fn learn(&mut self, new: &[&[u8]]) {
        for run in new.iter().filter(|run| run.len() >= LEARN_MIN) {
            let begin = self.bytes.len();
            let run = &run[..run.len().min(BYTES_MAX - begin)];
            self.bytes.extend_from_slice(run);
            self.places.resize(SLOTS, 0);
            for (index, window) in run.windows(WINDOW).enumerate() {
                let slot = &mut self.places[hash64(window) as usize % SLOTS];
                if *slot == 0 {
                    *slot = (begin + index + 1) as u32;
                }
            }
        }
    }
}

/// A run of a piece that the dictionary has.
struct Copied {
    start: usize,
    place: usize,
    bytes: usize,
}

fn push_literals<'a>(out: &mut Vec<u8>, literals: &'a [u8], new: &mut Vec<&'a [u8]>) {
    push_varint(out, literals.len() as u64);
    out.extend_from_slice(literals);
    new.push(literals);
}

/// Passes over `skip` of `bytes` and copies the others to the front of `rest`, as many as it takes.
fn fill(rest: &mut &mut [u8], skip: &mut usize, bytes: &[u8]) {
    let passed = bytes.len().min(*skip);
    *skip -= passed;
    let bytes = &bytes[passed..];
    let count = bytes.len().min(rest.len());
    let (now, later) = std::mem::take(rest).split_at_mut(count);
    now.copy_from_slice(&bytes[..count]);
    *rest = later;
}

/// How many bytes `a` and `b` have in common at their start: by blocks, by words, by bytes.
fn common(a: &[u8], b: &[u8]) -> usize {
    let blocks = a.chunks_exact(COMPARE_BYTES).zip(b.chunks_exact(COMPARE_BYTES));
    let mut at = blocks.take_while(|(a, b)| a == b).count() * COMPARE_BYTES;
    let words = a[at..].as_chunks::<8>().0.iter().zip(b[at..].as_chunks::<8>().0);
    at += words.take_while(|(a, b)| a == b).count() * 8;
    at + a[at..].iter().zip(&b[at..]).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    fn noise(seed: u64, bytes: usize) -> Vec<u8> {
        let mut noise = vec![0; bytes];
        Random::new(seed).fill(&mut noise);
        noise
    }

    fn encoded(dictionary: &mut Dictionary, piece: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        dictionary.encode(piece, &mut out);
        out
    }

    /// Pieces made of old runs and new bytes, cut anywhere; every part of them is given back.
    #[test]
    fn every_part_of_every_piece_is_given_back() {
        let (mut dictionary, mut random) = (Dictionary::default(), Random::new(5));
        let source = noise(1, 100_000);
        let mut kept = Vec::new();
        for _ in 0..300 {
            let mut piece = Vec::new();
            for _ in 0..random.below(6) {
                let start = random.below(90_000) as usize;
                let bytes = random.below(8000) as usize;
                piece.extend(&source[start..source.len().min(start + bytes)]);
                let new = noise(random.next_u64(), random.below(300) as usize);
                piece.extend(new);
                piece.resize(piece.len() + random.below(300) as usize, 7);
            }
            let bytes = encoded(&mut dictionary, &piece);
            kept.push((piece, bytes));
        }
        let known: usize = kept.iter().map(|(piece, _)| piece.len()).sum();
        let stored: usize = kept.iter().map(|(_, bytes)| bytes.len()).sum();
        assert!(stored < known / 5, "{stored} of {known}");
        for (piece, bytes) in &kept {
            for _ in 0..20 {
                let skip = random.below(piece.len() as u64 + 1) as usize;
                let count = random.below((piece.len() - skip) as u64 + 1) as usize;
                let mut part = vec![0; count];
                assert!(dictionary.decode(bytes, skip, &mut part));
                assert!(part == piece[skip..skip + count]);
            }
            assert!(!dictionary.decode(bytes, 0, &mut vec![0; piece.len() + 1]));
        }
    }

    #[test]
    fn a_full_dictionary_learns_nothing_more() {
        let mut dictionary = Dictionary::default();
        let piece = 64 << 10;
        for seed in 0..BYTES_MAX / piece {
            encoded(&mut dictionary, &noise(seed as u64, piece));
        }
        assert!(encoded(&mut dictionary, &noise(3, piece)).len() < 100);
        let late = noise(1 << 40, piece);
        let first = encoded(&mut dictionary, &late);
        assert_eq!(first, encoded(&mut dictionary, &late));
        assert!(first.len() > piece);
        assert_eq!(dictionary.bytes.len(), BYTES_MAX);
    }

    #[test]
    fn broken_references_are_refused() {
        let mut dictionary = Dictionary::default();
        let piece = noise(1, 4096);
        encoded(&mut dictionary, &piece);
        let good = encoded(&mut dictionary, &piece);
        let mut into = vec![0; piece.len()];
        assert!(dictionary.decode(&good, 0, &mut into) && into == piece);
        assert!(!Dictionary::default().decode(&good, 0, &mut into));
        for end in 0..good.len() - 1 {
            assert!(!dictionary.decode(&good[..end], 0, &mut into), "{end}");
        }
    }
}
