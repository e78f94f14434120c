//! Key forms: a number becomes a key.

use base::{Error, Result};

/// db_bench's keys: the number in decimal, padded with zeros on the left to a fixed width, so that
/// byte order is number order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecimalKeys {
    width: usize,
}

impl DecimalKeys {
    /// Keys of `width` bytes for the numbers below `count`.
    pub fn new(width: usize, count: u64) -> Result<DecimalKeys> {
        let digits = count.saturating_sub(1).max(1).ilog10() as usize + 1;
        if width < digits {
            return Err(Error::invalid(format!(
                "a key of {width} bytes cannot hold the {digits} digits of {count} keys; \
                 give a larger --key_size or a smaller --num"
            )));
        }
        Ok(DecimalKeys { width })
    }

    /// Replaces the content of `key` by the key of `number`.
    pub fn write(&self, number: u64, key: &mut Vec<u8>) {
        key.clear();
        key.resize(self.width, b'0');
        let mut rest = number;
        for digit in key.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
    }
}

/// FNV-1a over the 8 little-endian bytes of `number`, as YCSB scatters key numbers.
pub fn fnv64(number: u64) -> u64 {
    number.to_le_bytes().iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211)
    })
}

/// [`fnv64`] as Java's YCSB uses it: the absolute value of the signed result.
pub fn fnv64_java(number: u64) -> u64 {
    (fnv64(number) as i64).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_decimal_and_of_the_asked_width() {
        let mut key = Vec::new();
        DecimalKeys::new(16, 1000).unwrap().write(42, &mut key);
        assert_eq!(key, b"0000000000000042");
        DecimalKeys::new(24, u64::MAX).unwrap().write(u64::MAX, &mut key);
        assert_eq!(key, b"000018446744073709551615");
        DecimalKeys::new(1, 10).unwrap().write(9, &mut key);
        assert_eq!(key, b"9");
    }

    #[test]
    fn a_width_without_room_is_refused() {
        assert!(DecimalKeys::new(3, 1000).is_ok());
        let error = DecimalKeys::new(3, 1001).unwrap_err();
        assert!(error.to_string().contains("--key_size"), "{error}");
    }

    #[test]
    fn fnv_is_the_published_function() {
        // FNV-1a of eight zero bytes.
        assert_eq!(fnv64(0), 0xa8c7_f832_281a_39c5);
        assert_eq!(fnv64_java(0), 0xa8c7_f832_281a_39c5u64.wrapping_neg());
    }
}
