//! Edits as text for people: one line for each change.

use base::FileId;
use base::key::display_key;
use std::fmt::Write;
use tree::edit::{RunRecord, SliceRecord};
use tree::{Change, DatabaseEdit, SegmentChange, Tier};

/// One line for each thing that `edit` says, in its order; every line ends with a line feed.
pub fn render_edit(edit: &DatabaseEdit) -> String {
    let mut lines: Vec<String> = Vec::new();
    for created in &edit.created {
        let (id, name, options) = (created.id, &created.name, &created.options);
        lines.push(format!("create keyspace {id} {name:?} options {options:?}"));
    }
    lines.extend(edit.dropped.iter().map(|id| format!("drop keyspace {id}")));
    for keyspace in &edit.keyspaces {
        for change in &keyspace.changes {
            lines.push(format!("keyspace {}: {}", keyspace.keyspace, render_change(change)));
        }
    }
    for (what, number) in [
        ("next file", edit.next_file),
        ("next run", edit.next_run),
        ("next keyspace", edit.next_keyspace.map(u64::from)),
        ("last sequence", edit.last_sequence),
        ("log floor", edit.log_floor.map(|file| file.0)),
        ("cold mark", edit.cold_mark),
    ] {
        lines.extend(number.map(|number| format!("{what} {number}")));
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

fn render_change(change: &Change) -> String {
    match change {
        Change::File { file, bytes } => format!("file {file} has {bytes} bytes"),
        Change::IngestedFile { file, bytes, identity } => {
            format!("ingested file {file} of identity {:016x} has {bytes} bytes", identity.0)
        }
        Change::AddRun(run) => render_run(run),
        Change::AddNode { level, node, range, slices } => {
            let slices = render_slices(slices);
            format!("add node {} on level {level} range {range:?}{slices}", node.0)
        }
        Change::RemoveNode { level, node } => {
            format!("remove node {} from level {level}", node.0)
        }
        Change::PushSlices { level, node, slices } => {
            let slices = render_slices(slices);
            format!("push onto node {} on level {level}{slices}", node.0)
        }
        Change::RemoveSlices { level, node, runs } => {
            let mut line = format!("remove from node {} on level {level} runs", node.0);
            for run in runs {
                let _ = write!(line, " {run}");
            }
            line
        }
        Change::NarrowSlice { level, node, run, to } => {
            let to = render_slices(to);
            format!("narrow run {run} in node {} on level {level} to{to}", node.0)
        }
        Change::SetRange { level, node, range } => {
            format!("set node {} on level {level} range {range:?}", node.0)
        }
        Change::SetFlushed { sequence } => format!("flushed up to {sequence}"),
        Change::AllowExpiry => "allow expiry".to_string(),
        Change::SetCursor { level, key: Some(key) } => {
            format!("set cursor of level {level} to {}", display_key(key))
        }
        Change::SetCursor { level, key: None } => format!("clear cursor of level {level}"),
        Change::Segment { file, change } => render_segment(file, change),
    }
}

fn render_segment(file: &FileId, change: &SegmentChange) -> String {
    match change {
        SegmentChange::Add { group, bytes, is_provisional, is_in_cold_store } => {
            let tier = match group.tier {
                Tier::Main => "main",
                Tier::Cold => "cold",
            };
            let (prefix, depth) = (group.prefix, group.depth);
            let state = if *is_provisional { ", provisional" } else { "" };
            let place = if *is_in_cold_store { ", in the cold store" } else { "" };
            format!(
                "add {tier} segment {file} of group {prefix:016x}/{depth} with {bytes} \
                 bytes{state}{place}"
            )
        }
        SegmentChange::Confirm => format!("confirm segment {file}"),
        SegmentChange::Grow(bytes) => format!("segment {file} has {bytes} bytes"),
        SegmentChange::Bury(bytes) => format!("{bytes} bytes of segment {file} are dead"),
        SegmentChange::Retire(sequence) => format!("retire segment {file} at sequence {sequence}"),
        SegmentChange::Remove => format!("remove segment {file}"),
    }
}

fn render_run(run: &RunRecord) -> String {
    let expiry = run.expiry.map_or_else(String::new, |span| {
        let (first, last) = (span.first.as_millis(), span.last.as_millis());
        format!(" expiring {} from {first} to {last} ms", span.entries)
    });
    format!(
        "add run {} in file {} at {} bytes {} range {:?} entries {} deletes {} range deletes {} \
         sequences {}..={}{expiry}",
        run.id,
        run.file,
        run.offset,
        run.bytes,
        run.range,
        run.entries,
        run.deletes,
        run.range_deletes,
        run.sequence_min,
        run.sequence_max
    )
}

fn render_slices(slices: &[SliceRecord]) -> String {
    let mut text = String::new();
    for slice in slices {
        let _ = write!(text, " [run {} {:?} bytes {}]", slice.run, slice.range, slice.bytes);
    }
    text
}
