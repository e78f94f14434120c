//! What `bench db --help` and `bench ycsb --help` say. Both read their flags as db_bench and YCSB
//! do, so the texts are written here; a test gives each flag of them to the parsers.

use workloads::dbbench;

/// A word that asks for help, as the only flag or among others.
pub fn is_asked(flags: &[String]) -> bool {
    flags.iter().any(|flag| matches!(flag.as_str(), "--help" | "-h" | "-help"))
}

const DB: &str = "\
Run the benchmarks of db_bench

Usage: shingle bench [OPTIONS] db [--FLAG=VALUE]...

What to run:
  --benchmarks=NAME,...         one after another
  --num=N                       keys [1000000]
  --reads=N, --writes=N, --deletes=N
                                operations of a benchmark [num]
  --duration=SECONDS            end by time, not by count
  --threads=N                   clients [1]
  --use_existing_db             do not begin with an empty database
  --db=DIR                      where the database is; --db before `db` wins
Data:
  --key_size=BYTES              [16]
  --value_size=BYTES            [100]
  --value_size_distribution_type=fixed|uniform|normal
  --value_size_min=BYTES, --value_size_max=BYTES
                                bounds of the other distributions
  --compression_ratio=SHARE     values compress to this share of their length [0.5]
  --key_generator=uniform|leveldb
  --zipf=CONSTANT               choose keys by Zipf's law
  --seed=N
How:
  --batch_size=N                entries in a batch [1]
  --sync                        make each write durable
  --disable_wal                 write without a log
  --rate=N                      operations per second, at an open rate: waiting counts
  --benchmark_write_rate_limit=BYTES, --benchmark_read_rate_limit=N
                                limits per second
  --readwritepercent=PERCENT    share of reads [90]
  --seek_nexts=N                entries to read after a seek
  --reverse_iterator            read them backwards
Report:
  --histogram, --statistics
  --json                        an object a line; of `stats`, all statistics
  --stats_interval_seconds=N    print a line each interval
  --report_file=FILE, --report_interval_seconds=N
                                write a CSV row each interval
Engine, by db_bench's names:
  --block_size, --bloom_bits, --bytes_per_sync, --cache_size, --compression_type,
  --max_background_jobs, --rate_limiter_bytes_per_sec, --write_buffer_size
  Shingle's own options stand before `db`: shingle bench -o NAME=VALUE db ...
";

const YCSB: &str = "\
Run a workload of YCSB

Usage: shingle bench [OPTIONS] ycsb [load|run] [-P FILE] [-p NAME=VALUE]... [-threads N] [-target N]

  load, run       one phase; without, both
  -P FILE         a property file, or workloada to workloadf
  -p NAME=VALUE   a property; wins over the file
  -threads N      clients
  -target N       operations per second over all clients, at an open rate
  -s              accepted, and has no effect

Properties: recordcount, operationcount, insertstart, readproportion, updateproportion,
  insertproportion, scanproportion, readmodifywriteproportion, requestdistribution,
  minscanlength, maxscanlength, scanlengthdistribution, fieldcount, fieldlength, threadcount,
  target, insertorder, zeropadding, maxexecutiontime; and ours: valuebytes, compressionratio,
  flavour (java or c), seed

Example: shingle bench ycsb -P workloada -p recordcount=100000 -threads 4
";

/// The help of `bench db`.
pub fn db() -> String {
    let names: Vec<&str> = dbbench::names().collect();
    format!("{DB}\nBenchmarks:\n{}", lines(&names))
}

/// The help of `bench ycsb`.
pub fn ycsb() -> &'static str {
    YCSB
}

/// Names in lines of a terminal's width.
fn lines(names: &[&str]) -> String {
    let (mut text, mut line) = (String::new(), String::new());
    for name in names {
        if line.len() + name.len() > 76 {
            text += &format!("  {}\n", line.trim_end());
            line.clear();
        }
        line += &format!("{name} ");
    }
    text + &format!("  {}\n", line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_that_the_help_names_is_a_flag() {
        let words = DB.split([' ', ',', '\n', '[', ']']);
        let flags: Vec<&str> =
            words.filter(|word| word.starts_with("--") && word.len() > 2).collect();
        assert!(flags.len() > 35, "{flags:?}");
        for flag in flags.iter().filter(|flag| **flag != "--FLAG=VALUE") {
            let (name, value) = flag.split_once('=').unwrap_or((flag, ""));
            let sample = if value.contains('|') { "uniform" } else { "1" };
            let parsed = dbbench::parse(&[format!("{name}={sample}")]);
            assert!(parsed.is_ok_and(|parsed| parsed.warnings.is_empty()), "{flag}");
        }
    }
}
