//! How a run is laid out. Everything a reader needs to know of it is written with the run.

use base::{Error, Result};

/// How blocks are compressed. A block that saves less than an eighth is stored raw.
///
/// ```
/// # extern crate table as shingle;
/// use shingle::Compression;
///
/// // For `Options::compression`: level 3 of Zstandard on every level of the tree.
/// let compression = Compression::Zstd(3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Raw.
    None,
    /// LZ4 blocks.
    Lz4,
    /// Zstandard at a level; 1 to 3 are sensible, negative ones are faster.
    Zstd(i8),
}

/// What answers "not here" without reading data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// No filter.
    None,
    /// A Bloom filter whose probes for a key share one cache line. 10 bits: about 1% false answers.
    Bloom {
        /// Bits of filter for each key.
        bits_per_key: u8,
    },
    /// A homogeneous Ribbon filter: about 25 % smaller than Bloom at the same false-positive rate,
    /// slower to build and to probe. False-positive rate: 2 to the power of minus `bits_per_key`.
    Ribbon {
        /// Bits of fingerprint for each key, 1 to 24; the filter takes about 7% more than these.
        bits_per_key: u8,
    },
}

/// Which part of a user key is its prefix, for filters that answer "no key starts with this".
///
/// ```
/// # extern crate table as shingle;
/// use shingle::PrefixRule;
///
/// let rule = PrefixRule::Delimiter { byte: b'/', count: 2 };
/// assert_eq!(rule.prefix(b"user/7/name"), Some(&b"user/7/"[..]));
/// assert_eq!(rule.prefix(b"user/7"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefixRule {
    /// Keys have no prefix.
    None,
    /// The first bytes, this many; shorter keys have no prefix.
    Fixed(u8),
    /// Up to and including the `count`th `byte`; keys with fewer have no prefix.
    Delimiter {
        /// What ends a part of the key.
        byte: u8,
        /// How many parts make the prefix, from 1.
        count: u8,
    },
}

impl PrefixRule {
    /// The prefix of `key`, if it has one. Every key that starts with a string that has a prefix
    /// has the same prefix.
    pub fn prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        match *self {
            PrefixRule::None => None,
            PrefixRule::Fixed(length) => key.get(..usize::from(length)),
            PrefixRule::Delimiter { byte, count } => {
                let nth = usize::from(count).checked_sub(1)?;
                let ends = key.iter().enumerate().filter(|&(_, &b)| b == byte);
                ends.map(|(at, _)| &key[..=at]).nth(nth)
            }
        }
    }
}

/// How a run is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableOptions {
    /// A data block ends when it has this many bytes.
    pub block_bytes: u32,
    /// A data block stores a whole key once in this many entries.
    pub restart_interval: u16,
    /// Data blocks carry a hash index for point lookups: about one byte more for an entry.
    pub hash_index: bool,
    /// An index block ends when it has this many bytes; each has a filter of its own.
    pub index_block_bytes: u32,
    /// How data and index blocks are compressed.
    pub compression: Compression,
    /// The filter.
    pub filter: Filter,
    /// Which prefixes go into the filter beside the keys.
    pub prefix: PrefixRule,
}

impl Default for TableOptions {
    fn default() -> TableOptions {
        TableOptions {
            block_bytes: 4096,
            restart_interval: 16,
            hash_index: false,
            index_block_bytes: 4096,
            compression: Compression::None,
            filter: Filter::Bloom { bits_per_key: 10 },
            prefix: PrefixRule::None,
        }
    }
}

impl TableOptions {
    /// The largest block size that may be asked for.
    pub const BLOCK_BYTES_MAX: u32 = 2 << 20;

    /// Refuses what a run cannot be written with.
    pub fn validate(&self) -> Result<()> {
        let block_bytes = 1..=Self::BLOCK_BYTES_MAX;
        if !block_bytes.contains(&self.block_bytes)
            || !block_bytes.contains(&self.index_block_bytes)
        {
            return Err(Error::invalid(format!(
                "block sizes must be 1 to {} bytes, not {} and {}",
                Self::BLOCK_BYTES_MAX,
                self.block_bytes,
                self.index_block_bytes
            )));
        }
        if self.restart_interval == 0 {
            return Err(Error::invalid("restart_interval must be at least 1"));
        }
        match self.filter {
            Filter::Bloom { bits_per_key: 0 } => {
                Err(Error::invalid("a Bloom filter needs at least 1 bit per key"))
            }
            Filter::Ribbon { bits_per_key } if !(1..=24).contains(&bits_per_key) => {
                Err(Error::invalid("a Ribbon filter needs 1 to 24 bits per key"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes() {
        let parts = PrefixRule::Delimiter { byte: b'/', count: 2 };
        assert_eq!(parts.prefix(b"a/b/c"), Some(&b"a/b/"[..]));
        assert_eq!(parts.prefix(b"a/b"), None);
        assert_eq!(PrefixRule::Delimiter { byte: b'/', count: 0 }.prefix(b"/"), None);
        assert_eq!(PrefixRule::Fixed(2).prefix(b"abc"), Some(&b"ab"[..]));
        assert_eq!(PrefixRule::Fixed(2).prefix(b"a"), None);
        assert_eq!(PrefixRule::None.prefix(b"abc"), None);
    }

    #[test]
    fn impossible_options_are_refused() {
        let good = TableOptions::default();
        assert!(good.validate().is_ok());
        for bad in [
            TableOptions { block_bytes: 0, ..good },
            TableOptions { index_block_bytes: u32::MAX, ..good },
            TableOptions { restart_interval: 0, ..good },
            TableOptions { filter: Filter::Bloom { bits_per_key: 0 }, ..good },
            TableOptions { filter: Filter::Ribbon { bits_per_key: 25 }, ..good },
        ] {
            assert!(bad.validate().is_err(), "{bad:?}");
        }
    }
}
