//! Merge operators: read-modify-write without the read.
//!
//! A merge writes an *operand*. The operator combines operands with the value below them when the
//! key is read or compacted. Operators are named, and the name is stored with the keyspace, so that
//! a database never opens with a different operator from the one it was written with.
//!
//! An operator may refuse. Operands that it could never apply are refused when they are written
//! ([`MergeOperator::check`]). If the operator cannot apply stored operands, reads of that key
//! fail, and everything else goes on: rewrites keep the operands as they are. The same holds where
//! the process does not know the operator ([`KeyspaceOperator::absent`]).

use base::key::{VALUE_BYTES_MAX, display_key};
use base::{Error, Result};
use std::sync::Arc;
use table::Bytes;

/// Combines operands with a value.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// use shingle::{KeyspaceOptions, MergeOperator, Options, Result};
/// use std::sync::Arc;
///
/// /// Keeps the longest operand.
/// struct Longest;
///
/// impl MergeOperator for Longest {
///     fn name(&self) -> &str {
///         "longest"
///     }
///
///     fn merge(
///         &self,
///         _key: &[u8],
///         existing: Option<&[u8]>,
///         operands: &[&[u8]],
///     ) -> Result<Option<Vec<u8>>> {
///         let all = existing.into_iter().chain(operands.iter().copied());
///         Ok(all.max_by_key(|value| value.len()).map(<[u8]>::to_vec))
///     }
/// }
///
/// let db = Options::new().merge_operator(Arc::new(Longest)).open(dir.path())?;
/// let options =
///     KeyspaceOptions { merge_operator: Some("longest".into()), ..KeyspaceOptions::default() };
/// let words = db.open_or_create_keyspace("words", options)?;
/// words.merge("a", "ant")?;
/// words.merge("a", "antelope")?;
/// assert_eq!(words.get("a")?.as_deref(), Some(&b"antelope"[..]));
/// # Ok(())
/// # }
/// ```
pub trait MergeOperator: Send + Sync {
    /// The name that is stored with the keyspace. Change it when the meaning changes.
    fn name(&self) -> &str;

    /// Checks an operand before it is written. The default accepts everything.
    ///
    /// # Errors
    ///
    /// Why the operand can never be applied, whatever the existing value is. The write fails with
    /// these words behind "the operator `name` refuses an operand of N bytes: ".
    fn check(&self, _operand: &[u8]) -> std::result::Result<(), String> {
        Ok(())
    }

    /// The value of `key` after `operands` (oldest first) are applied to `existing`; `None` deletes
    /// the key. Must not depend on how operands are grouped over calls. A value of more than 1 GiB
    /// is an error like the operator's own.
    ///
    /// # Errors
    ///
    /// Why the operands cannot be applied. Reads of `key` then fail, and nothing else does.
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

    fn check(&self, operand: &[u8]) -> std::result::Result<(), String> {
        match operand.len() {
            8 => Ok(()),
            _ => Err("it adds numbers of 8 bytes".into()),
        }
    }

    fn merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>> {
        let mut sum = 0u64;
        for bytes in existing.iter().chain(operands) {
            let number: [u8; 8] = (*bytes).try_into().map_err(|_| {
                Error::invalid(format!("it adds numbers of 8 bytes, one has {}", bytes.len()))
            })?;
            sum = sum.wrapping_add(u64::from_le_bytes(number));
        }
        Ok(Some(sum.to_le_bytes().to_vec()))
    }
}

/// The operator of one keyspace. Its errors name the keyspace, the key and the operator.
pub(crate) struct KeyspaceOperator {
    keyspace: String,
    operator: Arc<dyn MergeOperator>,
    is_absent: bool,
}

impl KeyspaceOperator {
    pub(crate) fn new(keyspace: &str, operator: Arc<dyn MergeOperator>) -> KeyspaceOperator {
        KeyspaceOperator { keyspace: keyspace.into(), operator, is_absent: false }
    }

    /// A substitute for the operator `name`, which this process does not know: it merges nothing.
    pub(crate) fn absent(keyspace: &str, name: &str) -> KeyspaceOperator {
        let operator = Arc::new(Absent(name.into()));
        KeyspaceOperator { keyspace: keyspace.into(), operator, is_absent: true }
    }

    /// The operator; `None` where this process does not know it.
    pub(crate) fn known(&self) -> Option<&Arc<dyn MergeOperator>> {
        (!self.is_absent).then_some(&self.operator)
    }

    /// `InvalidArgument` where `operand` could never be applied.
    pub(crate) fn check(&self, key: &[u8], operand: &[u8]) -> Result<()> {
        self.operator.check(operand).map_err(|why| {
            Error::invalid(format!(
                "key {} of keyspace `{}`: the merge operator `{}` refuses an operand of {} bytes: \
                 {why}",
                display_key(key),
                self.keyspace,
                self.operator.name(),
                operand.len()
            ))
        })
    }

    /// [`MergeOperator::merge`].
    pub(crate) fn merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>> {
        let merged = self.operator.merge(key, existing, operands).and_then(checked_length);
        merged.map_err(|error| {
            let message = format!(
                "the {} operands of key {} in keyspace `{}` are not merged: the merge operator \
                 `{}`: {}",
                operands.len(),
                display_key(key),
                self.keyspace,
                self.operator.name(),
                error.message()
            );
            Error::new(error.kind(), message)
        })
    }
}

/// A value of a length that can be stored. A longer one is refused as the operator itself refuses:
/// the operands stay as they are.
fn checked_length(merged: Option<Vec<u8>>) -> Result<Option<Vec<u8>>> {
    match &merged {
        Some(value) if value.len() > VALUE_BYTES_MAX => Err(Error::invalid(format!(
            "the value has {} bytes, and a value has at most {VALUE_BYTES_MAX}",
            value.len()
        ))),
        _ => Ok(merged),
    }
}

/// The content of a key whose operands were not merged, because the operator refused or is not
/// known.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// use shingle::{KeyspaceOptions, Options, ReadOptions};
///
/// # let db = Options::new().open(dir.path())?;
/// let options =
///     KeyspaceOptions { merge_operator: Some("add-u64".into()), ..KeyspaceOptions::default() };
/// let counts = db.create_keyspace("counts", options)?;
/// counts.put("visits", "not a number")?;
/// counts.merge("visits", 1u64.to_le_bytes())?;
///
/// let mut cursor = counts.cursor(ReadOptions::default());
/// assert!(cursor.seek("visits").is_err());
/// let unmerged = cursor.unmerged().expect("the key has operands");
/// assert_eq!(unmerged.base.as_deref(), Some(&b"not a number"[..]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Unmerged {
    /// The value below the operands; `None`: there is none.
    pub base: Option<Bytes>,
    /// Oldest first.
    pub operands: Vec<Bytes>,
    /// Why they were not merged, with the keyspace, the key and the operator.
    pub error: Error,
}

const UNKNOWN: &str = "this process does not know it; pass it to Options::merge_operator";

/// A substitute for an operator that this process does not know: refuses everything.
struct Absent(String);

impl MergeOperator for Absent {
    fn name(&self) -> &str {
        &self.0
    }

    fn check(&self, _operand: &[u8]) -> std::result::Result<(), String> {
        Err(UNKNOWN.into())
    }

    fn merge(
        &self,
        _key: &[u8],
        _existing: Option<&[u8]>,
        _operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>> {
        Err(Error::invalid(UNKNOWN))
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
        assert!(add.check(b"x").is_err() && add.check(&two).is_ok());
    }
}
