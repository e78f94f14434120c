//! The picture of a medium: what lies where, and where each cause wrote over time.
//!
//! The upper part reads like a page: rows of addresses from the left to the right, up to the last
//! byte in use. A table has the colour of its level; the part of it that no slice lives in is dead
//! and hatched. Tables of one level that lie side by side have one frame: a set, where the scheme
//! makes sets. Free space between files is a fragment. Thin lines are borders of bands or zones.
//! The lower part has an address for each write, by time.

use crate::failure::{Failure, Outcome};
use crate::units;
use direct::{Extent, Layout};
use maud::{Markup, PreEscaped, html};
use media::FileKind;
use shingle::{Cause, FileInfo};
use std::collections::HashMap;
use std::path::Path;

const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 20.0;
const ROW_HEIGHT: f64 = 14.0;
const ROW_STEP: f64 = 18.0;
const ROWS: u64 = 32;
const TOP: f64 = 70.0;
const CHART_HEIGHT: f64 = 480.0;

/// Borders are drawn when there are not more of them than this; more would be a grey area.
const BORDERS_MAX: u64 = 2000;

const STYLE: &str = "text{font:13px sans-serif;fill:#222}.small{font-size:11px;fill:#666}\
.page{fill:#fff}.row{fill:#f1f1f1}.l0{fill:#d62728}.l1{fill:#ff7f0e}.l2{fill:#e3c500}\
.l3{fill:#2ca02c}.l4{fill:#17a2b8}.l5{fill:#1f77b4}.l6{fill:#7b4fb0}.log{fill:#555}\
.manifest{fill:#a0522d}.meta{fill:#000}.value{fill:#e377c2}.fragment{fill:#cfcfcf}\
.dead{fill:url(#hatch)}.set{fill:none;stroke:#000;stroke-width:1}\
.border{stroke:#fff;stroke-width:.7}.write{stroke-width:1.5;fill:none}";

/// Bytes that were written in one go.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    /// When the first of them was.
    pub at_ns: u64,
    /// Why.
    pub cause: Cause,
    /// Where.
    pub extent: Extent,
}

/// What there is to draw.
pub struct Picture {
    /// Above everything.
    pub title: String,
    /// What lies where.
    pub layout: Layout,
    /// What the database says about its tables.
    pub files: Vec<FileInfo>,
}

/// A range of the medium with its looks.
struct Mark {
    extent: Extent,
    class: &'static str,
    title: String,
}

impl Picture {
    /// Draws to `path`; with the addresses of `writes`, if there are any.
    pub fn write(&self, path: &Path, writes: &[Write]) -> Outcome {
        let text = self.svg(writes).into_string();
        let written = std::fs::write(path, text);
        written.map_err(|error| Failure::cannot_write(path, &error))
    }

    fn svg(&self, writes: &[Write]) -> Markup {
        let chart_top = TOP + ROWS as f64 * ROW_STEP + 60.0;
        let height = if writes.is_empty() { chart_top } else { chart_top + CHART_HEIGHT + 40.0 };
        let page = Page { end: self.used_end().max(1) };
        html! {
            svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {WIDTH} {height}"))
                role="img" aria-label=(self.title) {
                style { (PreEscaped(STYLE)) }
                defs {
                    pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse"
                        patternTransform="rotate(45)" {
                        rect width="2" height="5" fill="#fff" fill-opacity=".8" {}
                    }
                }
                rect.page width="100%" height="100%" {}
                text x=(MARGIN) y="22" { (self.headline()) }
                (legend())
                @for row in 0..ROWS { (page.row(row)) }
                @for mark in self.marks() { (page.mark(&mark)) }
                @for start in self.borders(page.end) { (page.border(start)) }
                @if !writes.is_empty() { (chart(writes, chart_top)) }
            }
        }
    }

    fn headline(&self) -> String {
        let dead: u64 = self.files.iter().map(|file| file.bytes - file.live_bytes).sum();
        let fragments: Vec<Extent> = self.fragments().collect();
        let lost: u64 = fragments.iter().map(|extent| extent.bytes).sum();
        format!(
            "{}: placement {}, {} to the last byte in use, {} dead in tables, {} fragments of {}",
            self.title,
            self.layout.placement,
            units::bytes(self.used_end()),
            units::bytes(dead),
            fragments.len(),
            units::bytes(lost),
        )
    }

    /// Behind the last byte that a file has.
    fn used_end(&self) -> u64 {
        let ends = self.layout.files.iter().flat_map(|file| &file.extents).map(Extent::end);
        ends.max().unwrap_or(self.layout.data.start)
    }

    /// Free space before the last byte in use.
    fn fragments(&self) -> impl Iterator<Item = Extent> {
        let end = self.used_end();
        self.layout.free.iter().copied().filter(move |extent| extent.start < end)
    }

    /// Marks in the order in which they are drawn: later ones over earlier ones.
    fn marks(&self) -> Vec<Mark> {
        let infos: HashMap<&str, &FileInfo> =
            self.files.iter().map(|info| (info.name.as_str(), info)).collect();
        let fragment = |extent: Extent| Mark {
            extent,
            class: "fragment",
            title: format!("free: {}", units::bytes(extent.bytes)),
        };
        let metadata = |extent: Extent| Mark { extent, class: "meta", title: "metadata".into() };
        let mut marks: Vec<Mark> = self.layout.metadata.iter().copied().map(metadata).collect();
        marks.extend(self.fragments().map(fragment));
        let (mut dead, mut tables) = (Vec::new(), Vec::new());
        for file in &self.layout.files {
            let name = file.name.to_string();
            let info = infos.get(name.as_str());
            let (class, what) = match (file.name.kind, info) {
                (FileKind::Table, Some(info)) => {
                    (level_class(info.level), format!("L{}", info.level))
                }
                (FileKind::Table, None) => ("log", "no level".into()),
                (FileKind::Wal, _) => ("log", "log".into()),
                (FileKind::Manifest, _) => ("manifest", "manifest".into()),
                (FileKind::Value, _) => ("value", "values".into()),
            };
            let title = format!("{name}, {what}, {}", units::bytes(file.bytes));
            for extent in &file.extents {
                marks.push(Mark { extent: *extent, class, title: title.clone() });
            }
            if let Some(info) = info {
                tables.extend(file.extents.iter().map(|extent| (*extent, info.level)));
                dead.extend(dead_part(&file.extents, info));
            }
        }
        marks.extend(dead);
        marks.extend(sets(tables));
        marks
    }

    /// Where bands or zones begin.
    fn borders(&self, end: u64) -> Vec<u64> {
        let geometry = &self.layout.geometry;
        let bytes = geometry.zones.map_or(geometry.band_bytes, |zones| zones.zone_bytes);
        let count = end.checked_div(bytes).unwrap_or(0);
        if count > BORDERS_MAX { Vec::new() } else { (1..=count).map(|n| n * bytes).collect() }
    }
}

/// The share of a file that no slice lives in, at its end: where in the file it is, slices know.
fn dead_part(extents: &[Extent], info: &FileInfo) -> Option<Mark> {
    let (dead, last) = (info.bytes.saturating_sub(info.live_bytes), extents.last()?);
    let bytes = dead.min(last.bytes);
    let title = format!("{}: {} dead", info.name, units::bytes(dead));
    let extent = Extent { start: last.end() - bytes, bytes };
    (bytes > 0).then_some(Mark { extent, class: "dead", title })
}

/// Tables of one level that lie side by side.
fn sets(mut tables: Vec<(Extent, u8)>) -> Vec<Mark> {
    tables.sort_unstable();
    let mut sets: Vec<(Extent, u8, usize)> = Vec::new();
    for (extent, level) in tables {
        match sets.last_mut() {
            Some((set, of, count)) if *of == level && set.end() == extent.start => {
                set.bytes += extent.bytes;
                *count += 1;
            }
            _ => sets.push((extent, level, 1)),
        }
    }
    let several = sets.into_iter().filter(|(_, _, count)| *count > 1);
    let mark = |(extent, level, count)| Mark {
        extent,
        class: "set",
        title: format!("{count} extents of level {level}"),
    };
    several.map(mark).collect()
}

fn level_class(level: u8) -> &'static str {
    ["l0", "l1", "l2", "l3", "l4", "l5", "l6"].get(usize::from(level)).unwrap_or(&"l6")
}

fn legend() -> Markup {
    let entries = [
        ("l0", "L0"),
        ("l1", "L1"),
        ("l2", "L2"),
        ("l3", "L3"),
        ("l4", "L4"),
        ("l5", "L5"),
        ("l6", "L6"),
        ("log", "log"),
        ("manifest", "manifest"),
        ("value", "values"),
        ("meta", "metadata"),
        ("fragment", "fragment"),
    ];
    html! {
        @for (index, (class, name)) in entries.iter().enumerate() {
            rect.(class) x=(MARGIN + index as f64 * 90.0) y="38" width="12" height="12" {}
            text x=(MARGIN + index as f64 * 90.0 + 17.0) y="48" { (name) }
        }
    }
}

/// Rows of addresses.
struct Page {
    end: u64,
}

impl Page {
    fn row_bytes(&self) -> u64 {
        self.end.div_ceil(ROWS).max(1)
    }

    fn x(&self, within_row: u64) -> f64 {
        MARGIN + within_row as f64 / self.row_bytes() as f64 * (WIDTH - 2.0 * MARGIN)
    }

    fn row(&self, row: u64) -> Markup {
        let y = TOP + row as f64 * ROW_STEP;
        html! {
            rect.row x=(MARGIN) y=(y) width=(WIDTH - 2.0 * MARGIN) height=(ROW_HEIGHT) {
                title { (format!("from {}", units::bytes(row * self.row_bytes()))) }
            }
        }
    }

    /// One rectangle in each row that the mark reaches into.
    fn mark(&self, mark: &Mark) -> Markup {
        let row_bytes = self.row_bytes();
        let (start, end) = (mark.extent.start, mark.extent.end().min(self.end));
        let rows = start / row_bytes..end.div_ceil(row_bytes).min(ROWS);
        html! {
            @for row in rows {
                @let first = start.max(row * row_bytes) - row * row_bytes;
                @let last = end.min((row + 1) * row_bytes).saturating_sub(row * row_bytes);
                rect.(mark.class) x=(format!("{:.2}", self.x(first)))
                    y=(TOP + row as f64 * ROW_STEP)
                    width=(format!("{:.2}", (self.x(last) - self.x(first)).max(0.3)))
                    height=(ROW_HEIGHT) { title { (mark.title) } }
            }
        }
    }

    fn border(&self, at: u64) -> Markup {
        let row = at / self.row_bytes();
        let (x, y) = (self.x(at % self.row_bytes()), TOP + row as f64 * ROW_STEP);
        html! { line.border x1=(x) x2=(x) y1=(y) y2=(y + ROW_HEIGHT) {} }
    }
}

/// Addresses upwards, time to the right.
fn chart(writes: &[Write], top: f64) -> Markup {
    let begin_ns = writes.iter().map(|write| write.at_ns).min().unwrap_or(0);
    let span_ns = writes.iter().map(|write| write.at_ns - begin_ns).max().unwrap_or(0).max(1);
    let end = writes.iter().map(|write| write.extent.end()).max().unwrap_or(1).max(1);
    let x = |ns: u64| MARGIN + (ns - begin_ns) as f64 / span_ns as f64 * (WIDTH - 2.0 * MARGIN);
    let y = |at: u64| top + CHART_HEIGHT * (1.0 - at as f64 / end as f64);
    let seconds = span_ns as f64 / 1e9;
    html! {
        text x=(MARGIN) y=(top - 10.0) {
            (format!("write addresses, 0 to {}, over {seconds:.3} s", units::bytes(end)))
        }
        rect.row x=(MARGIN) y=(top) width=(WIDTH - 2.0 * MARGIN) height=(CHART_HEIGHT) {}
        @for write in writes {
            @let (from, to) = (y(write.extent.start), y(write.extent.end()));
            @let title = format!("{}, {}", write.cause.name(), units::bytes(write.extent.bytes));
            rect.(cause_class(write.cause)) x=(format!("{:.2}", x(write.at_ns)))
                y=(format!("{to:.2}")) width="1.2" height=(format!("{:.2}", (from - to).max(0.6))) {
                title { (title) }
            }
        }
    }
}

fn cause_class(cause: Cause) -> &'static str {
    match cause {
        Cause::Flush => "l0",
        Cause::Compaction(level) => level_class(level),
        // The last level has them, nearly always.
        Cause::ReadCompaction | Cause::IdleCompaction => level_class(u8::MAX),
        Cause::Manifest => "manifest",
        Cause::ValueWrite | Cause::ValueGc => "value",
        Cause::Wal => "log",
        _ => "meta",
    }
}
