//! What a request costs on three kinds of device, as four numbers each: enough to tell schemes
//! apart, not to predict a drive. The models of the crate `devices` do that, on real runs.
//!
//! The numbers are those of the LWC-tree paper (Yao et al., MSST 2017), Table 2: one request at a
//! time. Of the band-rewriting drive the paper has 5 to 140 random writes a second; 5 is what is
//! left when its cache is full, which it is under lasting writes.

use serde::Serialize;

/// A kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Device {
    /// Its name on the command line.
    pub name: &'static str,
    /// Bytes a second, read one after the other.
    pub read_bytes_per_second: f64,
    /// Bytes a second, written one after the other.
    pub write_bytes_per_second: f64,
    /// Reads a second at random places.
    pub random_reads_per_second: f64,
    /// Writes a second at random places.
    pub random_writes_per_second: f64,
}

/// The devices.
pub const DEVICES: [Device; 3] = [
    Device {
        name: "ssd",
        read_bytes_per_second: 1200e6,
        write_bytes_per_second: 901e6,
        random_reads_per_second: 8647.0,
        random_writes_per_second: 19_712.0,
    },
    Device {
        name: "hdd",
        read_bytes_per_second: 169e6,
        write_bytes_per_second: 155e6,
        random_reads_per_second: 64.0,
        random_writes_per_second: 143.0,
    },
    Device {
        name: "smr",
        read_bytes_per_second: 165e6,
        write_bytes_per_second: 148e6,
        random_reads_per_second: 70.0,
        random_writes_per_second: 5.0,
    },
];

/// What a device is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Load {
    /// Bytes written, in long requests.
    pub write_bytes: f64,
    /// Bytes read, in long requests.
    pub read_bytes: f64,
    /// Places at which writing begins.
    pub random_writes: f64,
    /// Short reads, and places at which a long one begins.
    pub random_reads: f64,
}

impl Device {
    /// Seconds that the device is busy with one request at a time.
    pub fn busy_seconds(&self, load: &Load) -> f64 {
        load.write_bytes / self.write_bytes_per_second
            + load.read_bytes / self.read_bytes_per_second
            + load.random_writes / self.random_writes_per_second
            + load.random_reads / self.random_reads_per_second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_the_sum_of_its_parts() {
        let [ssd, hdd, _] = DEVICES;
        let load = Load {
            write_bytes: 155e6,
            read_bytes: 338e6,
            random_writes: 143.0,
            random_reads: 64.0,
        };
        assert!((hdd.busy_seconds(&load) - 5.0).abs() < 1e-9);
        assert!(ssd.busy_seconds(&load) < 0.5);
    }
}
