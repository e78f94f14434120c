//! A picture of a tree: levels as rows, nodes at their place in key order, slices stacked in them,
//! and below the files, live and dead.
//!
//! The axis is the keys, stretched so that equal widths hold equal bytes of the whole tree. So what
//! stands one above another has the same keys, and nothing needs to be known of the keys but their
//! order. No script, no network; the style sheet has colours for light, dark and paper.

mod axis;

use crate::text::brief;
use crate::units;
use axis::Axis;
use base::{FileId, KeyRange, RunId};
use maud::{Markup, PreEscaped, html};
use std::collections::{BTreeMap, BTreeSet};
use tree::Version;
use tree::version::{Level, Node, NodeId, Slice};

pub(super) const STYLE: &str = include_str!("picture.css");
const WIDTH: f64 = 1200.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 1180.0;
const TOP: f64 = 106.0;
const ROW_GAP: f64 = 26.0;
/// Slices are so high unless their stack would be higher than a row may be.
const SLICE_HEIGHT: f64 = 16.0;
const ROW_HEIGHT_MAX: f64 = 180.0;
/// What is narrower would not be seen.
const MARK_WIDTH_MIN: f64 = 0.6;
/// What is narrower has no edge: it would be all that is seen.
const EDGE_WIDTH_MIN: f64 = 4.0;
const FILES_HEIGHT: f64 = 40.0;

/// What sizes mean, in the legend.
const SIZES: &str = "Width of a node or slice: bytes of the whole tree between its first and last \
                     key. Height of a stack: number of slices. Width of a file: its bytes.";

/// What a slice is to the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// All of a run that has a file of its own.
    Whole,
    /// A part of a run, or a run that other nodes have too.
    Link,
    /// A run of a file that has several, all in this node.
    Segment,
    /// A run of a file whose runs are in several nodes.
    Set,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Whole, Kind::Link, Kind::Segment, Kind::Set];

    fn class(self) -> &'static str {
        match self {
            Kind::Whole => "whole",
            Kind::Link => "link",
            Kind::Segment => "segment",
            Kind::Set => "set",
        }
    }

    fn legend(self) -> &'static str {
        match self {
            Kind::Whole => "run with a file of its own",
            Kind::Link => "link: slice of a run that other nodes show, or part of a run",
            Kind::Segment => "segment: one run of several in the node's file",
            Kind::Set => "set: one file, runs in several nodes (joined)",
        }
    }
}

/// What shows the runs of each file.
#[derive(Default)]
struct Owners {
    slices_of_run: BTreeMap<RunId, usize>,
    runs: BTreeMap<FileId, BTreeSet<RunId>>,
    nodes: BTreeMap<FileId, BTreeSet<(u8, NodeId)>>,
}

impl Owners {
    fn of(version: &Version) -> Owners {
        let mut owners = Owners::default();
        for (number, level) in levels(version) {
            for (node, slice) in slices(level) {
                let (run, file) = (slice.run.id, slice.run.file.id);
                *owners.slices_of_run.entry(run).or_default() += 1;
                owners.runs.entry(file).or_default().insert(run);
                owners.nodes.entry(file).or_default().insert((number, node.id));
            }
        }
        owners
    }

    fn kind(&self, slice: &Slice) -> Kind {
        let file = slice.run.file.id;
        let is_shown_once = self.slices_of_run.get(&slice.run.id).is_none_or(|&n| n == 1);
        let runs = self.runs.get(&file).map_or(1, BTreeSet::len);
        let nodes = self.nodes.get(&file).map_or(1, BTreeSet::len);
        match (slice.is_whole() && is_shown_once, runs, nodes) {
            (false, ..) => Kind::Link,
            (true, ..=1, _) => Kind::Whole,
            (true, _, ..=1) => Kind::Segment,
            (true, ..) => Kind::Set,
        }
    }
}

fn levels(version: &Version) -> impl Iterator<Item = (u8, &Level)> {
    (0u8..).zip(&version.levels)
}

fn slices(level: &Level) -> impl Iterator<Item = (&Node, &Slice)> {
    level.nodes.iter().flat_map(|node| node.slices.iter().map(move |slice| (&**node, slice)))
}

/// A level and where it is drawn.
struct Row<'a> {
    number: u8,
    level: &'a Level,
    top: f64,
    height: f64,
}

impl Row<'_> {
    fn stack_max(&self) -> usize {
        self.level.nodes.iter().map(|node| node.slices.len()).max().unwrap_or(0)
    }
}

/// The levels that have nodes, and level 0, each with its place; and where the last one ends.
fn rows(version: &Version) -> (Vec<Row<'_>>, f64) {
    let mut rows = Vec::new();
    let mut top = TOP;
    for (number, level) in levels(version).filter(|(n, level)| *n == 0 || !level.nodes.is_empty()) {
        let mut row = Row { number, level, top, height: 0.0 };
        row.height = (row.stack_max().max(1) as f64 * SLICE_HEIGHT).min(ROW_HEIGHT_MAX);
        // Three lines stand beside it.
        top += row.height.max(2.0 * SLICE_HEIGHT) + ROW_GAP;
        rows.push(row);
    }
    (rows, top)
}

/// The picture of a tree as an SVG document, 1200 wide.
pub(super) fn svg(version: &Version, title: &str) -> String {
    let axis = Axis::of(version, LEFT, RIGHT);
    let owners = Owners::of(version);
    let (rows, bottom) = rows(version);
    let files = version.files();
    let tables: Vec<_> = files.iter().map(|f| (f.live_bytes, f.total_bytes)).collect();
    let segments = version.segments.iter().map(|s| (s.live_bytes(), s.bytes));
    let values: Vec<(u64, u64)> = segments.collect();
    let panels = [("Table files", tables), ("Value segments", values)];
    let panels: Vec<_> = panels.into_iter().filter(|(_, files)| !files.is_empty()).collect();
    let panels_top = bottom + 30.0;
    let height = panels_top + panels.len() as f64 * (FILES_HEIGHT + ROW_GAP) + 10.0;
    let picture = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {WIDTH} {}", number(height)))
            width=(WIDTH) height=(number(height)) role="img" aria-label=(plain(title)) {
            style { (PreEscaped(STYLE)) }
            (hatch())
            text class="title" x="16" y="26" { (plain(title)) }
            text class="soft end" x=(RIGHT) y="26" { (summary(version)) }
            (legend())
            @for row in &rows { (draw_row(row, &axis, &owners)) }
            (joins(&rows, &axis, &owners))
            (keys(version, &axis, bottom))
            @for (i, (name, files)) in panels.iter().enumerate() {
                (draw_files(name, files, panels_top + i as f64 * (FILES_HEIGHT + ROW_GAP)))
            }
        }
    };
    picture.into_string()
}

/// The filling of links: also told apart where colours are not.
fn hatch() -> Markup {
    html! {
        defs {
            pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse"
                patternTransform="rotate(45)" {
                rect class="hatch-back" width="5" height="5" {}
                line class="hatch-line" x1="0" y1="0" x2="0" y2="5" {}
            }
        }
    }
}

fn summary(version: &Version) -> String {
    let nodes: usize = version.levels.iter().map(|level| level.nodes.len()).sum();
    let count = |n: usize| units::count(n as u64);
    let (slices, runs) = (count(version.slices().count()), count(version.runs_count()));
    let bytes = units::bytes(version.bytes());
    format!("{} nodes, {slices} slices of {runs} runs, {bytes} live", count(nodes))
}

fn legend() -> Markup {
    let at = [(16.0, 48.0), (16.0, 68.0), (480.0, 48.0), (480.0, 68.0)];
    html! {
        @for (kind, (x, y)) in Kind::ALL.into_iter().zip(at) {
            rect class=(format!("slice {}", kind.class())) x=(x) y=(y - 10.0)
                width="18" height="12" {}
            text x=(x + 26.0) y=(y) { (kind.legend()) }
        }
        rect class="frame" x="850" y="38" width="18" height="12" {}
        text x="876" y="48" { "node: the keys it answers for" }
        rect class="live" x="850" y="58" width="18" height="6" {}
        rect class="dead" x="850" y="64" width="18" height="6" {}
        text x="876" y="68" { "of a file: live above, dead below" }
        text class="soft" x="16" y="88" { (SIZES) }
    }
}

fn draw_row(row: &Row<'_>, axis: &Axis, owners: &Owners) -> Markup {
    let middle = row.top + 12.0;
    let nodes = row.level.nodes.len() as u64;
    html! {
        text x="16" y=(number(middle)) { "Level " (row.number) }
        text class="soft" x="16" y=(number(middle + 15.0)) { (units::bytes(row.level.bytes())) }
        text class="soft end" x=(LEFT - 10.0) y=(number(middle)) {
            (units::count(nodes)) @if nodes == 1 { " node" } @else { " nodes" }
        }
        text class="soft end" x=(LEFT - 10.0) y=(number(middle + 15.0)) {
            "stack " (row.stack_max())
        }
        @for node in row.level.nodes.iter() { (draw_node(node, row, axis, owners)) }
    }
}

fn draw_node(node: &Node, row: &Row<'_>, axis: &Axis, owners: &Owners) -> Markup {
    let each = row.height / row.stack_max().max(1) as f64;
    // Stacks stand on the bottom of their row, the newest slice on top.
    let top = row.top + row.height - node.slices.len() as f64 * each;
    html! {
        g.node {
            title {
                "level " (row.number) ", node " (node.id.0) ", " (show_range(&node.range)) ", "
                (units::bytes(node.bytes())) " in " (node.slices.len()) " slices"
            }
            (mark("frame", axis, &node.range, row.top, row.height, None))
            @for (i, slice) in node.slices.iter().enumerate() {
                @let kind = owners.kind(slice);
                @let class = format!("slice {}", kind.class());
                @let about = format!("run {} of file {}, {}", slice.run.id, slice.run.file.id,
                    units::bytes(slice.bytes));
                (mark(&class, axis, &slice.range, top + i as f64 * each, each, Some(about)))
            }
        }
    }
}

/// A rectangle over a range of keys.
fn mark(
    class: &str,
    axis: &Axis,
    range: &KeyRange,
    top: f64,
    height: f64,
    about: Option<String>,
) -> Markup {
    let (from, to) = (axis.of_start(range), axis.of_end(range));
    let is_fine = to - from < EDGE_WIDTH_MIN || height < EDGE_WIDTH_MIN;
    html! {
        rect class=(format!("{class}{}", if is_fine { " fine" } else { "" }))
            x=(number(from)) y=(number(top))
            width=(number((to - from).max(MARK_WIDTH_MIN))) height=(number(height)) {
            @if let Some(about) = about { title { (about) } }
        }
    }
}

/// A line under the tables of each set.
fn joins(rows: &[Row<'_>], axis: &Axis, owners: &Owners) -> Markup {
    html! {
        @for row in rows {
            @for (file, (from, to)) in sets(row, axis, owners) {
                // Neighbours on different heights, so that one is told from the next.
                @let y = number(row.top + row.height + 4.0 + 4.0 * (file.0 % 3) as f64);
                line class="join" x1=(number(from + 0.5)) x2=(number(to - 0.5)) y1=(y) y2=(y) {
                    title { "the set of file " (file) }
                }
            }
        }
    }
}

/// From where to where the sets of a row reach.
fn sets(row: &Row<'_>, axis: &Axis, owners: &Owners) -> BTreeMap<FileId, (f64, f64)> {
    let mut sets = BTreeMap::new();
    for (_, slice) in slices(row.level).filter(|(_, slice)| owners.kind(slice) == Kind::Set) {
        let (from, to) = (axis.of_start(&slice.range), axis.of_end(&slice.range));
        let reach = sets.entry(slice.run.file.id).or_insert((from, to));
        *reach = (reach.0.min(from), reach.1.max(to));
    }
    sets
}

/// The axis: the keys at its ends and at its quarters.
fn keys(version: &Version, axis: &Axis, y: f64) -> Markup {
    const CHARS_MAX: usize = 28;
    let short = |key: &[u8]| {
        let text = plain(&brief(key));
        let is_long = text.chars().count() > CHARS_MAX;
        let cut = text.chars().take(if is_long { CHARS_MAX - 3 } else { CHARS_MAX });
        cut.chain(if is_long { "..." } else { "" }.chars()).collect::<String>()
    };
    let marks = [(0.0, ""), (0.25, "middle"), (0.5, "middle"), (0.75, "middle"), (1.0, "end")];
    html! {
        line class="axis" x1=(LEFT) x2=(RIGHT) y1=(number(y)) y2=(number(y)) {}
        @if version.slices().next().is_some() {
            text class="soft" x="16" y=(number(y + 16.0)) { "Keys" }
            @for (share, class) in marks {
                @let x = number(LEFT + share * (RIGHT - LEFT));
                line class="axis" x1=(x) x2=(x) y1=(number(y)) y2=(number(y + 4.0)) {}
                text class=(class) x=(x) y=(number(y + 16.0)) { (short(axis.key_at(share))) }
            }
        }
    }
}

/// Files by number, width by bytes, filled by what is live and what is dead.
fn draw_files(name: &str, files: &[(u64, u64)], top: f64) -> Markup {
    let total: u64 = files.iter().map(|(_, total)| total).sum();
    let live: u64 = files.iter().map(|(live, total)| live.min(total)).sum();
    let scale = (RIGHT - LEFT) / total.max(1) as f64;
    let before = files.iter().scan(0, |end, (_, bytes)| {
        *end += bytes;
        Some(*end - bytes)
    });
    let middle = top + 12.0;
    html! {
        text x="16" y=(number(middle)) { (name) }
        text class="soft" x="16" y=(number(middle + 15.0)) {
            (units::count(files.len() as u64)) ", " (units::bytes(total))
        }
        text class="soft" x="16" y=(number(middle + 30.0)) { (units::share(live, total)) " live" }
        @for (before, &(live, bytes)) in before.zip(files) {
            @let x = number(LEFT + before as f64 * scale);
            @let width = number((bytes as f64 * scale - 0.5).max(MARK_WIDTH_MIN));
            @let share = live.min(bytes) as f64 / bytes.max(1) as f64;
            @let live_height = share * FILES_HEIGHT;
            rect class="live" x=(x) y=(number(top)) width=(width) height=(number(live_height)) {}
            @if live < bytes {
                rect class="dead" x=(x) y=(number(top + live_height)) width=(width)
                    height=(number(FILES_HEIGHT - live_height)) {}
            }
        }
    }
}

fn show_range(range: &KeyRange) -> String {
    let end = range.end.as_deref().map_or("the end".into(), brief);
    plain(&format!("from {} to {end}", brief(&range.start)))
}

/// Text without the two characters that are no control characters and yet may not be in XML.
pub(super) fn plain(text: &str) -> String {
    text.replace(['\u{FFFE}', '\u{FFFF}'], "\u{FFFD}")
}

/// One decimal is as fine as the eye sees.
pub(super) fn number(value: f64) -> String {
    format!("{value:.1}")
}

#[cfg(test)]
mod tests;
