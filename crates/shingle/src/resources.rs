//! What several databases of a process can share.

use crate::budget::Budget;
use crate::runtime::Pool;
use base::env::Runtime;
use base::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use table::BlockCache;

/// A block cache for several databases, or all that they need. Cheap to clone; clones are the same
/// resources. They are of the process that made them: a forked child makes its own.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
/// use shingle::{Options, ResourceLimits, Resources};
///
/// let limits = ResourceLimits { memory_bytes: 64 << 20, ..Default::default() };
/// let shared = Resources::within(&limits);
/// let first = Options::new().resources(&shared).open(a.path())?;
/// let second = Options::new().resources(&shared).open(b.path())?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Resources {
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) pooled: Option<Pooled>,
    forks: u64,
}

/// What databases have together that share everything.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ResourceLimits {
    /// The memory budget of all databases, in place of their own `memory_bytes`; at least 1 MiB.
    pub memory_bytes: u64,
    /// Threads for flushes and compaction of all databases, in place of their own.
    pub background_threads: usize,
    /// Maximum bytes that compaction and garbage collection of all databases write per second; 0
    /// means no limit.
    pub background_bytes_per_second: u64,
}

impl Default for ResourceLimits {
    fn default() -> ResourceLimits {
        ResourceLimits {
            memory_bytes: 256 << 20,
            background_threads: 2,
            background_bytes_per_second: 0,
        }
    }
}

/// What is shared beside the cache.
#[derive(Clone)]
pub(crate) struct Pooled {
    pub pool: Arc<Pool>,
    pub budget: Arc<Budget>,
    pub background_bytes_per_second: u64,
    /// When background work of any database may write next: see `engine::queue`.
    pub next_slot_ns: Arc<AtomicU64>,
}

impl Resources {
    /// A cache of `cache_bytes` for all databases that get a clone. All else is their own.
    pub fn new(cache_bytes: u64) -> Resources {
        Resources::of(BlockCache::new(cache_bytes), None)
    }

    /// Memory, background threads and the limit of background work for all databases that get a
    /// clone. Where one database needs more, it takes what the others do not use.
    pub fn within(limits: &ResourceLimits) -> Resources {
        let budget = Budget::new(limits.memory_bytes.max(1 << 20));
        let cache = BlockCache::new(budget.cache_bytes());
        let pooled = Pooled {
            pool: Pool::new(limits.background_threads),
            budget,
            background_bytes_per_second: limits.background_bytes_per_second,
            next_slot_ns: Arc::default(),
        };
        Resources::of(cache, Some(pooled))
    }

    fn of(cache: Arc<BlockCache>, pooled: Option<Pooled>) -> Resources {
        Resources { cache, pooled, forks: media::os::forks() }
    }

    /// `Closed` in a child of the process that made them: the threads are not there, and a lock of
    /// the cache may have been held at the fork.
    pub(crate) fn check_process(&self) -> Result<()> {
        if !media::os::is_forked_since(self.forks) {
            return Ok(());
        }
        let message = "this process was forked from the one that made the shared resources: make \
                       resources in the process that uses them";
        Err(Error::new(ErrorKind::Closed, message))
    }

    /// Bytes in the cache now.
    pub fn cache_used_bytes(&self) -> u64 {
        self.cache.used_bytes()
    }

    /// Bytes in the memtables of all databases; 0 where memory is not shared. Each database says
    /// what it has when it seals or flushes a memtable.
    pub fn memtable_bytes(&self) -> u64 {
        self.pooled.as_ref().map_or(0, |pooled| pooled.budget.used_bytes().0)
    }

    /// The runtime of one more database; `None`: it has threads of its own.
    pub(crate) fn runtime(&self) -> Option<Arc<dyn Runtime>> {
        self.pooled.as_ref().map(|pooled| pooled.pool.runtime())
    }
}
