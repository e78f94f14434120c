//! The settings of a run: names and values in the papers' sizes, and what a scale makes of them.
//!
//! A value may name other settings in braces, as `smr-banded:band={band}`. Which factor a setting
//! shrinks by follows from its name alone, see [`Scale`]: sizes of memtables, tables, levels, bands
//! and buffers by one, amounts of data, capacities and caches by another, values by a third.

use crate::scale::Scale;
use base::{Error, Result};
use devices::models::{self, Kind};
use shingle::{Expert, Options};
use std::collections::BTreeMap;

/// The papers' prototypes keep the index of an open table whole, as LevelDB does.
const INDEX_BLOCK_BYTES: u32 = 1 << 20;

/// Names and values.
pub type Map = BTreeMap<String, String>;

/// A TOML value as a setting.
pub fn text(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

/// The settings of one run, with the scale that shrinks them.
#[derive(Clone, Debug)]
pub struct Settings {
    map: Map,
    scale: Scale,
}

fn broken(name: &str, value: &str, what: &str) -> Error {
    Error::invalid(format!("setting {name} = {value}: {what}"))
}

impl Settings {
    /// `map` with every name in braces replaced.
    pub fn new(map: &Map, scale: &Scale) -> Result<Settings> {
        let mut filled = Map::new();
        for (name, value) in map {
            filled.insert(name.clone(), fill(name, value, map, 0)?);
        }
        Ok(Settings { map: filled, scale: scale.clone() })
    }

    /// The same with `more` on top, for a phase.
    pub fn with(&self, more: &Map) -> Result<Settings> {
        let mut map = self.map.clone();
        map.extend(more.clone());
        Settings::new(&map, &self.scale)
    }

    /// All names and values, in the papers' sizes.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// The scale.
    pub fn scale(&self) -> &Scale {
        &self.scale
    }

    /// A setting as it stands.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.map.get(name).map(String::as_str)
    }

    /// A number; `default` where it is not set.
    pub fn number(&self, name: &str, default: f64) -> Result<f64> {
        let Some(text) = self.get(name) else { return Ok(default) };
        text.parse().map_err(|_| broken(name, text, "not a number"))
    }

    /// What is left to chance follows from it: 1 where it is not set.
    pub fn seed(&self) -> Result<u64> {
        let Some(text) = self.get("seed") else { return Ok(1) };
        let seed = text.parse().ok().filter(|seed| *seed > 0);
        seed.ok_or_else(|| broken("seed", text, "not a whole number from 1 on"))
    }

    /// The same with this seed, where none is set.
    pub fn seeded(&self, seed: u64) -> Result<Settings> {
        let mut map = self.map.clone();
        map.entry("seed".to_string()).or_insert_with(|| seed.to_string());
        let seeded = Settings::new(&map, &self.scale)?;
        seeded.seed().map(|_| seeded)
    }

    /// A switch; off where it is not set.
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }

    /// Bytes in the papers' size: `40MiB`, `10 x 40MiB`, `0.9 x 40MiB`.
    pub fn bytes(&self, name: &str) -> Result<f64> {
        let text = self.get(name).ok_or_else(|| broken(name, "", "it has to be set"))?;
        bytes(text).ok_or_else(|| broken(name, text, "not a number of bytes"))
    }

    fn shrunk(&self, name: &str, by: f64) -> Result<u64> {
        Ok((self.bytes(name)? * by).round().max(1.0) as u64)
    }

    /// Bytes of a key; they do not shrink.
    pub fn key_bytes(&self) -> Result<usize> {
        self.shrunk("key", 1.0).map(|bytes| bytes as usize)
    }

    /// Bytes of a value, shrunk.
    pub fn value_bytes(&self) -> Result<usize> {
        let paper = self.bytes("value")?;
        Ok(if self.is_on("whole_values") { paper as usize } else { self.scale.value_bytes(paper) })
    }

    /// Bytes of a pair in the paper and here.
    pub fn pair_bytes(&self) -> Result<(f64, f64)> {
        let key = self.bytes("key")?;
        let mean = |small: f64, large: f64| -> Result<f64> {
            let share = self.number("small_share", 0.0)?;
            Ok(share * small + (1.0 - share) * large)
        };
        let (paper, here) = (self.bytes("value")?, self.value_bytes()? as f64);
        let Some(_) = self.get("small_value") else { return Ok((key + paper, key + here)) };
        let small = self.bytes("small_value")?;
        let small_here = self.scale.value_bytes(small) as f64;
        Ok((key + mean(small, paper)?, key + mean(small_here, here)?))
    }

    /// Pairs in the bytes of data called `name`, here.
    pub fn pairs(&self, name: &str) -> Result<u64> {
        let (_, pair) = self.pair_bytes()?;
        Ok((self.bytes(name)? * self.scale.data / pair).round().max(1.0) as u64)
    }

    /// A number of requests, as many here for each pair of the database as in the paper.
    pub fn requests(&self, name: &str) -> Result<u64> {
        let count = self.number(name, 0.0)?;
        let (pair, _) = self.pair_bytes()?;
        let pairs = self.bytes("data")? / pair;
        let here = count / pairs * self.pairs("data")? as f64;
        Ok((here.round() as u64).max((self.scale.requests_min as f64).min(count) as u64))
    }

    /// How much longer an entry takes here than in the paper, at a device of shrunk rates.
    pub fn time_factor(&self) -> Result<f64> {
        let (paper, here) = self.pair_bytes()?;
        Ok(here / paper / self.scale.sizes)
    }

    /// Operations in a second, each measured from when it was due; 0 where each begins at the end
    /// of the one before. An operation here takes as long as `time_factor` of the paper's.
    pub fn rate(&self) -> Result<f64> {
        Ok(self.number("rate", 0.0)? / self.time_factor()?)
    }

    /// The options of the engine.
    pub fn options(&self) -> Result<Options> {
        let text =
            |name: &str, default: &'static str| self.get(name).unwrap_or(default).to_string();
        let mut options = Options::new()
            .set("preset", &text("preset", "leveldb"))?
            .set("scheme", &text("scheme", "leveldb"))?
            .set("values", &text("layout", "inline"))?
            .set("compression", &text("compression", "none"))?
            .set("filter_bits_per_key", &text("filter_bits", "0"))?
            .set("background_threads", &text("threads", "1"))?;
        options = options
            .write_buffer_bytes(self.write_buffer()?)
            .cache_bytes(self.shrunk("cache", self.scale.data)?);
        if self.get("separate_from").is_some() {
            let from = self.scale.value_bytes(self.bytes("separate_from")?);
            options = options.value_threshold_bytes(from as u64);
        }
        self.expert(options)
    }

    /// Bytes of the memtable, which stands for a write cache where there is one.
    fn write_buffer(&self) -> Result<u64> {
        let cache = self.size("write_cache")?;
        let bytes = cache.map_or_else(|| self.size("write_buffer"), |bytes| Ok(Some(bytes)))?;
        Ok(bytes.unwrap_or(4 << 20).max(16 << 10))
    }

    /// A size, shrunk; `None` where it is not set.
    pub fn size(&self, name: &str) -> Result<Option<u64>> {
        let size = self.get(name).map(|_| self.shrunk(name, self.scale.sizes));
        Ok(size.transpose()?.map(|bytes| bytes.max(4096)))
    }

    fn expert(&self, options: Options) -> Result<Options> {
        let block = self.get("block").map(|_| self.bytes("block")).transpose()?;
        let step = self.by_size(1 << 20);
        let readahead = self.size("readahead")?;
        let walk = readahead.unwrap_or_else(|| self.by_size(1 << 20));
        let readahead = readahead.unwrap_or_else(|| self.by_size(256 << 10));
        // What stands in a write cache reaches the values when that is flushed.
        let at_commit = self.get("write_cache").is_none();
        // A hundred is what LevelDB allows a table of 2 MB, by the bytes that merging it takes.
        let misses = (100.0 * self.scale.sizes).ceil() as u64;
        // A seek is worth 16 KiB of a merge by default: a part of a table that stays as it is.
        let seek_bytes = (16384.0 * self.scale.sizes).ceil() as u64;
        // Those of the preset `modern`; LevelDB's paces no writes.
        let (slow_max, slow_min) = (self.by_size(256 << 20), self.by_size(4 << 20));
        let mut set = Ok(());
        let options = options.expert(|expert| {
            set = self.set_parameters(expert);
            expert.scheme.seek_misses_min.get_or_insert(misses);
            expert.scheme.seek_bytes.get_or_insert(Some(seek_bytes));
            expert.values.hotness.get_or_insert(false);
            expert.block_bytes = block.map(|bytes| bytes as u32);
            expert.index_block_bytes = Some(INDEX_BLOCK_BYTES);
            expert.step_bytes = Some(step);
            expert.readahead_bytes = Some(readahead as u32);
            expert.device_walk_bytes_max = Some(walk as u32);
            expert.slow_rate_bytes_max = Some(slow_max);
            expert.slow_rate_bytes_min = Some(slow_min);
            expert.values_at_commit = Some(at_commit);
            expert.reserve_bytes = Some(0);
        });
        set.map(|()| options)
    }

    /// Every parameter of a scheme or of a value layout is a setting by its name.
    fn set_parameters(&self, expert: &mut Expert) -> Result<()> {
        for (name, unit) in Expert::parameter_units() {
            let Some(text) = self.get(name) else { continue };
            match unit {
                "bytes" if text != "none" => {
                    let bytes = match name {
                        // A capacity shrinks as the data that it is for.
                        "value_capacity_bytes" => self.shrunk(name, self.scale.data)?,
                        _ => self.size(name)?.unwrap_or_default(),
                    };
                    expert.set_parameter(name, &bytes.to_string())?;
                }
                _ => expert.set_parameter(name, text)?,
            }
        }
        Ok(())
    }

    /// Bytes that the engine or the store has by default, shrunk like any size.
    pub fn by_size(&self, bytes: u64) -> u64 {
        ((bytes as f64 * self.scale.sizes) as u64).max(4096)
    }

    /// The device: every parameter in bytes shrinks, defaults included, capacities as data does;
    /// times stay, so that a table takes as long as in the paper.
    pub fn device(&self) -> Result<String> {
        let text = self.get("device").ok_or_else(|| broken("device", "", "it has to be set"))?;
        shrink_device(text, &self.scale)
    }

    /// Bytes of a band, in the placements that have one and take it from their format.
    pub fn unit_bytes(&self) -> Result<u64> {
        Ok(self.size("unit")?.unwrap_or(0).next_multiple_of(4096))
    }

    /// Everything that a reader of a result has to know, by name.
    pub fn stated(&self) -> Result<Vec<(&'static str, String)>> {
        let or = |name: &str, default: &str| self.get(name).unwrap_or(default).to_string();
        Ok(vec![
            ("scale", self.scale.name.clone()),
            ("compression", or("compression", "none")),
            ("filter_bits", or("filter_bits", "0")),
            ("seek_compaction", if self.is_on("seek_compaction") { "on" } else { "off" }.into()),
            ("ycsb", "YCSB-C: Zipf over the actual keys".into()),
            ("wal", if self.is_on("no_wal") { "none" } else { "written, counted apart" }.into()),
            ("key_bytes", self.key_bytes()?.to_string()),
            ("value_bytes", self.value_bytes()?.to_string()),
        ])
    }
}

fn fill(name: &str, value: &str, map: &Map, depth: u32) -> Result<String> {
    let Some((before, rest)) = value.split_once('{') else { return Ok(value.to_string()) };
    let (wanted, after) =
        rest.split_once('}').ok_or_else(|| broken(name, value, "a brace is not closed"))?;
    let found = map.get(wanted).filter(|_| depth < 16);
    let found = found.ok_or_else(|| broken(name, value, &format!("there is no {wanted}")))?;
    fill(name, &format!("{before}{found}{after}"), map, depth + 1)
}

/// Bytes as the data files write them.
pub fn bytes(text: &str) -> Option<f64> {
    match text.split_once(" x ") {
        Some((factor, of)) => Some(factor.trim().parse::<f64>().ok()? * bytes(of.trim())?),
        None => base::size::parse(text).map(|bytes| bytes as f64),
    }
}

/// The smallest request of the models.
const SECTOR_BYTES: f64 = models::SECTOR_BYTES as f64;

fn shrink_device(text: &str, scale: &Scale) -> Result<String> {
    let (name, mut rest) = text.split_once(':').unwrap_or((text, ""));
    let descriptor = models::by_name(name)?;
    let mut given = Map::new();
    while !rest.is_empty() {
        let (parameter, after) = rest.split_once('=').unwrap_or((rest, ""));
        let is_last = parameter == "member";
        let (value, next) =
            if is_last { (after, "") } else { after.split_once(',').unwrap_or((after, "")) };
        given.insert(parameter.to_string(), value.to_string());
        rest = next;
    }
    let mut shrunk = Vec::new();
    let mut member = None;
    for parameter in descriptor.parameters {
        let value = given.remove(parameter.name);
        let text = value.as_deref().unwrap_or(parameter.default);
        match parameter.kind {
            Kind::Bytes(min, max) => {
                let shrunk_bytes = shrink_bytes(parameter.name, text, (min, max), scale)?;
                shrunk.push(format!("{}={shrunk_bytes}", parameter.name));
            }
            Kind::Model => {
                member = Some(format!("{}={}", parameter.name, shrink_device(text, scale)?))
            }
            Kind::Count(..) if parameter.name.ends_with("-iops") => {
                let rate = parameter.name.replace("-iops", "-rate");
                let count = shrink_iops(text, &rate, &shrunk);
                shrunk.push(format!("{}={count}", parameter.name));
            }
            _ => shrunk.extend(value.map(|value| format!("{}={value}", parameter.name))),
        }
    }
    if let Some((unknown, value)) = given.into_iter().next() {
        return Err(broken(&unknown, &value, &format!("{name} has no such parameter")));
    }
    shrunk.extend(member);
    Ok(format!("{name}:{}", shrunk.join(",")))
}

fn shrink_bytes(name: &str, text: &str, bounds: (&str, &str), scale: &Scale) -> Result<u64> {
    let paper = bytes(text).ok_or_else(|| broken(name, text, "not a number of bytes"))?;
    let by = if matches!(name, "capacity" | "slc") { scale.data } else { scale.sizes };
    let (min, max) = (bytes(bounds.0).unwrap_or(0.0), bytes(bounds.1).unwrap_or(f64::MAX));
    let here = paper * by;
    let whole = if name.ends_with("-rate") {
        here.round()
    } else {
        (here / SECTOR_BYTES).round() * SECTOR_BYTES
    };
    Ok(whole.clamp(min, max) as u64)
}

/// Requests in a second do not shrink, but sectors do not either: at a shrunk rate fewer fit.
fn shrink_iops(text: &str, rate: &str, shrunk: &[String]) -> u64 {
    let found = shrunk.iter().find_map(|pair| pair.strip_prefix(rate)?.strip_prefix('='));
    let rate = found.and_then(|rate| rate.parse::<f64>().ok());
    let most = rate.map_or(f64::MAX, |rate| 0.9 * rate / SECTOR_BYTES);
    text.parse::<f64>().unwrap_or(1.0).min(most).max(1.0) as u64
}
