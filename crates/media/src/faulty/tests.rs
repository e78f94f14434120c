//! The faulty store: each fault shows where its filter says and nowhere else, and without faults
//! the store behaves like the one behind it.

use super::*;
use crate::conformance;
use crate::mem::{MemStore, Personality};
use base::FileId;
use base::random::Random;

const HINT: FileHint = FileHint::NONE;
const EVERYTHING: Filter = Filter { operation: None, kind: None };

fn table(id: u64) -> FileName {
    FileName::table(FileId(id))
}

fn memory() -> Arc<MemStore> {
    Arc::new(MemStore::new(Arc::default()))
}

fn only(operation: Operation) -> Filter {
    Filter { operation: Some(operation), kind: None }
}

/// One of everything.
fn script(store: &dyn FileStore) -> Result<()> {
    let mut file = store.create(table(1), &HINT)?;
    file.append(b"12345678", Cause::Flush)?;
    file.begin_sync()?;
    file.sync(Cause::Flush)?;
    drop(file);
    let mut file = store.extend(table(1), 4, &HINT)?;
    file.append(b"x", Cause::Flush)?;
    file.syncer().unwrap().sync(Cause::Flush)?;
    store.sync_names()?;
    store.set_root(b"root")?;
    store.root()?;
    store.notes().unwrap().write_note("events", b"x", true)?;
    store.notes().unwrap().read_note("events")?;
    let file = store.open(table(1), false)?;
    let mut bytes = vec![0; file.len()? as usize];
    file.read_at(0, &mut bytes, Cause::Get)?;
    store.list()?;
    store.remove(table(1))
}

#[test]
fn conforms_without_faults() {
    conformance::check(&|| Arc::new(FaultyStore::new(memory(), Arc::default())));
}

#[test]
fn a_sweep_fails_every_operation_once_and_for_good() {
    let plan = Arc::new(FaultPlan::default());
    script(&FaultyStore::new(memory(), plan.clone())).unwrap();
    let operations = plan.count(EVERYTHING);
    assert_eq!(operations, 17);
    assert_eq!(plan.count(only(Operation::Sync)), 2);
    for after in 0..operations {
        for (effect, kind) in [
            (Effect::Io, ErrorKind::Io),
            (Effect::IoHalfDone, ErrorKind::Io),
            (Effect::IoDone, ErrorKind::Io),
            (Effect::NoSpace, ErrorKind::NoSpace),
        ] {
            for is_sticky in [false, true] {
                let plan = FaultPlan::with(Fault { filter: EVERYTHING, after, is_sticky, effect });
                let store = FaultyStore::new(memory(), plan.clone());
                assert_eq!(script(&store).unwrap_err().kind(), kind);
                assert_eq!((plan.count(EVERYTHING), plan.failures()), (after + 1, 1));
                assert_eq!(store.list().is_err(), is_sticky);
            }
        }
        let none = FaultPlan::with(Fault {
            filter: EVERYTHING,
            after: operations,
            is_sticky: true,
            effect: Effect::Io,
        });
        script(&FaultyStore::new(memory(), none)).unwrap();
    }
}

#[test]
fn a_filter_spares_other_kinds() {
    let filter = Filter { operation: None, kind: Some(FileKind::Wal) };
    let fault = Fault { filter, after: 0, is_sticky: true, effect: Effect::Io };
    let store = FaultyStore::new(memory(), FaultPlan::with(fault));
    script(&store).unwrap();
    assert!(store.create(FileName::wal(FileId(2)), &HINT).is_err());
}

#[test]
fn half_an_append_and_a_whole_one_may_be_reported_as_failed() {
    for (effect, bytes) in [(Effect::Io, 0), (Effect::IoHalfDone, 4), (Effect::IoDone, 8)] {
        let memory = memory();
        let filter = only(Operation::Append);
        let plan = FaultPlan::with(Fault { filter, after: 0, is_sticky: false, effect });
        assert!(script(&FaultyStore::new(memory.clone(), plan)).is_err());
        assert_eq!(memory.list().unwrap()[0].bytes, bytes);
    }
}

#[test]
fn reads_are_wrong_or_short_and_other_operations_are_spared() {
    let memory = memory();
    memory.create(table(1), &HINT).unwrap().append(b"abc", Cause::Flush).unwrap();
    let read = |effect| {
        let fault = Fault { filter: EVERYTHING, after: 1, is_sticky: true, effect };
        let store = FaultyStore::new(memory.clone(), FaultPlan::with(fault));
        store.list().unwrap();
        let mut bytes = [0; 3];
        let file = store.open(table(1), false).unwrap();
        file.read_at(0, &mut bytes, Cause::Get).map(|()| bytes)
    };
    assert_eq!(&read(Effect::FlippedBit).unwrap(), b"qbc");
    assert_eq!(read(Effect::ShortRead).unwrap_err().kind(), ErrorKind::Corruption);
}

#[test]
fn a_failed_sync_loses_data_that_a_later_sync_does_not_save() {
    let memory = memory();
    let filter = only(Operation::Sync);
    let plan = FaultPlan::with(Fault { filter, after: 0, is_sticky: false, effect: Effect::Io });
    let hook = memory.clone();
    let store = FaultyStore::new(memory.clone(), plan)
        .on_failed_sync(Box::new(move |name| hook.drop_pending(name)));
    let mut file = store.create(table(1), &HINT).unwrap();
    store.sync_names().unwrap();
    file.append(b"lost", Cause::Flush).unwrap();
    file.sync(Cause::Flush).unwrap_err();
    file.sync(Cause::Flush).unwrap();
    let image = memory.crash_image(&mut Random::new(0), Personality::KeepAll);
    let mut bytes = [1; 4];
    image.open(table(1), false).unwrap().read_at(0, &mut bytes, Cause::Get).unwrap();
    assert_eq!(bytes, [0; 4]);
}

#[test]
fn an_act_falls_into_its_operation_once_and_may_fail_it() {
    let plan = Arc::new(FaultPlan::default());
    let of_act = plan.clone();
    let fault = Fault {
        filter: only(Operation::Sync),
        after: 0,
        is_sticky: false,
        effect: Effect::NoSpace,
    };
    plan.act(only(Operation::Sync), 1, Box::new(move || of_act.add(fault)));
    let failed = script(&FaultyStore::new(memory(), plan.clone())).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::NoSpace);
    assert_eq!((plan.count(only(Operation::Sync)), plan.failures()), (2, 1));
    script(&FaultyStore::new(memory(), plan)).unwrap();
}
