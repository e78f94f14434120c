//! The read path. It knows nothing of schemes: memtables, then level by level the one node whose
//! range holds the key, its slices newest first, each behind its filter.

mod ahead;
pub(crate) mod cursor;
pub(crate) mod get;
pub(crate) mod multi_get;
pub(crate) mod source;
pub(crate) mod values;
pub(crate) mod view;
