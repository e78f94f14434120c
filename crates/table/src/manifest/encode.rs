//! Edits to bytes.

use super::{VERSION, change_tag, edit_tag};
use base::coding::{push_bytes, push_varint};
use base::{ExpirySpan, KeyRange, RunId};
use tree::edit::{RunRecord, SliceRecord};
use tree::{Change, DatabaseEdit, NodeId, SegmentChange};

/// Appends `edit` to `out` as bytes.
pub fn encode_edit(edit: &DatabaseEdit, out: &mut Vec<u8>) {
    out.push(VERSION);
    let mut field = Vec::new();
    for created in &edit.created {
        push_varint(&mut field, u64::from(created.id.0));
        push_bytes(&mut field, created.name.as_bytes());
        push_bytes(&mut field, created.options.as_bytes());
        push_field(out, edit_tag::CREATED, &mut field);
    }
    for dropped in &edit.dropped {
        push_varint(&mut field, u64::from(dropped.0));
        push_field(out, edit_tag::DROPPED, &mut field);
    }
    let mut body = Vec::new();
    for keyspace in &edit.keyspaces {
        push_varint(&mut field, u64::from(keyspace.keyspace.0));
        for change in &keyspace.changes {
            let tag = push_change(&mut body, change);
            push_field(&mut field, tag, &mut body);
        }
        push_field(out, edit_tag::KEYSPACE, &mut field);
    }
    for (tag, number) in [
        (edit_tag::NEXT_FILE, edit.next_file),
        (edit_tag::NEXT_RUN, edit.next_run),
        (edit_tag::NEXT_KEYSPACE, edit.next_keyspace.map(u64::from)),
        (edit_tag::LAST_SEQUENCE, edit.last_sequence),
        (edit_tag::LOG_FLOOR, edit.log_floor.map(|file| file.0)),
        (edit_tag::COLD_MARK, edit.cold_mark),
    ] {
        if let Some(number) = number {
            push_varint(&mut field, number);
            push_field(out, tag, &mut field);
        }
    }
}

/// Appends a field and empties `body`.
fn push_field(out: &mut Vec<u8>, tag: u64, body: &mut Vec<u8>) {
    push_varint(out, tag);
    push_bytes(out, body);
    body.clear();
}

/// Appends the body of a change that adds `run`; gives its tag.
fn push_new_run(out: &mut Vec<u8>, run: &RunRecord) -> u64 {
    push_run(out, run);
    let Some(expiry) = &run.expiry else { return change_tag::ADD_RUN };
    push_expiry(out, expiry);
    change_tag::ADD_EXPIRING_RUN
}

/// Appends the body of `change`; gives its tag.
fn push_change(out: &mut Vec<u8>, change: &Change) -> u64 {
    match change {
        Change::File { file, bytes } => {
            push_varint(out, file.0);
            push_varint(out, *bytes);
            change_tag::FILE
        }
        Change::IngestedFile { file, bytes, identity } => {
            push_varint(out, file.0);
            push_varint(out, *bytes);
            out.extend_from_slice(&identity.0.to_le_bytes());
            change_tag::INGESTED_FILE
        }
        Change::AddRun(run) => push_new_run(out, run),
        Change::AddNode { level, node, range, slices } => {
            push_node(out, *level, *node);
            push_range(out, range);
            push_slices(out, slices);
            change_tag::ADD_NODE
        }
        Change::RemoveNode { level, node } => {
            push_node(out, *level, *node);
            change_tag::REMOVE_NODE
        }
        Change::PushSlices { level, node, slices } => {
            push_node(out, *level, *node);
            push_slices(out, slices);
            change_tag::PUSH_SLICES
        }
        Change::RemoveSlices { level, node, runs } => {
            push_node(out, *level, *node);
            push_varint(out, runs.len() as u64);
            runs.iter().for_each(|RunId(run)| push_varint(out, *run));
            change_tag::REMOVE_SLICES
        }
        Change::NarrowSlice { level, node, run, to } => {
            push_node(out, *level, *node);
            push_varint(out, run.0);
            push_slices(out, to);
            change_tag::NARROW_SLICE
        }
        Change::SetRange { level, node, range } => {
            push_node(out, *level, *node);
            push_range(out, range);
            change_tag::SET_RANGE
        }
        Change::SetFlushed { sequence } => {
            push_varint(out, *sequence);
            change_tag::SET_FLUSHED
        }
        Change::AllowExpiry => change_tag::ALLOW_EXPIRY,
        Change::SetCursor { level, key } => {
            out.push(*level);
            push_optional_key(out, key.as_deref());
            change_tag::SET_CURSOR
        }
        Change::Segment { file, change } => {
            push_varint(out, file.0);
            push_segment_change(out, change)
        }
    }
}

/// Appends what follows the segment's file; gives the tag.
fn push_segment_change(out: &mut Vec<u8>, change: &SegmentChange) -> u64 {
    match *change {
        SegmentChange::Add { group, bytes, is_provisional, is_in_cold_store } => {
            let marks = u8::from(is_provisional) | u8::from(is_in_cold_store) << 1;
            out.extend([group.tier as u8, marks, group.depth]);
            // The bits that count, from the most significant one.
            let bits = group.prefix.to_be_bytes();
            out.extend_from_slice(&bits[..usize::from(group.depth).div_ceil(8)]);
            push_varint(out, bytes);
            change_tag::ADD_SEGMENT
        }
        SegmentChange::Confirm => change_tag::CONFIRM_SEGMENT,
        SegmentChange::Grow(bytes) => {
            push_varint(out, bytes);
            change_tag::GROW_SEGMENT
        }
        SegmentChange::Bury(bytes) => {
            push_varint(out, bytes);
            change_tag::BURY_VALUES
        }
        SegmentChange::Retire(sequence) => {
            push_varint(out, sequence);
            change_tag::RETIRE_SEGMENT
        }
        SegmentChange::Remove => change_tag::REMOVE_SEGMENT,
    }
}

fn push_run(out: &mut Vec<u8>, run: &RunRecord) {
    for number in [run.id.0, run.file.0, run.offset, run.bytes] {
        push_varint(out, number);
    }
    push_range(out, &run.range);
    for number in [run.entries, run.deletes, run.range_deletes, run.sequence_min, run.sequence_max]
    {
        push_varint(out, number);
    }
}

fn push_expiry(out: &mut Vec<u8>, expiry: &ExpirySpan) {
    let ExpirySpan { entries, first, last } = expiry;
    for number in [*entries, first.as_millis(), last.as_millis()] {
        push_varint(out, number);
    }
}

fn push_node(out: &mut Vec<u8>, level: u8, node: NodeId) {
    out.push(level);
    push_varint(out, node.0);
}

fn push_slices(out: &mut Vec<u8>, slices: &[SliceRecord]) {
    push_varint(out, slices.len() as u64);
    for slice in slices {
        push_varint(out, slice.run.0);
        push_range(out, &slice.range);
        push_varint(out, slice.bytes);
    }
}

fn push_range(out: &mut Vec<u8>, range: &KeyRange) {
    push_bytes(out, &range.start);
    push_optional_key(out, range.end.as_deref());
}

fn push_optional_key(out: &mut Vec<u8>, key: Option<&[u8]>) {
    out.push(u8::from(key.is_some()));
    if let Some(key) = key {
        push_bytes(out, key);
    }
}
