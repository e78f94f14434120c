//! Times on the command line: `90s`, `10m`, `2h 30m`, `7d`; and moments in output.

use shingle::Expiry;
use std::time::{Duration, SystemTime};

/// A length of time.
pub fn parse(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|error| format!("{error}; write a number with its unit: 90s, 10m, 2h, 7d"))
}

/// The moment of an expiry, as RFC 3339 in UTC; `never` for none, and for one beyond the calendar.
pub fn moment(expiry: Option<Expiry>) -> String {
    const CALENDAR_MS_MAX: u64 = 253_402_300_799_999; // the end of the year 9999
    match expiry.map(Expiry::as_millis) {
        Some(millis) if millis <= CALENDAR_MS_MAX => {
            let moment = SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
            humantime::format_rfc3339_millis(moment).to_string()
        }
        _ => "never".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(parse("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse("2h 30m"), Ok(Duration::from_secs(9000)));
        assert_eq!(parse("7d"), Ok(Duration::from_secs(7 * 86_400)));
        for wrong in ["", "90", "-1s", "1 parsec"] {
            let error = parse(wrong).expect_err(wrong);
            assert!(error.contains("90s, 10m"), "{error}");
        }
    }

    #[test]
    fn moments_are_readable() {
        let at = |millis| moment(Some(Expiry::from_millis(millis)));
        assert_eq!(at(1_900_000_000_001), "2030-03-17T17:46:40.001Z");
        assert_eq!(at(u64::MAX), "never");
        assert_eq!(moment(None), "never");
    }
}
