//! Numbers in the texts of options.

use base::{Error, Result};

/// Bytes, with or without a unit.
pub(super) fn bytes(text: &str, min: u64) -> Result<u64> {
    let number = base::size::parse(text)
        .ok_or_else(|| Error::invalid(format!("not {}", base::size::FORM)))?;
    if number < min {
        return Err(Error::invalid(format!("less than the minimum of {min} bytes")));
    }
    Ok(number)
}

/// A number from `min` to `max`.
pub(super) fn number(text: &str, min: u64, max: u64) -> Result<u64> {
    let number = text.parse::<u64>().ok().filter(|n| (min..=max).contains(n));
    number.ok_or_else(|| Error::invalid(format!("not a number from {min} to {max}")))
}
