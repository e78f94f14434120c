//! Snappy, as blocks of tables have it.

use crate::file::BLOCK_BYTES_MAX;

/// No byte of Snappy stands for more than this.
const RATIO_MAX: u64 = 64;

/// Decompresses a block. Memory is taken for what `stored` can have.
pub fn unpack(stored: &[u8]) -> Result<Vec<u8>, String> {
    let bytes = snap::raw::decompress_len(stored).map_err(|error| error.to_string())? as u64;
    if bytes > BLOCK_BYTES_MAX || bytes > stored.len() as u64 * RATIO_MAX {
        return Err(format!("{bytes} bytes cannot come from {}", stored.len()));
    }
    snap::raw::Decoder::new().decompress_vec(stored).map_err(|error| error.to_string())
}
