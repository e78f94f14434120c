//! Compactions that a caller asks for: they end with the call.

use base::env::Runtime;
use media::FileKind;
use media::faulty::{Effect, Fault, FaultPlan, FaultyStore, Filter, Operation};
use media::mem::MemStore;
use shingle::runtime::Stepped;
use shingle::{Compression, Db, ErrorKind, Options};
use std::sync::Arc;

const SECOND_NS: u64 = 1_000_000_000;

fn options(scheme: &str) -> Options {
    let options = Options::new().scheme(scheme).compression(Compression::None);
    options.write_buffer_bytes(64 << 10).expert(|e| {
        e.memtable_bytes = Some(16 << 10);
        e.scheme.table_bytes_max = Some(8 << 10);
        e.scheme.level_bytes_base = Some(32 << 10);
    })
}

fn put(db: &Db, n: u64, value: u8) -> shingle::Result<()> {
    db.put(n.to_be_bytes(), [value; 100])
}

/// Makes the background steps of a minute.
fn pass_a_minute(runtime: &Stepped) {
    for _ in 0..600 {
        runtime.pass(SECOND_NS / 10);
        (0..20).for_each(|_| runtime.turn());
    }
}

/// Regression: the background tried a compaction that had failed again, for ever. On a full medium
/// it filled up what space there was each time.
#[test]
fn a_compaction_that_fails_is_over_with_its_call() {
    let plan = Arc::new(FaultPlan::default());
    let store = FaultyStore::new(Arc::new(MemStore::new(Arc::default())), plan.clone());
    let runtime = Arc::new(Stepped::new(1, 1));
    let db = options("leveled").open_in(Arc::new(store), runtime.clone()).unwrap();
    (0..3000).for_each(|n| put(&db, n * 7919 % 3000, 1).unwrap());
    db.wait_idle().unwrap();
    put(&db, 7, 2).unwrap();
    db.flush().unwrap();
    pass_a_minute(&runtime);
    let names = || db.files().into_iter().map(|file| file.name).collect::<Vec<_>>();
    let before = names();

    let filter = Filter { operation: Some(Operation::Append), kind: Some(FileKind::Table) };
    plan.add(Fault { filter, after: 0, is_sticky: true, effect: Effect::NoSpace });
    assert_eq!(db.compact().unwrap_err().kind(), ErrorKind::NoSpace);
    let appends = plan.count(filter);
    pass_a_minute(&runtime);
    assert_eq!(plan.count(filter), appends, "the background went on");
    plan.clear();
    pass_a_minute(&runtime);
    assert_eq!(names(), before, "the background compacted what no caller waits for");
    db.compact().unwrap();
    assert_ne!(names(), before);
}
