//! Measures the memtable: nanoseconds for an insert (random and sequential keys), a get and a step
//! of a scan, and bytes for an entry, at several sizes. Keys have 16 bytes, values 100.
//!
//! `cargo run --release -p shingle --example measure_memtable`
//!
//! Each number is the minimum of several rounds, each on a new memtable, with one thread.

#![allow(clippy::print_stdout)] // It exists to print.

use std::hint::black_box;
use std::time::Instant;

use base::key::SEQUENCE_MAX;
use base::random::Random;
use base::{EntryKind, KeyspaceId, Result};
use shingle::memtable::{Memtable, Writer};
use table::batch::Operation;

const ROUNDS: usize = 7;
const VALUE: [u8; 100] = [b'v'; 100];

type UserKey = [u8; 16];

#[derive(Clone, Copy)]
struct Times {
    insert_ns: f64,
    get_ns: f64,
    miss_ns: f64,
    scan_ns: f64,
    entry_bytes: f64,
}

fn main() -> Result<()> {
    println!("keys        entries   insert ns   get ns   get (miss) ns   scan ns   bytes/entry");
    for (name, make) in KEYS {
        for count in [20_000, 100_000, 500_000] {
            let keys: Vec<UserKey> = make(count);
            let mut least = measure(&keys)?;
            for _ in 1..ROUNDS {
                least = least.min(measure(&keys)?);
            }
            println!(
                "{name:<10} {count:>8} {:>11.0} {:>8.0} {:>15.0} {:>9.1} {:>13.1}",
                least.insert_ns, least.get_ns, least.miss_ns, least.scan_ns, least.entry_bytes
            );
        }
    }
    Ok(())
}

type MakeKeys = fn(u64) -> Vec<UserKey>;
const KEYS: [(&str, MakeKeys); 4] = [
    ("random", random_keys),
    ("user", user_keys),
    ("sequential", sequential_keys),
    ("streams", ten_streams),
];

fn random_keys(count: u64) -> Vec<UserKey> {
    let mut random = Random::new(1);
    (0..count)
        .map(|_| {
            let mut key = UserKey::default();
            random.fill(&mut key);
            key
        })
        .collect()
}

/// Text that shares its start: the first eight bytes tell few of them apart.
fn user_keys(count: u64) -> Vec<UserKey> {
    let mut random = Random::new(2);
    (0..count)
        .map(|_| {
            let text = format!("user{:012}", random.below(1_000_000_000_000));
            text.as_bytes().try_into().expect("4 + 12 digits")
        })
        .collect()
}

fn stream_key(stream: u64, number: u64) -> UserKey {
    (u128::from(stream) << 64 | u128::from(number)).to_be_bytes()
}

fn sequential_keys(count: u64) -> Vec<UserKey> {
    (0..count).map(|number| stream_key(0, number)).collect()
}

fn ten_streams(count: u64) -> Vec<UserKey> {
    (0..count).map(|number| stream_key(number % 10, number)).collect()
}

fn measure(keys: &[UserKey]) -> Result<Times> {
    let count = keys.len() as f64;
    let (memtable, mut writer) = Memtable::new(16 << 20)?;
    let start = Instant::now();
    insert_all(&mut writer, keys)?;
    let insert_ns = start.elapsed().as_nanos() as f64 / count;

    let mut order = keys.to_vec();
    let mut random = Random::new(3);
    (1..order.len()).for_each(|n| order.swap(n, random.below(n as u64 + 1) as usize));
    let get_ns = time_gets(&memtable, &order);
    order.iter_mut().for_each(|key| key[15] ^= 0xa5);
    let miss_ns = time_gets(&memtable, &order);

    let start = Instant::now();
    let mut cursor = memtable.iter();
    let mut scanned_bytes = 0;
    cursor.seek_to_first();
    while cursor.valid() {
        scanned_bytes += cursor.key().len() + cursor.value().len();
        cursor.next();
    }
    black_box(scanned_bytes);
    let scan_ns = start.elapsed().as_nanos() as f64 / count;
    let entry_bytes = memtable.bytes() as f64 / count;
    Ok(Times { insert_ns, get_ns, miss_ns, scan_ns, entry_bytes })
}

fn insert_all(writer: &mut Writer, keys: &[UserKey]) -> Result<()> {
    for (sequence, key) in keys.iter().enumerate() {
        let put = Operation::new(KeyspaceId(0), EntryKind::Put, key, &VALUE)?;
        writer.insert(&put, sequence as u64)?;
    }
    Ok(())
}

fn time_gets(memtable: &Memtable, keys: &[UserKey]) -> f64 {
    let start = Instant::now();
    for key in keys {
        black_box(memtable.get(key, SEQUENCE_MAX));
    }
    start.elapsed().as_nanos() as f64 / keys.len() as f64
}

impl Times {
    fn min(self, other: Times) -> Times {
        Times {
            insert_ns: self.insert_ns.min(other.insert_ns),
            get_ns: self.get_ns.min(other.get_ns),
            miss_ns: self.miss_ns.min(other.miss_ns),
            scan_ns: self.scan_ns.min(other.scan_ns),
            entry_bytes: self.entry_bytes,
        }
    }
}
