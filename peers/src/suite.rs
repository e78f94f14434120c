//! The cases that belong to a comparison as a whole, by name.
//!
//! Two sizes of entries: 16 + 100 bytes and 16 bytes + 1 KiB. The write buffer is small beside the
//! data, so that every engine has a tree of several levels; so is the block cache, but where a
//! step is called `cached`. All data fits into memory: what the block cache does not have comes
//! from the page cache.

use base::{Error, Result};
use serde::Serialize;

/// Work that every engine does in a process of its own.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    /// For people.
    pub name: String,
    /// Flags of `peers run`.
    pub flags: Vec<String>,
}

/// The names of suites.
pub const NAMES: [&str; 9] =
    ["writes", "reads", "ycsb", "threads", "all", "large", "growth", "values", "hashkv"];

/// Entries of one size: how many there are, and how many operations read them.
struct Size {
    name: &'static str,
    value_bytes: u64,
    num: u64,
    reads: u64,
}

const SIZES: [Size; 2] = [
    Size { name: "16+100 B", value_bytes: 100, num: 1_000_000, reads: 300_000 },
    Size { name: "16 B+1 KiB", value_bytes: 1024, num: 250_000, reads: 100_000 },
];

/// Bytes of a memtable.
const WRITE_BUFFER_BYTES: u64 = 4 << 20;
/// Block cache where it is to be small beside the data.
const SMALL_CACHE_BYTES: u64 = 8 << 20;
/// Block cache where it is to hold all data.
const LARGE_CACHE_BYTES: u64 = 1 << 30;

/// Block cache of `large`.
const CACHE_BYTES: u64 = 256 << 20;

/// What a writer beside readers writes.
const WRITER_BYTES_PER_SECOND: u64 = 10 << 20;

/// The cases of the suite called `name`, with `scale` times the usual numbers of entries and
/// operations. `flags` stand behind those of each first step.
pub fn cases(name: &str, scale: f64, flags: &[String]) -> Result<Vec<Case>> {
    if !NAMES.contains(&name) {
        let names = NAMES.join(", ");
        return Err(Error::invalid(format!("no suite '{name}'; there are {names}")));
    }
    if scale.is_nan() || scale <= 0.0 {
        return Err(Error::invalid("--scale must be above 0"));
    }
    match name {
        "large" => return Ok(large(scale, flags)),
        "growth" => return Ok(growth(scale, flags)),
        "values" => return Ok(values(scale, flags)),
        "hashkv" => return Ok(hashkv(scale, flags)),
        _ => {}
    }
    let is_wanted = |suite: &str| name == "all" || name == suite;
    let mut cases = Vec::new();
    for size in &SIZES {
        let all = [("writes", writes()), ("reads", reads(size, scale))];
        let more = [("ycsb", vec![ycsb()]), ("threads", vec![threads(size, scale)])];
        for (_, made) in all.into_iter().chain(more).filter(|(suite, _)| is_wanted(suite)) {
            cases.extend(made.into_iter().map(|(title, work)| Case {
                name: format!("{title}, {}", size.name),
                flags: with_sizes(&work, size, scale, flags),
            }));
        }
    }
    Ok(cases)
}

/// Those of `cases` that have `part` in their names; never none.
pub fn only(cases: Vec<Case>, part: &str) -> Result<Vec<Case>> {
    let (found, others): (Vec<Case>, Vec<Case>) =
        cases.into_iter().partition(|case| case.name.contains(part));
    if found.is_empty() {
        let names: Vec<String> = others.into_iter().map(|case| case.name).collect();
        let names = names.join("; ");
        return Err(Error::invalid(format!("no case has {part:?} in its name: {names}")));
    }
    Ok(found)
}

/// What a case is called, and its flags.
type Made = (&'static str, String);

/// About 1.1 GB: a load in random order, twice as many overwrites, reads right after these, and
/// reads of the store opened anew.
fn large(scale: f64, flags: &[String]) -> Vec<Case> {
    let sizes = [
        Size { name: "16+100 B", value_bytes: 100, num: 10_000_000, reads: 300_000 },
        Size { name: "16 B+1 KiB", value_bytes: 1024, num: 1_100_000, reads: 100_000 },
    ];
    let reads = "seekrandom,readrandom,readmissing";
    let mut cases = Vec::new();
    for size in &sizes {
        for buffer_mib in [64u64, 4] {
            for (title, drawn) in [("uniform", ""), ("Zipf", " --zipf=0.99")] {
                let work = format!(
                    "--benchmarks=fillrandom,overwrite,overwrite,{reads},readseq,readreverse \
                     --seek_nexts=50{drawn} then:reopened --benchmarks={reads},multireadrandom"
                );
                let own = [
                    format!("--write_buffer_size={}", buffer_mib << 20),
                    format!("--cache_size={CACHE_BYTES}"),
                ];
                let flags: Vec<String> = own.into_iter().chain(flags.iter().cloned()).collect();
                cases.push(Case {
                    name: format!("{title}, {}, buffer of {buffer_mib} MiB", size.name),
                    flags: with_sizes(&work, size, scale, &flags),
                });
            }
        }
    }
    cases
}

/// How bytes written grow with the data: the writes of `large` over 1 to 16 GB, entries of 1 KiB.
fn growth(scale: f64, flags: &[String]) -> Vec<Case> {
    let mut cases = Vec::new();
    for buffer_mib in [64u64, 4] {
        for gigabytes in [1u64, 2, 4, 8, 16] {
            let num = gigabytes * 1_000_000_000 / (16 + 1024);
            let size = Size { name: "16 B+1 KiB", value_bytes: 1024, num, reads: 1 };
            let own = [
                format!("--write_buffer_size={}", buffer_mib << 20),
                format!("--cache_size={CACHE_BYTES}"),
            ];
            let flags: Vec<String> = own.into_iter().chain(flags.iter().cloned()).collect();
            let work = "--benchmarks=fillrandom,overwrite,overwrite";
            cases.push(Case {
                name: format!("{gigabytes} GB, {}, buffer of {buffer_mib} MiB", size.name),
                flags: with_sizes(work, &size, scale, &flags),
            });
        }
    }
    cases
}

/// The updates of HashKV's first experiment: a load, then three times as many updates as there are
/// keys. Not among `all`: its engines are others, those with key-value separation.
fn values(scale: f64, flags: &[String]) -> Vec<Case> {
    let size = Size { name: "24+992 B", value_bytes: 992, num: 300_000, reads: 100_000 };
    let case = |title: &str, drawn: &str| {
        let work = format!(
            "--benchmarks=filluniquerandom,overwrite,overwrite,overwrite,readrandom,readseq \
             --key_size=24{drawn}"
        );
        let flags = with_sizes(&work, &size, scale, flags);
        Case { name: format!("{title}, {}", size.name), flags }
    };
    vec![case("Zipf updates", " --zipf=0.99"), case("uniform updates", "")]
}

/// Bytes of keys and values that a load of `hashkv` writes.
const HASHKV_BYTES: u64 = 2 << 30;
/// Bytes of a key in HashKV's experiments.
const HASHKV_KEY_BYTES: u64 = 24;

/// HashKV's experiments 1, 4, 5, 6 and 7. 6 is for `shingle-hashed-cold` beside `shingle-hashed`,
/// 7 for `shingle-hashed-all` beside it.
fn hashkv(scale: f64, flags: &[String]) -> Vec<Case> {
    let updates = "--benchmarks=filluniquerandom,overwrite,overwrite,overwrite";
    let scan = "--benchmarks=filluniquerandom then:1-MiB --benchmarks=seekrandom --reads=1000";
    let mixed = "--value_size_distribution_type=uniform --value_size_min=16 --value_size_max=1008";
    let mut cases = Vec::new();
    let mut add = |title: &str, pair_bytes: u64, work: String| {
        let value_bytes = pair_bytes - HASHKV_KEY_BYTES;
        let num = HASHKV_BYTES / pair_bytes;
        let size = Size { name: "", value_bytes, num, reads: num };
        let work = work.replacen(' ', &format!(" --key_size={HASHKV_KEY_BYTES} "), 1);
        let flags = with_sizes(&work, &size, scale, flags);
        cases.push(Case { name: format!("{title}, pairs of {pair_bytes} B"), flags });
    };
    add("1 updates", 1016, format!("{updates} --zipf=0.99"));
    for pair_bytes in [256, 4096, 16384, 65536] {
        add("4 updates", pair_bytes, format!("{updates} --zipf=0.99"));
    }
    for pair_bytes in [256, 1024, 4096] {
        add("5 scans", pair_bytes, format!("{scan} --seek_nexts={}", (1 << 20) / pair_bytes));
    }
    for theta in [0.9, 0.99] {
        add(&format!("6 hotness, Zipf {theta}"), 1016, format!("{updates} --zipf={theta}"));
    }
    add("7 mixed sizes", 536, format!("{updates} --zipf=0.99 {mixed}"));
    cases
}

fn writes() -> Vec<Made> {
    vec![
        ("random writes", "--benchmarks=fillrandom,overwrite".into()),
        ("sequential, then Zipf writes", "--benchmarks=fillseq,overwrite --zipf=0.99".into()),
    ]
}

/// The first benchmark with a large cache only fills it.
fn reads(size: &Size, scale: f64) -> Vec<Made> {
    let seeks = scaled(size.reads / 10, scale);
    let large = LARGE_CACHE_BYTES;
    let work = format!(
        "--benchmarks=fillrandom then:uncached --benchmarks=readrandom,readmissing,readseq \
         then:cached --benchmarks=readrandom,readrandom,readmissing,readseq --cache_size={large} \
         then:10-nexts --benchmarks=seekrandom --seek_nexts=10 --reads={seeks} \
         then:100-nexts --benchmarks=seekrandom --seek_nexts=100 --reads={seeks}"
    );
    vec![("reads", work)]
}

fn ycsb() -> Made {
    ("YCSB", "--benchmarks=ycsb-load,ycsb-a,ycsb-b,ycsb-c,ycsb-f,ycsb-d,ycsb-e".into())
}

/// Four readers, and four with a writer beside them; the first benchmark fills the cache. The
/// writer writes as much beside each engine: one that may write as it can slows the readers of an
/// engine the more, the faster it writes.
fn threads(size: &Size, scale: f64) -> Made {
    let reads = scaled(size.reads / 4, scale);
    let (large, rate) = (LARGE_CACHE_BYTES, WRITER_BYTES_PER_SECOND);
    let work = format!(
        "--benchmarks=fillrandom then:4-threads \
         --benchmarks=readrandom,readrandom,readwhilewriting --threads=4 --reads={reads} \
         --cache_size={large} --benchmark_write_rate_limit={rate}"
    );
    ("threads", work)
}

fn scaled(count: u64, scale: f64) -> u64 {
    ((count as f64 * scale) as u64).max(1)
}

/// `work` with the sizes, and then `flags`, behind the flags of the first step.
fn with_sizes(work: &str, size: &Size, scale: f64, flags: &[String]) -> Vec<String> {
    let sizes = [
        format!("--num={}", scaled(size.num, scale)),
        format!("--reads={}", scaled(size.reads, scale)),
        format!("--value_size={}", size.value_bytes),
        format!("--write_buffer_size={WRITE_BUFFER_BYTES}"),
        format!("--cache_size={SMALL_CACHE_BYTES}"),
    ];
    let mut words: Vec<String> = work.split_whitespace().map(str::to_string).collect();
    let end = words.iter().position(|word| word.starts_with("then:")).unwrap_or(words.len());
    words.splice(end..end, sizes.into_iter().chain(flags.iter().cloned()));
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::Work;

    #[test]
    fn every_case_of_every_suite_is_work() {
        let flags = ["--seed=5".to_string()];
        for suite in NAMES {
            for case in cases(suite, 0.01, &flags).unwrap() {
                let work = Work::parse(&case.flags).unwrap();
                assert!(work.warnings.is_empty(), "{:?}", work.warnings);
                assert!(work.steps().all(|step| step.config.seed == 5), "{}", case.name);
                assert_eq!(
                    work.is_deterministic(),
                    !case.name.contains("threads"),
                    "{}",
                    case.name
                );
            }
        }
        let count = |suite| cases(suite, 1.0, &[]).unwrap().len();
        assert_eq!((count("large"), count("growth")), (8, 10));
        assert_eq!((count("values"), count("hashkv")), (2, 11));
        assert_eq!(NAMES[..4].iter().map(|suite| count(suite)).sum::<usize>(), count("all"));
        assert!(cases("most", 1.0, &[]).is_err());
        assert!(cases("all", 0.0, &[]).is_err());
    }

    #[test]
    fn a_part_of_a_suite_has_the_cases_that_are_asked_for() {
        let named = |part: &str| only(cases("hashkv", 1.0, &[]).unwrap(), part);
        let found = named("6 hotness").unwrap();
        assert!(found.len() == 2 && found.iter().all(|case| case.name.starts_with("6 hotness")));
        assert_eq!(named("4 updates, pairs of 4096").unwrap().len(), 1);
        let error = named("8 crashes").err().unwrap().to_string();
        assert!(error.contains("1 updates") && error.contains("7 mixed sizes"), "{error}");
    }
}
