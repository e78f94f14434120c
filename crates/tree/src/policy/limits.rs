//! The sizes and counts that policies keep to.

use base::{Error, Result, size};

/// Misses that a run may have before it is due, at least, in LevelDB.
pub const MISSES_MIN: u64 = 100;

/// Parameters of a policy. Bytes are bytes of runs, as written.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Levels of the tree, level 0 included.
    pub levels: u8,
    /// Runs in level 0 that make it due for a merge.
    pub level0_runs_trigger: usize,
    /// Runs in level 0 from which each write is delayed a little. None: never by count.
    pub level0_runs_slowdown: Option<usize>,
    /// Runs in level 0 at which writes wait. None: never by count.
    pub level0_runs_stop: Option<usize>,
    /// Bytes that a memtable has when it is flushed.
    pub memtable_bytes: u64,
    /// Bytes that the first level below level 0 may have.
    pub level_bytes_base: u64,
    /// How many times more bytes a level may have than the one above it.
    pub fan_out: f64,
    /// The last level's bytes decide those of the levels above; `level_bytes_base` is then the
    /// least that makes a level of its own worth having.
    pub dynamic_levels: bool,
    /// Bytes at which an output run ends.
    pub table_bytes_max: u64,
    /// Bytes of the level below its own that an output run may overlap. None: any number.
    pub overlap_bytes_max: Option<u64>,
    /// Bytes that a merge may have when its upper inputs grow for free.
    pub expansion_bytes_max: u64,
    /// The deepest level that a flush may go to.
    pub flush_level_max: u8,
    /// Maximum number of moves in progress at a time.
    pub parallel_max: usize,
    /// Nodes whose reads kept missing are merged down.
    pub seek_compaction: bool,
    /// Gets that a run may miss at least before that, however small it is.
    pub seek_misses_min: u64,
    /// Slices that a node may have.
    pub stack_max: usize,
    /// Nodes that a full node is divided into.
    pub division_parts: u32,
    /// Slices linked to a node at which it is merged. None: by the share of reads.
    pub links_max: Option<usize>,
}

impl Limits {
    /// What a scheme has where it says nothing else: LevelDB's sizes, without bounds by count.
    pub(super) fn base(memtable_bytes: u64) -> Limits {
        const MIB: u64 = 1 << 20;
        Limits {
            levels: 7,
            level0_runs_trigger: 4,
            level0_runs_slowdown: None,
            level0_runs_stop: None,
            memtable_bytes: memtable_bytes.max(1),
            level_bytes_base: 10 * MIB,
            fan_out: 10.0,
            dynamic_levels: false,
            table_bytes_max: 2 * MIB,
            overlap_bytes_max: None,
            expansion_bytes_max: 50 * MIB,
            flush_level_max: 2,
            parallel_max: 4,
            seek_compaction: false,
            seek_misses_min: MISSES_MIN,
            stack_max: 1,
            division_parts: 1,
            links_max: None,
        }
    }

    /// Bytes that a level below level 0 may have where sizes are fixed.
    pub(super) fn level_bytes(&self, level: u8) -> f64 {
        (self.level_bytes_base as f64 * self.fan_out.powi(i32::from(level) - 1)).max(1.0)
    }
}

/// A parameter of a scheme: a number of [`Limits`] by its name. Manuals, options, and the lab have
/// it from here.
pub struct LimitField {
    /// Its name.
    pub name: &'static str,
    /// What it counts.
    pub unit: &'static str,
    /// One line of help.
    pub help: &'static str,
    show: fn(&Limits) -> String,
    parse: fn(&mut Limits, &str) -> Option<()>,
}

impl LimitField {
    /// Sets it in `limits` from text, such as `64M` for bytes; `none` where it may be absent.
    pub fn set(&self, limits: &mut Limits, text: &str) -> Result<()> {
        let mut changed = limits.clone();
        let parsed = (self.parse)(&mut changed, text.trim());
        let is_sound = changed.parallel_max > 0 && changed.levels > 1 && changed.fan_out > 1.0;
        if parsed.is_none() || !is_sound {
            let form = if self.unit == "bytes" { size::FORM } else { self.unit };
            let message = format!("{} cannot be `{text}`: it is {form}; {}", self.name, self.help);
            return Err(Error::invalid(message));
        }
        *limits = changed;
        Ok(())
    }

    /// Its value in `limits`, as text.
    pub fn value(&self, limits: &Limits) -> String {
        let text = (self.show)(limits);
        let inner = text.strip_prefix("Some(").and_then(|text| text.strip_suffix(')'));
        inner.map_or_else(|| text.replace("None", "not set"), str::to_string)
    }

    /// Its value in `limits`, for people: `64 MiB`, `yes`, `not set`.
    pub fn text(&self, limits: &Limits) -> String {
        let value = self.value(limits);
        match (self.unit, value.parse::<u64>()) {
            ("bytes", Ok(bytes)) if bytes > 0 && bytes % (1 << 20) == 0 => {
                format!("{} MiB", bytes >> 20)
            }
            ("yes or no", _) => if value == "true" { "yes" } else { "no" }.to_string(),
            _ => value.trim_end_matches(".0").to_string(),
        }
    }
}

/// A value of a parameter.
trait Parameter: Sized {
    fn parse(text: &str) -> Option<Self>;
}

/// Numbers of things: at least one.
macro_rules! counts {
    ($($kind:ty),*) => {
        $(impl Parameter for $kind {
            fn parse(text: &str) -> Option<$kind> {
                text.parse().ok().filter(|&count| count > 0)
            }
        })*
    };
}

counts!(u8, u32, usize);

/// Bytes.
impl Parameter for u64 {
    fn parse(text: &str) -> Option<u64> {
        size::parse(text).filter(|&bytes| bytes > 0)
    }
}

impl Parameter for f64 {
    fn parse(text: &str) -> Option<f64> {
        text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0)
    }
}

impl Parameter for bool {
    fn parse(text: &str) -> Option<bool> {
        match text {
            "yes" | "true" => Some(true),
            "no" | "false" => Some(false),
            _ => None,
        }
    }
}

impl<P: Parameter> Parameter for Option<P> {
    fn parse(text: &str) -> Option<Option<P>> {
        if text == "none" { Some(None) } else { P::parse(text).map(Some) }
    }
}

macro_rules! fields {
    ($($name:ident, $unit:literal, $help:literal;)*) => {
        &[$(LimitField {
            name: stringify!($name),
            unit: $unit,
            help: $help,
            show: |limits| format!("{:?}", limits.$name),
            parse: |limits, text| {
                limits.$name = Parameter::parse(text)?;
                Some(())
            },
        }),*]
    };
}

/// Every parameter that a scheme may name among its options.
pub static LIMIT_FIELDS: &[LimitField] = fields! {
    levels, "levels", "levels of the tree, level 0 included";
    level0_runs_trigger, "runs", "level 0 is due for a move";
    level0_runs_slowdown, "runs", "writes are delayed a little";
    level0_runs_stop, "runs", "writes wait";
    memtable_bytes, "bytes", "what is flushed at a time";
    level_bytes_base, "bytes", "the first level below level 0; with dynamic_levels, the least";
    fan_out, "times", "bytes of a level for those of the one above it";
    dynamic_levels, "yes or no", "the last level decides the size of those above";
    table_bytes_max, "bytes", "a table ends; with lwc and smrdb, the band";
    overlap_bytes_max, "bytes", "of the level below that a table may overlap";
    expansion_bytes_max, "bytes", "a merge whose upper inputs grow for free";
    flush_level_max, "level", "the deepest that a flush may go to";
    parallel_max, "moves", "in progress at a time";
    seek_compaction, "yes or no", "tables that reads miss in are merged down";
    stack_max, "slices", "a node may have";
    division_parts, "nodes", "a full node is divided into";
    links_max, "slices", "linked to a node that make it due; not set: by the share of reads";
};
