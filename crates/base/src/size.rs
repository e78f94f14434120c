//! Sizes as people write them: `64M`, `1.5GiB`, `200 MB`. One rule for options, parameters of
//! devices and the command line.
//!
//! K, M, G, T, also as KiB, MiB ..., are powers of 1024; kB (or KB), MB, GB, TB are powers of 1000.
//! A lower-case k, m, g, t stands for the capital. B alone, or nothing, is bytes.

/// Units with their factors; a longer one before one that it ends with.
const UNITS: [(&str, u64); 18] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
    ("K", 1 << 10),
    ("k", 1 << 10),
    ("M", 1 << 20),
    ("m", 1 << 20),
    ("G", 1 << 30),
    ("g", 1 << 30),
    ("T", 1 << 40),
    ("t", 1 << 40),
];

/// What [`parse`] takes, for error messages.
pub const FORM: &str = "a number of bytes, such as 4096, 64K, 512MiB or 10GB";

/// The bytes that `text` spells; `None` where it is no whole number of them, or too large.
pub fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    let unit = UNITS.iter().find_map(|&(unit, factor)| Some((text.strip_suffix(unit)?, factor)));
    let (number, factor) = unit.unwrap_or((text, 1));
    let number = number.trim_end();
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let bytes = whole.parse::<u64>().ok()?.checked_mul(factor)?;
    if fraction.is_empty() {
        return (!number.ends_with('.')).then_some(bytes);
    }
    let digits = u32::try_from(fraction.len()).ok()?;
    let parts = fraction.parse::<u64>().ok()?.checked_mul(factor)?;
    let divisor = 10u64.checked_pow(digits)?;
    let is_whole = parts.is_multiple_of(divisor);
    is_whole.then(|| bytes.checked_add(parts / divisor))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        let cases = [
            ("0", 0),
            ("4096", 4096),
            ("64K", 64 << 10),
            ("64k", 64 << 10),
            ("512MiB", 512 << 20),
            ("1.5G", 3 << 29),
            ("10GB", 10_000_000_000),
            ("10 MB", 10_000_000),
            ("2kB", 2000),
            ("7B", 7),
            (" 1T ", 1 << 40),
        ];
        for (text, bytes) in cases {
            assert_eq!(parse(text), Some(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "K", "-1", "1.", ".5M", "1.3", "1e9", "5X", "5 5", "99999999T", "1.0001K"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
