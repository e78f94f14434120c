//! Two files of a database have exchanged their names, as a restore by hand, a repair of the file
//! system, or a script can leave them. No byte is damaged, and each file is sound under its old
//! name.

use crate::build::{Setup, Writer, database_under, open_under, setups};
use crate::image::Image;
use crate::sweep::{Tally, guarded};
use crate::verdict::{Verdict, judge};
use media::{FileKind, FileName, FileStore};
use std::sync::Arc;

/// Pairs tried per setup at the usual volume.
const PAIRS: usize = 160;

fn exchanged(image: &Image, a: FileName, b: FileName) -> Image {
    let (of_a, of_b) = (image.files[&a].to_vec(), image.files[&b].to_vec());
    image.with(a, of_b).with(b, of_a)
}

/// Every pair with a log, and some of the others.
fn pairs(image: &Image) -> Vec<(FileName, FileName)> {
    let names: Vec<FileName> = image.files.keys().copied().collect();
    let after = |at: usize| names[at + 1..].iter().copied();
    let all: Vec<_> =
        names.iter().enumerate().flat_map(|(at, &a)| after(at).map(move |b| (a, b))).collect();
    let has_log = |&(a, b): &(FileName, FileName)| [a, b].iter().any(|n| n.kind == FileKind::Wal);
    let (with, without): (Vec<_>, Vec<_>) = all.into_iter().partition(has_log);
    let stride = (without.len() / (PAIRS * crate::scale())).max(1);
    let logs = with.iter().filter(|(a, b)| a.kind == b.kind || a.kind != FileKind::Value);
    let logs = logs.copied().collect::<Vec<_>>();
    let thin = (with.len() / (PAIRS * crate::scale())).max(1);
    let with = with.into_iter().step_by(thin);
    logs.into_iter().step_by(thin).chain(with).chain(without.into_iter().step_by(stride)).collect()
}

/// The result must be an error that names a file, or all data. After an opening for writing, the
/// files with their names put back must be the same database as before.
fn judge_exchange(
    setup: Setup,
    image: &Image,
    history: &crate::build::History,
    (a, b): (FileName, FileName),
) -> Result<Verdict, String> {
    let last = history.states.len() - 1;
    let mixed = exchanged(image, a, b);
    let read = judge(open_under(setup, mixed.in_memory(), true), history, last)?;
    if read == Verdict::TornTail {
        return Err("an earlier state".into());
    }
    let store = mixed.in_memory();
    match open_under(setup, store.clone(), false) {
        Err(_) if Image::of(&*store) != mixed => return Err("an error, but files changed".into()),
        Err(_) => return Ok(read),
        Ok(db) => drop(db),
    }
    let after = Image::of(&*store);
    let is_there = |name| after.files.get(&name) == mixed.files.get(&name);
    if !is_there(a) && !is_there(b) {
        // Neither is needed any more.
        return judge(open_under(setup, store, true), history, last);
    }
    let back = after.clone();
    let put = |image: Image, name, from| match mixed.files.get(&from) {
        Some(bytes) if is_there(from) => image.with(name, bytes.to_vec()),
        _ => image.without(name),
    };
    let back = put(put(back, a, b), b, a);
    let verdict = judge(open_under(setup, back.in_memory(), true), history, last);
    match verdict {
        Ok(Verdict::Harmless) => Ok(read),
        other => Err(format!("put back after an opening: {other:?}")),
    }
}

#[test]
fn files_that_exchanged_their_names_are_detected_and_nothing_is_lost() {
    for setup in setups() {
        let (image, history) = database_under(setup, 1, Writer::fill);
        let mut tally = Tally::default();
        let mut detected = 0;
        for (a, b) in pairs(&image) {
            let verdict = guarded(|| judge_exchange(setup, &image, &history, (a, b)));
            detected += usize::from(verdict == Ok(Verdict::Detected));
            tally.note(&format!("{:?} and {:?}", a.kind, b.kind), format!("{a} and {b}"), verdict);
        }
        println!("{setup:?}");
        tally.finish();
        assert!(detected > 50, "{setup:?}: only {detected} were detected");
    }
}

/// None of the logs was synced, so only their headers tell them from lost logs.
#[test]
fn logs_that_exchanged_their_names_are_no_end_of_the_history() {
    let setup = setups()[0];
    let (image, history) = database_under(setup, 2, |writer| {
        writer.commits(20);
        writer.flush();
        writer.commits(150);
    });
    let logs: Vec<FileName> =
        image.files.keys().copied().filter(|name| name.kind == FileKind::Wal).collect();
    assert!(logs.len() > 2, "{logs:?}");
    for (at, &a) in logs.iter().enumerate() {
        for &b in &logs[at + 1..] {
            let verdict = judge_exchange(setup, &image, &history, (a, b));
            assert_eq!(verdict, Ok(Verdict::Detected), "{a} and {b}");
            let store: Arc<dyn FileStore> = exchanged(&image, a, b).in_memory();
            let error = open_under(setup, store, false).err().unwrap();
            let names = [a.to_string(), b.to_string()];
            assert!(names.iter().any(|name| error.file() == Some(name)), "{error}");
        }
    }
}
