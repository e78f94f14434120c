//! A sample of reads: random gets, gets of missing keys, scans by prefix.

use super::account::Latency;
use super::load::{Data, Spaces};
use super::source::State;
use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;
use base::random::Random;
use hdrhistogram::Histogram;
use shingle::Db;
use std::time::{Duration, Instant};

const OPS_MAX: u64 = 20_000;
const TIME_MAX: Duration = Duration::from_secs(3);
const SCAN_RECORDS_MAX: usize = 100;
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// Measures each kind of read for a few seconds at most.
pub fn sample(db: &Db, data: &Data, seed: u64) -> Outcome<Vec<Latency>> {
    let spaces = Spaces::open(db)?;
    let alive = |state: State| state != State::Deleted;
    let files: Vec<&[u8]> =
        data.files.iter().filter(|f| alive(f.state)).map(|f| &f.key[..]).collect();
    let mut packages: Vec<&[u8]> =
        data.packages.values().filter(|p| alive(p.state)).map(|p| &p.key[..]).collect();
    packages.sort_unstable();
    let words: Vec<&[u8]> = data.words.iter().map(|word| &word[..]).collect();
    let mut random = Random::new(seed);
    let mut latencies = vec![
        measure("get a file", &files, &mut random, |key| Ok(spaces.files.get(key)?.is_some()))?,
        measure("get a package", &packages, &mut random, |key| {
            Ok(spaces.packages.get(key)?.is_some())
        })?,
        measure("get a missing key", &files, &mut random, |key| {
            Ok(spaces.files.get([key, b"~"].concat())?.is_some())
        })?,
        measure("scan a word's files", &words, &mut random, |word| {
            let mut found = false;
            for record in spaces.words.prefix([word, b"/"].concat()).take(SCAN_RECORDS_MAX) {
                record?;
                found = true;
            }
            Ok(found)
        })?,
    ];
    latencies.retain(|latency| latency.ops > 0);
    Ok(latencies)
}

fn measure(
    what: &str,
    keys: &[&[u8]],
    random: &mut Random,
    mut read: impl FnMut(&[u8]) -> Outcome<bool>,
) -> Outcome<Latency> {
    let mut histogram = Histogram::<u64>::new_with_bounds(1, LATENCY_NS_MAX, 3)
        .map_err(|error| Failure::said(format!("histogram: {error}"), ""))?;
    let mut found = 0;
    let interrupt = Interrupt::listen()?;
    let start = Instant::now();
    while !keys.is_empty() && histogram.len() < OPS_MAX && start.elapsed() < TIME_MAX {
        interrupt.check(String::new)?;
        let key = keys[random.below(keys.len() as u64) as usize];
        let begin = Instant::now();
        found += u64::from(read(key)?);
        histogram.saturating_record(begin.elapsed().as_nanos() as u64);
    }
    Ok(Latency {
        what: what.into(),
        ops: histogram.len(),
        found,
        ns: start.elapsed().as_nanos() as u64,
        p50_ns: histogram.value_at_quantile(0.5),
        p99_ns: histogram.value_at_quantile(0.99),
        p999_ns: histogram.value_at_quantile(0.999),
        max_ns: histogram.max(),
    })
}
