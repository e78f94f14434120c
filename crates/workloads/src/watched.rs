//! A store with a watcher, which takes the time of calls, records them, or counts in its own way.
//!
//! Every call goes to the store unchanged; the watcher hears of it when it has succeeded.

use crate::store::{Counters, Direction, Store, WriteOptions};
use base::Result;

/// A call that succeeded.
#[derive(Clone, Copy, Debug)]
pub enum Call<'a> {
    /// Keys and values that were written together.
    Put(&'a [(&'a [u8], &'a [u8])]),
    /// A key that was removed.
    Delete(&'a [u8]),
    /// First key and end of a range that was removed.
    DeleteRange(&'a [u8], &'a [u8]),
    /// A key that was asked for, and the value if there was one.
    Get(&'a [u8], Option<&'a [u8]>),
    /// Where a scan began, and how many entries it visited.
    Scan(Option<&'a [u8]>, usize),
}

impl Call<'_> {
    /// It changes the content.
    pub fn is_write(&self) -> bool {
        match self {
            Call::Put(_) | Call::Delete(_) | Call::DeleteRange(..) => true,
            Call::Get(..) | Call::Scan(..) => false,
        }
    }
}

/// Watches a store. Called by all threads that use it.
pub trait Watcher: Send + Sync {
    /// The time in nanoseconds, asked before each call.
    fn now_ns(&self) -> u64 {
        0
    }

    /// A call that began at `begin_ns` has succeeded.
    fn done(&self, call: &Call<'_>, begin_ns: u64) {
        let _ = (call, begin_ns);
    }

    /// What is to be waited for besides the store's own background work.
    fn settle(&self) -> Result<()> {
        Ok(())
    }

    /// The counters to report in place of the store's `own`.
    fn counters(&self, own: Counters) -> Counters {
        own
    }
}

/// A store and its watcher.
pub struct Watched<W> {
    store: Box<dyn Store>,
    watcher: W,
}

impl<W: Watcher> Watched<W> {
    /// `store` under the eyes of `watcher`.
    pub fn new(store: Box<dyn Store>, watcher: W) -> Watched<W> {
        Watched { store, watcher }
    }

    /// The watcher.
    pub fn watcher(&self) -> &W {
        &self.watcher
    }

    fn write(&self, call: Call<'_>, write: impl FnOnce() -> Result<()>) -> Result<()> {
        let begin_ns = self.watcher.now_ns();
        write()?;
        self.watcher.done(&call, begin_ns);
        Ok(())
    }
}

impl<W: Watcher> Store for Watched<W> {
    fn put(&self, key: &[u8], value: &[u8], options: WriteOptions) -> Result<()> {
        self.write(Call::Put(&[(key, value)]), || self.store.put(key, value, options))
    }

    fn put_batch(&self, entries: &[(&[u8], &[u8])], options: WriteOptions) -> Result<()> {
        self.write(Call::Put(entries), || self.store.put_batch(entries, options))
    }

    fn delete(&self, key: &[u8], options: WriteOptions) -> Result<()> {
        self.write(Call::Delete(key), || self.store.delete(key, options))
    }

    fn delete_range(&self, begin: &[u8], end: &[u8], options: WriteOptions) -> Result<()> {
        let call = Call::DeleteRange(begin, end);
        self.write(call, || self.store.delete_range(begin, end, options))
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let begin_ns = self.watcher.now_ns();
        let is_found = self.store.get(key, value)?;
        self.watcher.done(&Call::Get(key, is_found.then_some(value)), begin_ns);
        Ok(is_found)
    }

    fn scan(
        &self,
        start: Option<&[u8]>,
        count: usize,
        direction: Direction,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize> {
        let begin_ns = self.watcher.now_ns();
        let visited = self.store.scan(start, count, direction, visit)?;
        self.watcher.done(&Call::Scan(start, visited), begin_ns);
        Ok(visited)
    }

    fn flush(&self) -> Result<()> {
        self.store.flush()
    }

    fn compact_all(&self) -> Result<()> {
        self.store.compact_all()
    }

    fn sync(&self) -> Result<()> {
        self.store.sync()
    }

    fn wait_idle(&self) -> Result<()> {
        self.store.wait_idle()?;
        self.watcher.settle()
    }

    fn counters(&self) -> Result<Counters> {
        Ok(self.watcher.counters(self.store.counters()?))
    }

    fn below(&self) -> Option<&dyn Store> {
        Some(&*self.store)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.store.close()
    }
}
