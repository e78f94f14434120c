//! What schemes would cost under a workload of equal writes, without data: the question as commands
//! and programs ask it, and the answer as they print it.
//!
//! The schemes are the engine's own; they work on runs of numbers, each of which stands for a group
//! of records of equal size (`tree::simulate`).

use base::{Error, Result};
use serde_json::{Value, json};
use tree::policy::{Descriptor, Limits, by_name, registry};
pub use tree::simulate::{Keys, Report};

/// Simulated records in a table or a memtable, whichever is smaller.
const RECORDS_IN_TABLE: u64 = 64;

/// Numbers of a question are no larger.
const SIZE_MAX: u64 = 1 << 48;

/// Bytes of all records: far below what 64 bits hold, since a merge counts them many times.
const BYTES_MAX: u64 = 1 << 56;

/// Writes of equal size, and how the tree is set up.
#[derive(Clone, Debug)]
pub struct Question {
    /// Names of schemes; none: all.
    pub schemes: Vec<String>,
    /// How keys are drawn.
    pub keys: Keys,
    /// Writes.
    pub writes: u64,
    /// Different keys that there can be; none: as many as writes.
    pub keys_count: Option<u64>,
    /// Bytes of a key and its value.
    pub record_bytes: u64,
    /// Bytes of a memtable.
    pub memtable_bytes: u64,
    /// Bytes of a table; none: the scheme's own.
    pub table_bytes: Option<u64>,
    /// Ratio of the sizes of levels; none: the scheme's own.
    pub fan_out: Option<f64>,
    /// Of all operations, how many are reads that the scheme is told of.
    pub reads_share: f64,
    /// One simulated record stands for this many; none: as many as give a table enough records.
    pub scale: Option<u64>,
}

/// Keys by a name: `uniform`, `zipf` or `sequential`.
///
/// # Errors
///
/// `InvalidArgument`: another name.
pub fn keys_by_name(name: &str) -> Result<Keys> {
    match name {
        "uniform" => Ok(Keys::Uniform),
        "zipf" => Ok(Keys::ZIPF),
        "sequential" => Ok(Keys::Sequential),
        _ => Err(Error::invalid(format!("keys are uniform, zipf or sequential, not {name:?}"))),
    }
}

/// Of how many records one simulated record is made, so that `unit_bytes`, the smallest size that
/// matters, are `in_unit` of them.
pub fn records_of(unit_bytes: u64, in_unit: u64, record_bytes: u64) -> u64 {
    (unit_bytes / in_unit / record_bytes.max(1)).max(1)
}

/// The scale, at least 1.
///
/// # Errors
///
/// `InvalidArgument`: then there are more simulated records than there can be.
pub fn checked_scale(scale: u64, records: u64) -> Result<u64> {
    let scale = scale.max(1);
    let simulated = records / scale;
    if simulated > u64::from(u32::MAX) {
        return Err(Error::invalid(format!(
            "{simulated} simulated records are too many: give a larger scale, or larger tables"
        )));
    }
    Ok(scale)
}

/// A scheme with its limits, to be run on a workload.
pub struct Run {
    /// The scheme.
    pub scheme: &'static Descriptor,
    /// What it works on.
    pub workload: tree::simulate::Workload,
    limits: Limits,
}

impl Question {
    /// A run for each scheme.
    ///
    /// # Errors
    ///
    /// `InvalidArgument`: a name that no scheme has, a number out of its range, or more simulated
    /// records than there can be.
    pub fn runs(&self) -> Result<Vec<Run>> {
        self.check()?;
        let schemes: Vec<&Descriptor> = match self.schemes.is_empty() {
            true => registry().iter().collect(),
            false => self.schemes.iter().map(|name| by_name(name)).collect::<Result<_>>()?,
        };
        let tables = schemes.iter().map(|scheme| self.limits(scheme).table_bytes_max);
        let unit_bytes = tables.fold(self.memtable_bytes, u64::min);
        let keys_count = self.keys_count.unwrap_or(self.writes);
        let records = keys_count.max(self.writes);
        let fits = records_of(unit_bytes, RECORDS_IN_TABLE, self.record_bytes);
        let scale = checked_scale(self.scale.unwrap_or(fits).min(self.writes), records)?;
        let workload = tree::simulate::Workload {
            keys: self.keys,
            writes: self.writes,
            keys_count,
            entry_bytes: self.record_bytes,
            memtable_bytes: self.memtable_bytes,
            scale,
            moves_per_flush: None,
            reads_share: self.reads_share,
        };
        let run = |scheme| Run { scheme, workload, limits: self.limits(scheme) };
        Ok(schemes.into_iter().map(run).collect())
    }

    fn limits(&self, scheme: &Descriptor) -> Limits {
        let limits = (scheme.limits)(self.memtable_bytes);
        Limits {
            table_bytes_max: self.table_bytes.unwrap_or(limits.table_bytes_max),
            fan_out: self.fan_out.unwrap_or(limits.fan_out),
            ..limits
        }
    }

    fn check(&self) -> Result<()> {
        let sizes = [
            ("writes", Some(self.writes)),
            ("keys", self.keys_count),
            ("bytes of a record", Some(self.record_bytes)),
            ("bytes of a memtable", Some(self.memtable_bytes)),
            ("bytes of a table", self.table_bytes),
            ("records that one stands for", self.scale),
        ];
        for (name, size) in sizes {
            if size.is_some_and(|size| !(1..=SIZE_MAX).contains(&size)) {
                return Err(Error::invalid(format!("{name}: a number from 1 to {SIZE_MAX}")));
            }
        }
        let records = self.writes.max(self.keys_count.unwrap_or(0));
        if records.checked_mul(self.record_bytes).is_none_or(|bytes| bytes > BYTES_MAX) {
            return Err(Error::invalid(format!("all records have more than {BYTES_MAX} bytes")));
        }
        if !(0.0..=1.0).contains(&self.reads_share) {
            return Err(Error::invalid("a share is a number from 0 to 1: 0.3 is 30 %"));
        }
        if self.fan_out.is_some_and(|fan_out| !(1.5..=10_000.0).contains(&fan_out)) {
            return Err(Error::invalid("a fan-out is a number from 1.5 to 10000: 10 is usual"));
        }
        Ok(())
    }
}

impl Run {
    /// Runs it; `watch` is told of writes that are done.
    ///
    /// # Errors
    ///
    /// Those of the scheme with these limits.
    pub fn run(&self, watch: &mut dyn FnMut(u64)) -> Result<Report> {
        self.workload.run_watched(self.scheme, self.limits.clone(), watch)
    }
}

/// The names of all schemes.
pub fn scheme_names() -> Vec<String> {
    registry().iter().map(|scheme| scheme.name.to_string()).collect()
}

/// All schemes with what they are, as a JSON array.
pub fn schemes_to_json() -> Value {
    let row = |scheme: &Descriptor| {
        json!({
            "name": scheme.name,
            "summary": scheme.summary,
            "help": scheme.help,
            "paper": scheme.paper,
            "options": scheme.options,
        })
    };
    registry().iter().map(row).collect()
}

/// What a scheme cost, as one JSON object.
pub fn to_json(run: &Run, report: &Report) -> Value {
    json!({
        "scheme": report.name,
        "write_amplification": report.write_amplification(),
        "user_bytes": report.user_bytes,
        "flushed_bytes": report.flushed_bytes,
        "written_bytes_by_level": report.written_bytes,
        "level_bytes": report.level_bytes,
        "level_nodes": report.level_nodes,
        "moves": report.moves,
        "level0_runs_max": report.level0_runs_max,
        "stack_max": report.stack_max,
        "file_bytes_max": report.file_bytes_max,
        "sets": report.sets.0,
        "tables_in_sets": report.sets.1,
        "space_amplification": report.space_amplification,
        "space_amplification_max": report.space_amplification_max,
        "slices_per_get": report.slices_per_get,
        "slices_per_get_read_only": report.slices_per_get_read_only,
        "scale": run.workload.scale,
    })
}
