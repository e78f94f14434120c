//! Property files, and the workload that they describe.

use crate::store::WriteOptions;
use base::{Error, Result};
use std::collections::BTreeMap;
use std::str::FromStr;

/// Which family of YCSB a run follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flavour {
    /// Java's YCSB: `zipfian_java`, and "latest" follows the inserts.
    #[default]
    Java,
    /// YCSB-C: `zipfian_c`, and "latest" stays with what was loaded.
    C,
}

impl FromStr for Flavour {
    type Err = Error;

    fn from_str(text: &str) -> Result<Flavour> {
        match text {
            "java" => Ok(Flavour::Java),
            "c" => Ok(Flavour::C),
            _ => Err(Error::invalid(format!("the flavour is java or c, not '{text}'"))),
        }
    }
}

/// How records are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeyDistribution {
    /// All alike.
    Uniform,
    /// One after another.
    Sequential,
    /// Scattered Zipf of the workload's flavour.
    Zipfian,
    /// The newer, the likelier.
    Latest,
    /// `percentile` percent of the choices fall on the newest `fraction` of the records.
    Exponential {
        /// Percent of the choices.
        percentile: f64,
        /// Fraction of the records.
        fraction: f64,
    },
    /// `operations` of the choices fall on the first `data` of the records (both fractions).
    Hotspot {
        /// Fraction of the records.
        data: f64,
        /// Fraction of the choices.
        operations: f64,
    },
}

/// Names and values as they stand in a property file.
#[derive(Clone, Debug, Default)]
pub struct Properties(BTreeMap<String, String>);

impl Properties {
    /// Reads the text of a property file: `name=value` or `name: value`, `#` and `!` for comments.
    pub fn parse(text: &str) -> Result<Properties> {
        let mut properties = Properties::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', '!']) {
                continue;
            }
            let Some((name, value)) = line.split_once(['=', ':']) else {
                let number = index + 1;
                return Err(Error::invalid(format!("line {number} is not name=value: '{line}'")));
            };
            properties.set(name.trim(), value.trim());
        }
        Ok(properties)
    }

    /// Sets a property, as `-p name=value` does.
    pub fn set(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_string(), value.to_string());
    }

    /// The value of a property.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn number<T: FromStr>(&self, name: &str, default: T) -> Result<T> {
        self.get(name).map_or(Ok(default), |text| {
            let mistake = || Error::invalid(format!("{name} takes a number, not '{text}'"));
            text.parse().map_err(|_| mistake())
        })
    }

    fn fraction(&self, name: &str, default: f64) -> Result<f64> {
        let number = self.number(name, default)?;
        if (0.0..=1.0).contains(&number) {
            return Ok(number);
        }
        Err(Error::invalid(format!("{name} must be between 0 and 1, not {number}")))
    }

    fn percent(&self, name: &str, default: f64) -> Result<f64> {
        let percent = self.number(name, default)?;
        if percent > 0.0 && percent < 100.0 {
            return Ok(percent);
        }
        Err(Error::invalid(format!("{name} must be between 0 and 100, not {percent}")))
    }
}

/// A workload: YCSB's properties with YCSB's defaults, and what our own command line adds.
#[derive(Clone, Debug)]
pub struct Workload {
    /// What results are called.
    pub name: String,
    /// Records to load, and to operate on.
    pub record_count: u64,
    /// Operations of the run phase, over all threads.
    pub operation_count: u64,
    /// Number of the first record.
    pub insert_start: u64,
    /// Share of reads, updates, inserts, scans, and reads with a modification written back.
    pub proportions: [f64; 5],
    /// How records are chosen.
    pub distribution: KeyDistribution,
    /// Shortest scan, in records.
    pub scan_length_min: u64,
    /// Longest scan, in records.
    pub scan_length_max: u64,
    /// Scan lengths are Zipf distributed instead of uniform.
    pub scan_length_zipfian: bool,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Clients.
    pub threads: usize,
    /// Operations per second over all clients; 0: as fast as they can.
    pub target: f64,
    /// Keys are the record numbers themselves, not hashes of them.
    pub insert_ordered: bool,
    /// Digits that keys are padded to.
    pub zero_padding: usize,
    /// The run phase ends after this time at the latest; 0: by count.
    pub seconds_max: u64,
    /// Which family of YCSB the run follows.
    pub flavour: Flavour,
    /// Values shrink to this share of their length.
    pub compression_ratio: f64,
    /// Seed of everything random.
    pub seed: u64,
    /// How inserts and updates are made durable.
    pub write_options: WriteOptions,
    /// Write JSON instead of YCSB's lines.
    pub json: bool,
}

impl Workload {
    /// The workload that `properties` describe. Beside YCSB's own names: `flavour` (java, c),
    /// `valuebytes`, `compressionratio`, `seed`.
    pub fn new(name: &str, properties: &Properties) -> Result<Workload> {
        let p = properties;
        let field_bytes: usize = p.number("fieldlength", 100)?;
        let record_bytes = p.number::<usize>("fieldcount", 10)?.saturating_mul(field_bytes);
        let workload = Workload {
            name: name.to_string(),
            record_count: p.number("recordcount", 1000)?,
            operation_count: p.number("operationcount", 1000)?,
            insert_start: p.number("insertstart", 0)?,
            proportions: [
                p.fraction("readproportion", 0.95)?,
                p.fraction("updateproportion", 0.05)?,
                p.fraction("insertproportion", 0.0)?,
                p.fraction("scanproportion", 0.0)?,
                p.fraction("readmodifywriteproportion", 0.0)?,
            ],
            distribution: distribution(p)?,
            scan_length_min: p.number("minscanlength", 1)?,
            scan_length_max: p.number("maxscanlength", 1000)?,
            scan_length_zipfian: is_one_of(p, "scanlengthdistribution", "uniform", "zipfian")?,
            value_bytes: p.number("valuebytes", record_bytes)?,
            threads: p.number("threadcount", 1)?,
            target: p.number("target", 0.0)?,
            insert_ordered: is_one_of(p, "insertorder", "hashed", "ordered")?,
            zero_padding: p.number("zeropadding", 1)?,
            seconds_max: p.number("maxexecutiontime", 0)?,
            flavour: p.get("flavour").map_or(Ok(Flavour::default()), str::parse)?,
            compression_ratio: p.fraction("compressionratio", 1.0)?,
            seed: p.number("seed", 1)?,
            write_options: WriteOptions::default(),
            json: false,
        };
        workload.check()?;
        Ok(workload)
    }

    fn check(&self) -> Result<()> {
        let rules = [
            (self.record_count > 0, "recordcount must be 1 or more"),
            (
                self.insert_start.checked_add(self.record_count).is_some(),
                "insertstart + recordcount is too large",
            ),
            (self.threads > 0, "threadcount must be 1 or more"),
            (self.proportions.iter().sum::<f64>() > 0.0, "all proportions are 0"),
            (self.scan_length_min > 0, "minscanlength must be 1 or more"),
            (self.scan_length_min <= self.scan_length_max, "minscanlength is above maxscanlength"),
            (self.target >= 0.0 && self.target.is_finite(), "target must be 0 or more"),
            (self.zero_padding <= 1000, "zeropadding must be 1000 or less"),
            (self.value_bytes <= 1 << 30, "a value has more than 1 GiB"),
        ];
        match rules.iter().find(|(holds, _)| !holds) {
            Some((_, broken)) => Err(Error::invalid(*broken)),
            None => Ok(()),
        }
    }
}

fn distribution(properties: &Properties) -> Result<KeyDistribution> {
    match properties.get("requestdistribution").unwrap_or("uniform") {
        "uniform" => Ok(KeyDistribution::Uniform),
        "sequential" => Ok(KeyDistribution::Sequential),
        "zipfian" => Ok(KeyDistribution::Zipfian),
        "latest" => Ok(KeyDistribution::Latest),
        "exponential" => Ok(KeyDistribution::Exponential {
            percentile: properties.percent("exponential.percentile", 95.0)?,
            fraction: properties.fraction("exponential.frac", 0.8571428571)?,
        }),
        "hotspot" => Ok(KeyDistribution::Hotspot {
            data: properties.fraction("hotspotdatafraction", 0.2)?,
            operations: properties.fraction("hotspotopnfraction", 0.8)?,
        }),
        other => Err(Error::invalid(format!(
            "requestdistribution is uniform, sequential, zipfian, latest, exponential or hotspot, \
             not '{other}'"
        ))),
    }
}

/// Whether the property has its second possible value, the first being the default.
fn is_one_of(properties: &Properties, name: &str, first: &str, second: &str) -> Result<bool> {
    match properties.get(name) {
        None => Ok(false),
        Some(value) if value == first => Ok(false),
        Some(value) if value == second => Ok(true),
        Some(other) => Err(Error::invalid(format!("{name} is {first} or {second}, not '{other}'"))),
    }
}
