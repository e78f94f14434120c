//! What the system counts for this process: memory, bytes to and from storage, processor time.
//!
//! Read from `/proc`; `None` on systems without it.

use std::fs;

/// Bytes that this process moved, from `/proc/self/io`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Io {
    /// Bytes fetched from storage.
    pub read_bytes: u64,
    /// Bytes sent towards storage: counted when a page becomes dirty, or at a direct write.
    pub write_bytes: u64,
    /// Bytes that became dirty and were dropped before they reached storage, by truncation or
    /// removal of a file.
    pub cancelled_write_bytes: u64,
}

impl Io {
    /// The counters now.
    pub fn now() -> Option<Io> {
        let text = fs::read_to_string("/proc/self/io").ok()?;
        Some(Io {
            read_bytes: field(&text, "read_bytes:")?,
            write_bytes: field(&text, "write_bytes:")?,
            cancelled_write_bytes: field(&text, "cancelled_write_bytes:")?,
        })
    }

    /// Bytes that were sent towards storage and not taken back.
    pub fn net_write_bytes(&self) -> u64 {
        self.write_bytes.saturating_sub(self.cancelled_write_bytes)
    }
}

/// The largest resident memory since the start of the process, or since [`reset_peak_rss`].
pub fn peak_rss_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    Some(field(&text, "VmHWM:")? * 1024)
}

/// Lets the peak of resident memory begin anew. `false` where the system does not allow it; then
/// [`peak_rss_bytes`] counts from the start of the process.
pub fn reset_peak_rss() -> bool {
    fs::write("/proc/self/clear_refs", "5").is_ok()
}

/// Processor time of all threads of this process, ended ones included, user and system, in seconds.
/// The unit of `/proc/self/stat`, a clock tick, is 10 ms.
pub fn cpu_seconds() -> Option<f64> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    let after_name = &text[text.rfind(')')? + 1..];
    let mut fields = after_name.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((user + system) as f64 / 100.0)
}

/// The first number after `name` at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_at_line_starts_only() {
        let text = "read_bytes: 7\nwrite_bytes: 12\ncancelled_write_bytes: 5\n";
        assert_eq!(field(text, "write_bytes:"), Some(12));
        assert_eq!(field(text, "cancelled_write_bytes:"), Some(5));
        assert_eq!(field(text, "bytes:"), None);
    }

    #[test]
    fn cancelled_bytes_are_taken_off() {
        let io = Io { read_bytes: 0, write_bytes: 10, cancelled_write_bytes: 4 };
        assert_eq!(io.net_write_bytes(), 6);
    }

    #[test]
    fn the_peak_follows_an_allocation_and_its_reset() {
        let resettable = reset_peak_rss();
        let before = peak_rss_bytes().unwrap();
        let block = vec![1u8; 96 << 20];
        let during = peak_rss_bytes().unwrap();
        assert!(during >= before && block.iter().all(|&byte| byte == 1));
        if resettable {
            drop(block);
            assert!(reset_peak_rss());
            assert!(peak_rss_bytes().unwrap() < during);
        }
    }

    #[test]
    fn processor_time_grows() {
        let before = cpu_seconds().unwrap();
        let start = std::time::Instant::now();
        while cpu_seconds().unwrap() <= before {
            assert!(start.elapsed().as_secs() < 60, "a minute of work took no processor time");
        }
    }
}
