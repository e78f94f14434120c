//! What a drive counts itself: bytes that hosts wrote and bytes that its medium wrote.
//!
//! `smartctl` reads the counters, and `nvme` the flash of drives that keep the log of the Open
//! Compute Project. A run has two readings and its own ledger between them: the ratio of the
//! drive's two counters is WA2 (AWA), and what hosts wrote beside the ledger is other writers' on
//! the same drive, which is said and not hidden in the ratio.

mod parse;

pub use parse::{Counters, MediaCounter};

use crate::args::device::SmartArgs;
use crate::failure::{Failure, Outcome};
use crate::units;
use serde_json::{Value, json};
use std::process::Command;

/// A share of other writers from which on WA2 is not this run's any more.
const OTHERS_MAX: f64 = 0.05;

/// Reads the counters of `drive`.
pub fn read(args: &SmartArgs, drive: &str) -> Outcome<Counters> {
    let program = args.smartctl.display().to_string();
    let output = Command::new(&args.smartctl).args(["--json=c", "-x", drive]).output();
    let output = output.map_err(|error| {
        Failure::said(
            format!("the counters of {drive} cannot be read: {program}: {error}"),
            "smartctl is part of smartmontools; SHINGLE_SMARTCTL names it where it lies elsewhere",
        )
    })?;
    let why = |what: String| {
        Failure::said(
            format!("the counters of {drive} cannot be read: {what}"),
            "smartctl needs the rights of root, and a drive that nothing virtual hides; try \
             `smartctl -x` on it",
        )
    };
    let json: Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| why(format!("{program} gave no JSON; it needs version 7 or later")))?;
    let mut counters = parse::smartctl(&json).map_err(why)?;
    if counters.media.is_none() && json["device"]["protocol"] == "NVMe" {
        counters.media = read_ocp(args, drive).map(MediaCounter::Bytes);
    }
    Ok(counters)
}

/// Not every drive has that log, and not every machine that program.
fn read_ocp(args: &SmartArgs, drive: &str) -> Option<parse::Counter> {
    let words = ["ocp", "smart-add-log", drive, "--output-format=json"];
    let output = Command::new(&args.nvme).args(words).output().ok()?;
    parse::ocp(&serde_json::from_slice(&output.stdout).ok()?)
}

/// Between two readings.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// Bytes that hosts wrote to the drive, and the step of that counter.
    host: Option<(u64, u64)>,
    /// Bytes that the medium wrote over those.
    wa2: Option<f64>,
    media: Option<u64>,
    /// Bytes of our ledger.
    own: u64,
    /// What the figures leave open.
    notes: Vec<String>,
}

impl Interval {
    /// What `drive` did between `before` and `after`, while our ledger counted `own_bytes`.
    pub fn new(before: &Counters, after: &Counters, own_bytes: u64) -> Outcome<Interval> {
        let host = match (&before.host, &after.host) {
            (Some(before), Some(after)) => Some((less(before.bytes, after.bytes)?, after)),
            _ => None,
        };
        if before.drive != after.drive {
            return Err(Failure::said(
                format!("the drive was {}, and is {} now", before.drive, after.drive),
                "read both from one drive",
            ));
        }
        let mut notes = Vec::new();
        let host_bytes = host.map(|(bytes, _)| bytes);
        let (media, wa2) = match (&before.media, &after.media) {
            (Some(MediaCounter::Bytes(before)), Some(MediaCounter::Bytes(after))) => {
                let bytes = less(before.bytes, after.bytes)?;
                (Some(bytes), host_bytes.and_then(|host| ratio(bytes, host)))
            }
            (
                Some(MediaCounter::Pages { host: host_before, background: back_before, .. }),
                Some(MediaCounter::Pages { host: host_after, background: back_after, .. }),
            ) => {
                let (host, back) =
                    (less(*host_before, *host_after)?, less(*back_before, *back_after)?);
                let wa2 = ratio(host.saturating_add(back), host);
                (wa2.zip(host_bytes).map(|(wa2, bytes)| (wa2 * bytes as f64) as u64), wa2)
            }
            _ => {
                notes.push("the drive does not say what its medium wrote: no WA2".into());
                (None, None)
            }
        };
        let host = host.map(|(bytes, counter)| (bytes, counter.unit_bytes));
        let mut interval = Interval { host, wa2, media, own: own_bytes, notes };
        interval.judge(after);
        Ok(interval)
    }

    /// Says what the figures cannot be trusted with.
    fn judge(&mut self, after: &Counters) {
        let Some((host, unit)) = self.host else {
            self.notes.push("the drive does not say what hosts wrote to it".into());
            return;
        };
        if after.is_guess {
            let note = "smartctl does not know this drive: the units of its attributes are guesses";
            self.notes.push(note.into());
        }
        if host.saturating_add(unit) < self.own {
            self.notes.push(format!(
                "the drive counts less than the {} that were written: some of it is still in the \
                 page cache, or the database is on another drive, or its unit is another",
                units::bytes(self.own)
            ));
        }
        if self.others().is_some_and(|others| others as f64 > host as f64 * OTHERS_MAX) {
            self.notes.push("others wrote to the drive too: WA2 is that of all of them".into());
        }
        if host < unit.saturating_mul(20) {
            let unit = units::bytes(unit);
            self.notes.push(format!("the counter's step of {unit} is too coarse for this run"));
        }
    }

    /// Bytes of other writers on the same drive.
    fn others(&self) -> Option<u64> {
        self.host.map(|(host, _)| host.saturating_sub(self.own))
    }

    /// One value, as benchmarks print them.
    pub fn json(&self, drive: &Counters) -> Value {
        json!({
            "benchmark": "smart",
            "drive": drive.drive,
            "own_write_bytes": self.own,
            "drive_host_write_bytes": self.host.map(|host| host.0),
            "drive_host_step_bytes": self.host.map(|host| host.1),
            "drive_media_write_bytes": self.media,
            "other_write_bytes": self.others(),
            "wa2": self.wa2,
            "notes": self.notes,
        })
    }

    /// Lines for people.
    pub fn text(&self, drive: &Counters) -> String {
        let mut text = format!("drive        : {}\n", drive.drive);
        if let (Some((host, _)), Some(others)) = (self.host, self.others()) {
            text += &format!(
                "    hosts wrote {}, this run {}, others {} ({})\n",
                units::bytes(host),
                units::bytes(self.own),
                units::bytes(others),
                units::share(others, host),
            );
        }
        if let (Some(wa2), Some(media)) = (self.wa2, self.media) {
            text += &format!("    the medium wrote {}: WA2 {wa2:.2}\n", units::bytes(media));
        }
        for note in &self.notes {
            text += &format!("    {note}\n");
        }
        text
    }
}

fn ratio(a: u64, b: u64) -> Option<f64> {
    (b > 0).then(|| a as f64 / b as f64)
}

fn less(before: u64, after: u64) -> Outcome<u64> {
    after.checked_sub(before).ok_or_else(|| {
        Failure::said(
            format!("a counter of the drive went from {before} back to {after}"),
            "it was reset, or the drive is another one: measure again",
        )
    })
}

/// The counters since the drive was made, as lines for people.
pub fn text(counters: &Counters) -> String {
    let mut text = format!("drive {}\n", counters.drive);
    match &counters.host {
        Some(host) => {
            text += &format!("hosts wrote {} ({})\n", units::bytes(host.bytes), host.source);
        }
        None => text += "the drive does not say what hosts wrote to it\n",
    }
    match (&counters.media, wa2(counters)) {
        (Some(media), Some(wa2)) => {
            let source = match media {
                MediaCounter::Bytes(bytes) => {
                    format!("{} ({})", units::bytes(bytes.bytes), bytes.source)
                }
                MediaCounter::Pages { host, background, source } => {
                    format!("{host} + {background} pages ({source})")
                }
            };
            text += &format!("the medium wrote {source}: WA2 {wa2:.2} over its life\n");
        }
        _ => text += "the drive does not say what its medium wrote: no WA2\n",
    }
    if counters.is_guess {
        text += "smartctl does not know this drive: the units of its attributes are guesses\n";
    }
    text
}

/// The same as JSON.
pub fn facts(counters: &Counters) -> Value {
    json!({
        "drive": counters.drive,
        "host_write_bytes": counters.host.as_ref().map(|host| host.bytes),
        "wa2": wa2(counters),
        "is_guess": counters.is_guess,
    })
}

/// Over the drive's life.
fn wa2(counters: &Counters) -> Option<f64> {
    match counters.media.as_ref()? {
        MediaCounter::Bytes(media) => ratio(media.bytes, counters.host.as_ref()?.bytes),
        MediaCounter::Pages { host, background, .. } => {
            ratio(host.saturating_add(*background), *host)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::parse::Counter;
    use super::*;

    const MIB: u64 = 1 << 20;

    fn counters(host: u64, media: Option<MediaCounter>) -> Counters {
        let host = Counter { bytes: host, unit_bytes: 512, source: "241".into() };
        Counters { drive: "X, serial 1".into(), host: Some(host), media, is_guess: false }
    }

    fn bytes(bytes: u64) -> Option<MediaCounter> {
        let source = "233".into();
        Some(MediaCounter::Bytes(Counter { bytes, unit_bytes: 1, source }))
    }

    #[test]
    fn wa2_is_of_the_interval_and_not_of_the_drives_life() {
        let (before, after) =
            (counters(MIB, bytes(9 * MIB)), counters(101 * MIB, bytes(159 * MIB)));
        let interval = Interval::new(&before, &after, 99 * MIB).unwrap();
        assert_eq!((interval.wa2, interval.media), (Some(1.5), Some(150 * MIB)));
        assert_eq!(interval.others(), Some(MIB));
        assert!(interval.notes.is_empty(), "{interval:?}");
        let json = interval.json(&after);
        assert_eq!(
            (json["wa2"].as_f64(), json["other_write_bytes"].as_u64()),
            (Some(1.5), Some(MIB))
        );
    }

    #[test]
    fn pages_give_a_ratio_and_bytes_by_it() {
        let pages = |host, background| {
            Some(MediaCounter::Pages { host, background, source: "247, 248".into() })
        };
        let (before, after) =
            (counters(0, pages(1000, 5000)), counters(90 * MIB, pages(2000, 5500)));
        let interval = Interval::new(&before, &after, 90 * MIB).unwrap();
        assert_eq!((interval.wa2, interval.media), (Some(1.5), Some(135 * MIB)));
        assert_eq!(wa2(&after), Some(3.75));
    }

    #[test]
    fn what_cannot_be_trusted_is_said() {
        let note = |before: &Counters, after: &Counters, own| {
            Interval::new(before, after, own).unwrap().notes.join("; ")
        };
        let (zero, end) = (counters(0, bytes(0)), counters(100 * MIB, bytes(100 * MIB)));
        assert!(note(&zero, &end, 80 * MIB).contains("others wrote"));
        assert!(note(&zero, &end, 101 * MIB).contains("counts less"));
        let silent = counters(100 * MIB, None);
        assert!(note(&counters(0, None), &silent, 100 * MIB).contains("no WA2"));
        let guess = Counters { is_guess: true, ..end.clone() };
        assert!(note(&zero, &guess, 100 * MIB).contains("guesses"));
        let mut coarse = end.clone();
        coarse.host.as_mut().unwrap().unit_bytes = 32 * MIB;
        assert!(note(&zero, &coarse, 100 * MIB).contains("too coarse"));
        assert!(note(&Counters { host: None, ..zero }, &end, 1).contains("what hosts wrote"));
    }

    #[test]
    fn counters_that_run_backwards_and_other_drives_are_errors() {
        let (early, late) = (counters(5, bytes(5)), counters(9, bytes(9)));
        assert!(Interval::new(&late, &early, 0).is_err());
        let other = Counters { drive: "Y".into(), ..late };
        assert!(Interval::new(&early, &other, 0).is_err());
    }
}
