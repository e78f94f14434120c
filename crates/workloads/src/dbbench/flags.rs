//! Command lines: `--name=value`, `--name value`, one dash or two, `--name` and `--noname` for
//! booleans.

use super::config::{Config, KeyOrigin};
use crate::values::ValueSize;
use base::{Error, Result};
use std::str::FromStr;

/// A command line that was understood.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// What to do.
    pub config: Config,
    /// Lines for standard error: flags of RocksDB that have no effect here.
    pub warnings: Vec<String>,
}

/// Flags that are on or off.
const BOOLEAN: &[&str] = &[
    "use_existing_db",
    "histogram",
    "statistics",
    "sync",
    "disable_wal",
    "json",
    "reverse_iterator",
];

/// Flags about the engine, handed on as they are.
const ENGINE: &[&str] = &[
    "block_size",
    "bloom_bits",
    "bytes_per_sync",
    "cache_size",
    "compression_type",
    "max_background_jobs",
    "rate_limiter_bytes_per_sec",
    "write_buffer_size",
];

/// Names of RocksDB's flags that have no meaning here: scripts may use them.
const WITHOUT_EFFECT: &str = include_str!("rocksdb_flags.txt");

/// Reads a command line, without the name of the program.
pub fn parse<S: AsRef<str>>(arguments: &[S]) -> Result<Parsed> {
    let mut parser = Parser::default();
    let mut rest = arguments.iter().map(AsRef::as_ref).peekable();
    while let Some(argument) = rest.next() {
        let Some(flag) = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-')) else {
            return Err(Error::invalid(format!(
                "'{argument}' is no flag; flags look like --num=1000"
            )));
        };
        let (name, mut value) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (flag, None),
        };
        let off = name.strip_prefix("no").filter(|name| is_boolean(name));
        if let (Some(name), None) = (off, value) {
            parser.set(name, "false")?;
            continue;
        }
        if value.is_none() && is_boolean(name) {
            value = rest.next_if(|next| as_bool(next).is_some()).or(Some("true"));
        } else if value.is_none() {
            value = rest.next_if(|next| !next.starts_with("--"));
        }
        parser.take(name, value)?;
    }
    parser.finish()
}

fn is_without_effect(name: &str) -> bool {
    WITHOUT_EFFECT.lines().any(|known| known == name)
}

fn is_boolean(name: &str) -> bool {
    BOOLEAN.contains(&name)
}

fn as_bool(text: &str) -> Option<bool> {
    match text {
        "true" | "1" | "yes" => Some(true),
        "false" | "0" | "no" => Some(false),
        _ => None,
    }
}

#[derive(Default)]
struct Parser {
    config: Config,
    warnings: Vec<String>,
    value_size: Option<usize>,
    value_size_min: Option<usize>,
    value_size_max: Option<usize>,
    value_sizes: Option<String>,
}

impl Parser {
    fn take(&mut self, name: &str, value: Option<&str>) -> Result<()> {
        if is_without_effect(name) || name.strip_prefix("no").is_some_and(is_without_effect) {
            self.warnings.push(format!("--{name} has no effect here"));
            return Ok(());
        }
        let missing = || Error::invalid(format!("--{name} needs a value: --{name}=..."));
        let value = value.ok_or_else(missing)?;
        if ENGINE.contains(&name) {
            self.config.engine.insert(name.to_string(), value.to_string());
            return Ok(());
        }
        self.set(name, value)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let config = &mut self.config;
        match name {
            "benchmarks" => {
                let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
                config.benchmarks = names.map(str::to_string).collect();
            }
            "db" => config.db = Some(value.to_string()),
            "num" => config.num = at_least_1(name, value)?,
            "reads" => config.reads = optional(name, value)?,
            "writes" => config.writes = optional(name, value)?,
            "deletes" => config.deletes = optional(name, value)?,
            "duration" => config.duration_seconds = number(name, value)?,
            "threads" => config.threads = at_least_1(name, value)? as usize,
            "key_size" => config.key_size = at_least_1(name, value)? as usize,
            "value_size" => self.value_size = Some(number(name, value)?),
            "value_size_min" => self.value_size_min = Some(number(name, value)?),
            "value_size_max" => self.value_size_max = Some(number(name, value)?),
            "value_size_distribution_type" => self.value_sizes = Some(value.to_string()),
            "batch_size" => config.batch_size = at_least_1(name, value)?,
            "seed" => config.seed = Some(number(name, value)?).filter(|&s| s != 0).unwrap_or(1000),
            "key_generator" => config.key_origin = key_origin(value)?,
            "zipf" => config.zipf = Some(number(name, value)?),
            "stats_interval_seconds" => config.stats_interval_seconds = number(name, value)?,
            "report_file" => config.report_file = Some(value.to_string()),
            "report_interval_seconds" => {
                config.report_interval_seconds = number::<u64>(name, value)?.max(1);
            }
            "benchmark_write_rate_limit" => config.write_rate_bytes = number(name, value)?,
            "benchmark_read_rate_limit" => config.read_rate = rate(name, value)?,
            "rate" => config.rate = rate(name, value)?,
            "readwritepercent" => config.read_percent = number::<u64>(name, value)?.min(100),
            "seek_nexts" => config.seek_nexts = number(name, value)?,
            "compression_ratio" => config.compression_ratio = rate(name, value)?,
            _ => return self.set_boolean(name, value),
        }
        Ok(())
    }

    fn set_boolean(&mut self, name: &str, value: &str) -> Result<()> {
        let config = &mut self.config;
        let place = match name {
            "use_existing_db" => &mut config.use_existing_db,
            "histogram" => &mut config.histogram,
            "statistics" => &mut config.statistics,
            "sync" => &mut config.sync,
            "disable_wal" => &mut config.disable_wal,
            "json" => &mut config.json,
            "reverse_iterator" => &mut config.reverse_iterator,
            "o" | "option" | "scheme" | "preset" | "values" | "device" => {
                return Err(Error::invalid(format!(
                    "--{name} is no flag of db_bench; options of the engine stand before the \
                     benchmark: `bench --{name} ... db`"
                )));
            }
            _ => {
                return Err(Error::invalid(format!(
                    "unknown flag --{name}; `bench db --help` lists the flags"
                )));
            }
        };
        let mistake = || Error::invalid(format!("--{name} takes true or false, not '{value}'"));
        *place = as_bool(value).ok_or_else(mistake)?;
        Ok(())
    }

    fn finish(self) -> Result<Parsed> {
        let mut config = self.config;
        let (min, max) =
            (self.value_size_min.unwrap_or(100), self.value_size_max.unwrap_or(102_400));
        config.value_size = match self.value_sizes.as_deref() {
            None | Some("fixed") => ValueSize::Fixed(self.value_size.unwrap_or(100)),
            Some(_) if min > max => {
                return Err(Error::invalid(format!(
                    "--value_size_min={min} is above --value_size_max={max}"
                )));
            }
            Some("uniform") => ValueSize::Uniform(min, max),
            Some("normal") => ValueSize::Normal(min, max),
            Some(other) => {
                return Err(Error::invalid(format!(
                    "--value_size_distribution_type is fixed, uniform or normal, not '{other}'"
                )));
            }
        };
        Ok(Parsed { config, warnings: self.warnings })
    }
}

fn number<T: FromStr>(name: &str, value: &str) -> Result<T> {
    value.parse().map_err(|_| Error::invalid(format!("--{name} takes a number, not '{value}'")))
}

/// A count that db_bench lets be negative for "not given".
fn optional(name: &str, value: &str) -> Result<Option<u64>> {
    Ok(u64::try_from(number::<i64>(name, value)?).ok())
}

fn at_least_1(name: &str, value: &str) -> Result<u64> {
    match number(name, value)? {
        0 => Err(Error::invalid(format!("--{name} must be 1 or more"))),
        count => Ok(count),
    }
}

fn rate(name: &str, value: &str) -> Result<f64> {
    let rate: f64 = number(name, value)?;
    if rate.is_finite() && rate >= 0.0 {
        return Ok(rate);
    }
    Err(Error::invalid(format!("--{name} must be 0 or more, not {value}")))
}

fn key_origin(value: &str) -> Result<KeyOrigin> {
    match value {
        "uniform" => Ok(KeyOrigin::Uniform),
        "leveldb" => Ok(KeyOrigin::LevelDb),
        _ => Err(Error::invalid(format!("--key_generator is uniform or leveldb, not '{value}'"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_of_a_flag_mean_the_same() {
        for arguments in [["--num=7", "--sync"], ["-num=7", "-sync=1"], ["--num=7", "--sync=true"]]
        {
            let config = parse(&arguments).unwrap().config;
            assert_eq!((config.num, config.sync), (7, true), "{arguments:?}");
        }
        let config = parse(&["--num", "7", "--nosync", "--histogram", "1", "--db", "/x"]).unwrap();
        let config = config.config;
        assert_eq!((config.num, config.sync, config.histogram), (7, false, true));
        assert_eq!(config.db.as_deref(), Some("/x"));
    }

    #[test]
    fn flags_of_the_engine_are_handed_on() {
        let config = parse(&["--write_buffer_size=4194304", "--bloom_bits=10"]).unwrap().config;
        assert_eq!(config.engine_number("write_buffer_size").unwrap(), Some(4 << 20));
        assert_eq!(config.engine_number("bloom_bits").unwrap(), Some(10));
        assert_eq!(config.engine_number("cache_size").unwrap(), None);
    }

    #[test]
    fn known_flags_without_effect_warn_and_unknown_ones_fail() {
        let arguments =
            ["--mmap_read", "--perf_level=2", "--num_levels", "7", "--nommap_write", "--num=3"];
        let parsed = parse(&arguments).unwrap();
        assert_eq!(parsed.warnings.len(), 4);
        assert_eq!(parsed.config.num, 3);
        let error = parse(&["--nmu=3"]).unwrap_err();
        assert!(error.to_string().contains("--nmu"), "{error}");
        for wrong in ["--num=x", "--num=0", "num=1", "--sync=maybe", "--zipf", "--rate=-1"] {
            assert!(parse(&[wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn value_sizes_follow_their_distribution() {
        let uniform = ["--value_size_distribution_type=uniform", "--value_size_max=200"];
        assert_eq!(parse(&uniform).unwrap().config.value_size, ValueSize::Uniform(100, 200));
        let fixed = parse(&["--value_size=8"]).unwrap().config.value_size;
        assert_eq!(fixed, ValueSize::Fixed(8));
    }
}
