//! Merge operators: read-modify-write without the read.
//!
//! A merge writes an *operand*; the operator combines operands with the value below them when the
//! key is read or compacted. Operators are named, and the name is stored with the keyspace, so that
//! a database never opens with another operator than it was written with.

use base::Result;
use std::sync::Arc;

/// Combines operands with a value.
pub trait MergeOperator: Send + Sync {
    /// The name stored with the keyspace. Change it when the meaning changes.
    fn name(&self) -> &str;

    /// The value of `key` after `operands` (oldest first) on top of `existing`; `None` deletes the
    /// key. Must not depend on how operands are grouped over calls.
    fn merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>>;
}

/// Joins operands to the value, in order.
struct Append;

impl MergeOperator for Append {
    fn name(&self) -> &str {
        "append"
    }

    fn merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>> {
        let mut value = existing.unwrap_or_default().to_vec();
        operands.iter().for_each(|operand| value.extend_from_slice(operand));
        Ok(Some(value))
    }
}

/// Adds little-endian 64-bit numbers, wrapping; other lengths are an error.
struct AddU64;

impl MergeOperator for AddU64 {
    fn name(&self) -> &str {
        "add-u64"
    }

    fn merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>> {
        let mut sum = 0u64;
        for bytes in existing.iter().chain(operands) {
            let number: [u8; 8] = (*bytes).try_into().map_err(|_| {
                base::Error::invalid(format!(
                    "add-u64 needs 8-byte values; key {} has one of {} bytes",
                    base::key::display_key(key),
                    bytes.len()
                ))
            })?;
            sum = sum.wrapping_add(u64::from_le_bytes(number));
        }
        Ok(Some(sum.to_le_bytes().to_vec()))
    }
}

/// The operators that come with the engine.
pub fn built_in(name: &str) -> Option<Arc<dyn MergeOperator>> {
    match name {
        "append" => Some(Arc::new(Append)),
        "add-u64" => Some(Arc::new(AddU64)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appending_joins_in_order() {
        let append = built_in("append").unwrap();
        assert_eq!(append.merge(b"k", Some(b"a"), &[b"b", b"c"]).unwrap().unwrap(), b"abc");
        assert_eq!(append.merge(b"k", None, &[b"b"]).unwrap().unwrap(), b"b");
    }

    #[test]
    fn adding_refuses_what_is_not_a_number() {
        let add = built_in("add-u64").unwrap();
        let two = 2u64.to_le_bytes();
        let sum = add.merge(b"k", Some(&two), &[&two, &two]).unwrap().unwrap();
        assert_eq!(sum, 6u64.to_le_bytes());
        assert!(add.merge(b"k", Some(b"x"), &[&two]).is_err());
    }
}
