//! Numbers for people.

/// `1234567` as `1.23 MB`: decimal units, three digits.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["KB", "MB", "GB", "TB", "PB"];
    if count < 1000 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1000.0;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$} {}", UNITS[unit])
}

/// `1234567` as `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 file`, `2 files`.
pub fn counted(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", count(number))
}

/// Nanoseconds as `850 ns`, `12.3 µs`, `4.56 ms`, `7.89 s`.
pub fn time(ns: u64) -> String {
    const UNITS: [(&str, f64); 3] = [("s", 1e9), ("ms", 1e6), ("µs", 1e3)];
    for (unit, scale) in UNITS {
        let value = ns as f64 / scale;
        if value >= 1.0 {
            let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
            return format!("{value:.digits$} {unit}");
        }
    }
    format!("{ns} ns")
}

/// A share of a whole, in percent.
pub fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".into();
    }
    format!("{:.1}%", part as f64 * 100.0 / whole as f64)
}

/// A ratio, or a dash where there is none.
pub fn ratio(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".into();
    }
    format!("{:.2}", part as f64 / whole as f64)
}

/// `count` per second over `ns` nanoseconds.
pub fn per_second(count: u64, ns: u64) -> u64 {
    (count as f64 * 1e9 / ns.max(1) as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_three_digits_and_a_unit() {
        let texts: Vec<String> =
            [0, 999, 1000, 1_234_567, 99_960_000, 999_600, u64::MAX].map(bytes).into();
        let expected = ["0 B", "999 B", "1.00 KB", "1.23 MB", "100.0 MB", "1.00 MB", "18447 PB"];
        assert_eq!(texts, expected);
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!(
            [0, 12, 123, 1234, 1_234_567].map(count),
            ["0", "12", "123", "1,234", "1,234,567"]
        );
    }

    #[test]
    fn times_take_the_unit_that_fits() {
        assert_eq!([850, 12_300, 4_560_000].map(time), ["850 ns", "12.3 µs", "4.56 ms"]);
    }

    #[test]
    fn no_ratio_of_nothing() {
        assert_eq!((ratio(3, 0), share(1, 0)), ("-".into(), "-".into()));
    }
}
