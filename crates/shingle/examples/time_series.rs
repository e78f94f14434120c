//! Measurements by sensor and time, kept for some days: old days go by one deletion for each
//! sensor, and their files with them.
//!
//! `cargo run --example time_series`
//!
//! What it shows: keys of sensor and time, so that a period of a sensor is one range; the newest
//! measurement by walking backwards; retention by range deletion, which costs one small record
//! instead of one for each measurement.
#![allow(clippy::print_stdout)]

use shingle::{Db, KeyspaceOptions, Options, PrefixRule, ReadOptions, Result, WriteBatch};
use shingle::{Keyspace, WriteOptions};
use std::ops::Range;
use std::path::Path;

const DAY: u64 = 24 * 60 * 60;

struct Series {
    db: Db,
    /// Keys are the number of the sensor and the second, both big-endian; values are readings.
    readings: Keyspace,
}

impl Series {
    fn open(path: &Path) -> Result<Series> {
        let db = Options::new().open(path)?;
        // Filters contain the sensor, so that scans skip tables without it.
        let options =
            KeyspaceOptions { prefix: PrefixRule::Fixed(4), ..KeyspaceOptions::default() };
        let readings = db.open_or_create_keyspace("readings", options)?;
        Ok(Series { db, readings })
    }

    /// The mean of the readings of a period, and their number.
    fn mean(&self, sensor: u32, period: Range<u64>) -> Result<Option<(f64, usize)>> {
        let (mut sum, mut count) = (0.0, 0);
        for entry in self.readings.range(key(sensor, period.start)..key(sensor, period.end)) {
            sum += reading(&entry?.1);
            count += 1;
        }
        Ok((count > 0).then(|| (sum / count as f64, count)))
    }

    /// The newest reading of a sensor, with its second.
    fn newest(&self, sensor: u32) -> Result<Option<(u64, f64)>> {
        let mut cursor = self.readings.cursor(ReadOptions::prefix(&sensor.to_be_bytes()));
        cursor.seek_to_last()?;
        if !cursor.valid() {
            return Ok(None);
        }
        let second = cursor.key()[4..].try_into().map_or(0, u64::from_be_bytes);
        Ok(Some((second, reading(cursor.value()))))
    }

    /// Drops everything before `second`.
    fn forget(&self, sensors: Range<u32>, second: u64) -> Result<()> {
        let mut batch = WriteBatch::new();
        for sensor in sensors {
            batch.delete_range_in(&self.readings, key(sensor, 0), key(sensor, second))?;
        }
        self.db.write(batch, &WriteOptions::default())
    }
}

fn key(sensor: u32, second: u64) -> [u8; 12] {
    let mut key = [0; 12];
    key[..4].copy_from_slice(&sensor.to_be_bytes());
    key[4..].copy_from_slice(&second.to_be_bytes());
    key
}

fn reading(value: &[u8]) -> f64 {
    value.try_into().map_or(f64::NAN, f64::from_le_bytes)
}

/// What the sensors would read: warm by day, cold by night.
fn temperature(sensor: u32, second: u64) -> f64 {
    let time_of_day = (second % DAY) as f64 / DAY as f64;
    f64::from(15 + sensor) - 5.0 * (time_of_day * std::f64::consts::TAU).cos()
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let home = tempfile::tempdir()?;
    let series = Series::open(&home.path().join("series.db"))?;
    let sensors = 0..3;

    // Ten days, a reading each minute. Each day is one batch for each sensor.
    for day in 0..10 {
        for sensor in sensors.clone() {
            let mut batch = WriteBatch::new();
            for second in (day * DAY..(day + 1) * DAY).step_by(60) {
                let value = temperature(sensor, second).to_le_bytes();
                batch.put_in(&series.readings, key(sensor, second), value)?;
            }
            series.db.write(batch, &WriteOptions::default())?;
        }
    }
    println!("{} readings of 3 sensors", series.readings.iter().count());
    if let Some((second, value)) = series.newest(2)? {
        println!("newest of sensor 2: {value:.1} degrees on day {}", second / DAY);
    }
    let noon = 8 * DAY + DAY / 2;
    if let Some((mean, count)) = series.mean(1, noon - 3600..noon + 3600)? {
        println!("sensor 1 around noon of day 8: {mean:.1} degrees, {count} readings");
    }

    // Seven days are kept. The readings are gone at once; compaction gives their space back.
    series.forget(sensors, 3 * DAY)?;
    println!("{} readings after 3 days were dropped", series.readings.iter().count());
    let old = series.mean(0, 0..3 * DAY)?;
    println!("sensor 0 on days 0 to 2: {}", old.map_or("nothing".into(), |old| format!("{old:?}")));
    series.readings.compact()?;
    println!("space after a compaction: {} KiB", series.db.stats().live_bytes >> 10);
    series.db.close()?;
    Ok(())
}
