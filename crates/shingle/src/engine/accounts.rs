//! The accounts: counters that are kept up to date beside what they count, because a recount would
//! be too slow where they are read. Each account is compared here with a recount.
//!
//! - [`Core::account_errors`] recounts what the commit lock and the tree lock guard. The answer is
//!   exact at any time; `check` reports it.
//! - [`Core::assert_consistent`] also recounts what several threads change without a common lock,
//!   so it needs a database without calls and jobs. In tests, `close` ends with it.

use crate::engine::commit_state::CommitState;
use crate::engine::core::Core;
use crate::engine::trees::TreeState;

/// `counted` if it differs from `recounted`.
fn compare(account: &str, counted: u64, recounted: u64) -> Option<String> {
    let differs = counted != recounted;
    differs.then(|| format!("{account}: {counted} counted, {recounted} recounted"))
}

impl Core {
    /// Each account under the two locks that disagrees with a recount.
    pub(crate) fn account_errors(&self) -> Vec<String> {
        let memtables = memtable_errors(&self.commits.lock());
        let trees = self.versions.lock();
        memtables.into_iter().chain(trees.keyspaces.values().flat_map(tree_errors)).collect()
    }

    /// Panics if an account disagrees with a recount, or if memory of a background job was not
    /// given back. No call and no job may be in progress.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn assert_consistent(&self) {
        let mut errors = self.account_errors();
        let sealed_bytes = self.commits.lock().sealed_bytes();
        let tables = &self.read.tables;
        let compared = [
            compare("sealed bytes in memory", self.memory.sealed_bytes(), sealed_bytes),
            compare("sealed bytes in admission", self.admission.sealed_bytes(), sealed_bytes),
            compare("buffers of background jobs", self.memory.background_bytes(), 0),
            compare("bytes of open runs", tables.open_bytes(), tables.recount_open_bytes()),
        ];
        errors.extend(compared.into_iter().flatten());
        assert!(errors.is_empty(), "accounts disagree: {errors:#?}");
    }
}

fn memtable_errors(state: &CommitState) -> Option<String> {
    let recounted = state.actives().map(|active| active.counted_bytes).sum();
    compare("bytes of active memtables", state.active_bytes, recounted)
}

fn tree_errors(tree: &TreeState) -> Vec<String> {
    let version = &tree.version;
    let mut errors: Vec<String> = tree.runs.errors(version);
    let recounted = version.files().iter().map(|usage| usage.total_bytes).sum();
    errors.extend(compare("bytes of table files", version.file_bytes(), recounted));
    let segments = &version.segments;
    if segments.usage() != segments.recount() {
        let (counted, recounted) = (segments.usage(), segments.recount());
        errors.push(format!("value segments: {counted:?} counted, {recounted:?} recounted"));
    }
    let keyspace = &tree.keyspace.name;
    errors.into_iter().map(|error| format!("keyspace `{keyspace}`, {error}")).collect()
}

#[cfg(test)]
mod tests {
    use crate::api::Db;
    use crate::options::Options;
    use media::mem::MemStore;
    use std::sync::Arc;

    fn check(db: &Db) -> Vec<String> {
        db.check(&mut |_| {}).unwrap().problems
    }

    #[test]
    fn an_account_that_is_wrong_is_a_problem_of_check() {
        let store = Arc::new(MemStore::new(Arc::default()));
        let db = Options::new().open_store(store).unwrap();
        db.put(b"key", b"value").unwrap();
        db.flush().unwrap();
        db.put(b"key", b"newer").unwrap();
        assert_eq!(check(&db), Vec::<String>::new());

        let core = db.engine();
        core.commits.lock().active_bytes += 1;
        let problems = check(&db);
        assert!(problems.len() == 1 && problems[0].contains("active memtables"), "{problems:?}");

        core.commits.lock().active_bytes -= 1;
        let buffers = core.memory.begin_job();
        core.assert_consistent();
        drop(buffers);
    }
}
