//! Sizes on the command line: `64K`, `10GB`.

/// A size, as [`base::size`] reads it.
pub fn bytes(text: &str) -> Result<u64, String> {
    base::size::parse(text).ok_or_else(|| format!("not {}", base::size::FORM))
}

/// A size within bounds.
pub fn bytes_in<const MIN: u64, const MAX: u64>(text: &str) -> Result<u64, String> {
    let bytes = bytes(text)?;
    if bytes < MIN {
        return Err(format!("less than the minimum of {MIN} bytes"));
    }
    if bytes > MAX {
        return Err(format!("more than the maximum of {MAX} bytes"));
    }
    Ok(bytes)
}
