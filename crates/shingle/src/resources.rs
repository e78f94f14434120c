//! What several databases of a process can share.

use std::sync::Arc;
use table::BlockCache;

/// A block cache for several databases. Cheap to clone; clones are the same cache.
#[derive(Clone)]
pub struct Resources {
    pub(crate) cache: Arc<BlockCache>,
}

impl Resources {
    /// A cache of `cache_bytes`, shared by all clones.
    pub fn new(cache_bytes: u64) -> Resources {
        Resources { cache: BlockCache::new(cache_bytes) }
    }

    /// Bytes in the cache now.
    pub fn cache_used_bytes(&self) -> u64 {
        self.cache.used_bytes()
    }
}
