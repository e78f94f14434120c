//! What a writer writes: numbered batches that depend only on the writer and the number. So the
//! parent knows the content after any number of them.

use base::random::Random;
use std::collections::BTreeMap;

/// Keys of one writer in each keyspace.
const KEYS: u64 = 160;

/// A keyspace of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Space {
    Default,
    /// With the operator `append`.
    Appended,
}

/// One operation of a batch.
#[derive(Clone, Debug)]
pub enum Op {
    Put(Space, Vec<u8>, Vec<u8>),
    /// A value that expired long ago, or does not expire while the test runs.
    PutExpiring {
        space: Space,
        key: Vec<u8>,
        value: Vec<u8>,
        is_over: bool,
    },
    Delete(Space, Vec<u8>),
    DeleteRange(Vec<u8>, Vec<u8>),
    Append(Vec<u8>, Vec<u8>),
}

/// The key that holds the number of the writer's last batch.
pub fn last_key(writer: u64) -> Vec<u8> {
    format!("{writer}/last").into_bytes()
}

fn key(writer: u64, key: u64) -> Vec<u8> {
    format!("{writer}/{key:04}").into_bytes()
}

fn value(random: &mut Random, writer: u64, number: u64) -> Vec<u8> {
    let bytes = match random.below(20) {
        0 => 20_000,
        1..=9 => random.below(1500),
        _ => random.below(120),
    };
    let mut value = format!("{writer}:{number}:").into_bytes();
    let end = value.len() + bytes as usize;
    value.resize_with(end, || random.below(256) as u8);
    value
}

/// The batch comes as a sorted file.
pub fn is_file(number: u64) -> bool {
    number % 24 == 7
}

/// Orders a batch as a sorted file has it: deleted ranges, then one operation for each key of the
/// default keyspace.
fn as_file(ops: Vec<Op>) -> Vec<Op> {
    let (mut ranges, mut keys) = (Vec::new(), BTreeMap::new());
    for op in ops {
        match op {
            Op::DeleteRange(..) => ranges.push(op),
            Op::Put(Space::Default, ref key, _)
            | Op::PutExpiring { space: Space::Default, ref key, .. }
            | Op::Delete(Space::Default, ref key) => {
                keys.insert(key.clone(), op);
            }
            _ => {}
        }
    }
    ranges.into_iter().chain(keys.into_values()).collect()
}

/// The batch `number` of `writer`; the first has number 1.
pub fn batch(writer: u64, number: u64) -> Vec<Op> {
    let mut random = Random::new(writer << 48 ^ number);
    let mut ops = vec![Op::Put(Space::Default, last_key(writer), number.to_le_bytes().to_vec())];
    for _ in 0..1 + random.below(5) {
        let at = random.below(KEYS);
        ops.push(match random.below(40) {
            0 => Op::DeleteRange(key(writer, at), key(writer, at + 1 + random.below(30))),
            1..=6 => Op::Delete(Space::Default, key(writer, at)),
            7 => Op::Delete(Space::Appended, key(writer, at % 20)),
            17..=20 => {
                let space = if random.one_in(3) { Space::Appended } else { Space::Default };
                let at = if space == Space::Appended { at % 20 } else { at };
                let (key, is_over) = (key(writer, at), random.one_in(2));
                Op::PutExpiring { space, key, value: value(&mut random, writer, number), is_over }
            }
            8..=10 => {
                let value = value(&mut random, writer, number);
                Op::Put(Space::Appended, key(writer, at % 20), value)
            }
            11..=16 => Op::Append(key(writer, at % 20), number.to_le_bytes().to_vec()),
            _ => Op::Put(Space::Default, key(writer, at), value(&mut random, writer, number)),
        });
    }
    if is_file(number) { as_file(ops) } else { ops }
}

/// The content of one writer's keys after its first `last` batches.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub last: u64,
    pub pairs: BTreeMap<(Space, Vec<u8>), Vec<u8>>,
}

impl Model {
    /// Advances to batch `last`.
    pub fn advance(&mut self, writer: u64, last: u64) {
        while self.last < last {
            self.last += 1;
            for op in batch(writer, self.last) {
                self.apply(op);
            }
        }
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Put(space, key, value) => {
                self.pairs.insert((space, key), value);
            }
            Op::PutExpiring { space, key, value, is_over: false } => {
                self.pairs.insert((space, key), value);
            }
            Op::Delete(space, key) | Op::PutExpiring { space, key, is_over: true, .. } => {
                self.pairs.remove(&(space, key));
            }
            Op::DeleteRange(start, end) => {
                self.pairs.retain(|(space, key), _| {
                    *space != Space::Default || *key < start || *key >= end
                });
            }
            Op::Append(key, operand) => {
                self.pairs.entry((Space::Appended, key)).or_default().extend(operand);
            }
        }
    }

    /// The value of a key.
    pub fn get(&self, space: Space, key: &[u8]) -> Option<&[u8]> {
        self.pairs.get(&(space, key.to_vec())).map(Vec::as_slice)
    }

    /// A key of the writer that may exist or not.
    pub fn some_key(writer: u64, random: &mut Random) -> (Space, Vec<u8>) {
        match random.below(6) {
            0 => (Space::Appended, key(writer, random.below(20))),
            _ => (Space::Default, key(writer, random.below(KEYS))),
        }
    }
}
