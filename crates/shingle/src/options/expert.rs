//! Fields of [`Expert`](super::Expert) by name, so that configuration files, the command and other
//! languages reach them. A field that was not set is `auto`.

use super::OptionEntry;
use super::number::{bytes, number};
use base::{Error, Result};

/// The entry of a field of [`Expert`](super::Expert), and how its value is read.
macro_rules! entry {
    ($field:ident, $unit:literal, $help:literal, $read:expr) => {
        OptionEntry {
            name: stringify!($field),
            unit: $unit,
            help: $help,
            at_run_time: false,
            get: |o| o.expert.$field.map_or("auto".into(), |value| value.to_string()),
            set: |o, v| {
                let read: fn(&str) -> Result<_> = $read;
                let value = read(v)?;
                Ok(o.expert(|expert| expert.$field = Some(value)))
            },
        }
    };
}

/// Every field of [`Expert`](super::Expert) that is a number or a yes or no. It may change its
/// meaning or go in any release.
pub static EXPERT: &[OptionEntry] = &[
    entry!(block_bytes, "bytes", "a data block before compression; default 4 KiB", block),
    entry!(
        index_block_bytes,
        "bytes",
        "an index block, and the part of a filter that goes with it; default 4 KiB",
        block
    ),
    entry!(memtable_bytes, "bytes", "one memtable; several are flushed together", |v| bytes(
        v,
        16 << 10
    )),
    entry!(
        log_bytes,
        "bytes",
        "all logs together at which idle keyspaces are flushed; default four write buffers",
        |v| bytes(v, 64 << 10)
    ),
    entry!(step_bytes, "bytes", "input that a background step works through", |v| bytes(
        v,
        4 << 10
    )),
    entry!(
        filter_bits_step,
        "bits",
        "filter bits that a level has more than the next one below it with data; default 2",
        |v| Ok(number(v, 0, 16)? as u8)
    ),
    entry!(
        filter_bits_last,
        "bits",
        "filter bits of the last level; 0: none there, for programs that hardly miss a key",
        |v| Ok(number(v, 0, 32)? as u8)
    ),
    entry!(
        filter_ribbon_level,
        "level",
        "levels from this one down have Ribbon filters: less memory, more processor time",
        |v| Ok(number(v, 0, 63)? as u8)
    ),
    entry!(
        readahead_bytes,
        "bytes",
        "what compaction prefetches for each input, and a long scan for each run; default 256 KiB",
        prefetch
    ),
    entry!(
        device_walk_bytes_max,
        "bytes",
        "the same for long scans on devices; default up to 1 MiB",
        prefetch
    ),
    entry!(
        map_tables,
        "yes or no",
        "`true`: tables without compression are mapped into memory and read in place. A table that \
         another program cuts short then ends the process",
        |v| v.parse::<bool>().map_err(|_| Error::invalid("unknown"))
    ),
    entry!(
        open_files_max,
        "files",
        "table and value files open for reads; default 25 % of the process's descriptors",
        |v| Ok(number(v, 16, 1 << 30)? as usize)
    ),
    entry!(slow_rate_bytes_max, "bytes", "bytes per second at which throttling begins", rate),
    entry!(slow_rate_bytes_min, "bytes", "the lowest bytes per second of throttled writes", rate),
    entry!(
        values_at_commit,
        "yes or no",
        "`true`: large values go to their segments when they are committed, and are written once",
        |v| v.parse::<bool>().map_err(|_| Error::invalid("unknown"))
    ),
    entry!(
        reserve_bytes,
        "bytes",
        "what is kept free of the medium, for deletions, flushes and openings when it is full",
        |v| bytes(v, 0)
    ),
    entry!(
        expiry_delay_ms,
        "milliseconds",
        "how long an expired value may stay on the medium; default one day",
        |v| number(v, 0, u64::MAX)
    ),
];

fn block(text: &str) -> Result<u32> {
    at_most(bytes(text, 256)?, 64 << 20)
}

fn prefetch(text: &str) -> Result<u32> {
    at_most(bytes(text, 0)?, 64 << 20)
}

fn rate(text: &str) -> Result<u64> {
    bytes(text, 1 << 10)
}

fn at_most(value: u64, max: u32) -> Result<u32> {
    let fits = u32::try_from(value).ok().filter(|value| *value <= max);
    fits.ok_or_else(|| Error::invalid(format!("more than the maximum of {max} bytes")))
}
