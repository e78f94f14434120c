//! `dump values`: the segments of values by group, as text and as a picture.
//!
//! A row for each group, a box for each of its segments in the order of writes, as wide as it has
//! bytes; the live share above, the dead below. What is retired stands apart: its live records are
//! elsewhere. No script, no network; the style sheet is the one of the tree.

use super::Dump;
use super::picture::{STYLE, number, plain};
use crate::failure::{Failure, Outcome};
use crate::units;
use maud::{Markup, PreEscaped, html};
use media::FileName;
use std::path::Path;
use tree::{Group, Segment, Segments, Tier};

const WIDTH: f64 = 1200.0;
const LEFT: f64 = 250.0;
const RIGHT: f64 = 1180.0;
const TOP: f64 = 70.0;
const ROW_HEIGHT: f64 = 22.0;
const ROW_GAP: f64 = 6.0;
/// Rows beyond this many are left out, those with the fewest dead bytes.
const ROWS_MAX: usize = 200;

/// The segments of a group, or the retired ones of all.
struct Row<'a> {
    name: String,
    segments: Vec<&'a Segment>,
}

impl Row<'_> {
    fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    fn live_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.live_bytes()).sum()
    }
}

fn rows(segments: &Segments) -> Vec<Row<'_>> {
    let groups = segments.groups().into_iter();
    let mut rows: Vec<Row<'_>> =
        groups.map(|(group, segments)| Row { name: name(&group), segments }).collect();
    let retired: Vec<&Segment> = segments.iter().filter(|s| s.retired.is_some()).collect();
    if !retired.is_empty() {
        rows.push(Row { name: "retired".into(), segments: retired });
    }
    rows
}

/// The tier, and the bits that the hashes of its keys begin with.
fn name(group: &Group) -> String {
    let tier = match group.tier {
        Tier::Main => "main",
        Tier::Cold => "cold",
    };
    if group.depth == 0 {
        return format!("{tier}, all keys");
    }
    let (bits, width) = (group.prefix >> (64 - u32::from(group.depth)), usize::from(group.depth));
    format!("{tier}, hashes {bits:0width$b}..")
}

impl Dump<'_, '_> {
    pub(super) fn values(&mut self, svg: Option<&Path>) -> Outcome {
        let keyspace = self.context.global.keyspace.clone();
        let segments = self.known_version(&keyspace)?.segments;
        let rows = rows(&segments);
        if let Some(path) = svg {
            let title = format!("The value segments of keyspace {keyspace}");
            return self.draw(path, &picture(&rows, &title));
        }
        for row in &rows {
            let (live, bytes) = (row.live_bytes(), row.bytes());
            self.line(&format!(
                "{}: {} in {} segments, {} of it live",
                row.name,
                units::bytes(bytes),
                units::count(row.segments.len() as u64),
                units::share(live, bytes)
            ))?;
            for segment in &row.segments {
                self.line(&format!("  {}", about(segment)))?;
            }
        }
        Ok(())
    }

    /// Writes a picture to a file.
    pub(super) fn draw(&mut self, path: &Path, text: &str) -> Outcome {
        std::fs::write(path, text).map_err(|error| Failure::cannot_write(path, &error))?;
        self.context.remark(&format!("drawn: {}", path.display()));
        Ok(())
    }
}

fn about(segment: &Segment) -> String {
    let name = FileName::value(segment.file.id);
    let state = match (segment.retired, segment.is_provisional) {
        (Some(sequence), _) => format!(", retired at {sequence}"),
        (None, true) => ", provisional".into(),
        (None, false) => String::new(),
    };
    let place = if segment.is_in_cold_store { ", in the cold store" } else { "" };
    let (bytes, dead) = (units::bytes(segment.bytes), units::bytes(segment.dead_bytes));
    format!("{name}: {bytes}, {dead} dead{state}{place}")
}

fn picture(rows: &[Row<'_>], title: &str) -> String {
    let mut shown: Vec<&Row<'_>> = rows.iter().collect();
    if shown.len() > ROWS_MAX {
        shown.sort_by_key(|row| std::cmp::Reverse(row.bytes() - row.live_bytes()));
        shown.truncate(ROWS_MAX);
    }
    let widest = shown.iter().map(|row| row.bytes()).max().unwrap_or(0).max(1);
    let scale = (RIGHT - LEFT) / widest as f64;
    let height = TOP + shown.len() as f64 * (ROW_HEIGHT + ROW_GAP) + 10.0;
    let (all, live) =
        rows.iter().fold((0, 0), |(all, live), row| (all + row.bytes(), live + row.live_bytes()));
    let (all_text, share) = (units::bytes(all), units::share(live, all));
    let groups = units::count(rows.len() as u64);
    let picture = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {WIDTH} {}", number(height)))
            width=(WIDTH) height=(number(height)) role="img" aria-label=(plain(title)) {
            style { (PreEscaped(STYLE)) }
            text class="title" x="16" y="26" { (plain(title)) }
            text class="soft end" x=(RIGHT) y="26" {
                (groups) " groups, " (all_text) ", " (share) " of it live"
            }
            rect class="live" x="16" y="38" width="18" height="6" {}
            rect class="dead" x="16" y="44" width="18" height="6" {}
            text x="42" y="48" { "of a segment: live above, dead below" }
            @for (at, row) in shown.iter().enumerate() {
                (draw_row(row, TOP + at as f64 * (ROW_HEIGHT + ROW_GAP), scale))
            }
        }
    };
    picture.into_string()
}

fn draw_row(row: &Row<'_>, top: f64, scale: f64) -> Markup {
    let before = row.segments.iter().scan(0, |end, segment| {
        *end += segment.bytes;
        Some(*end - segment.bytes)
    });
    let middle = top + ROW_HEIGHT * 0.7;
    html! {
        text x="16" y=(number(middle)) { (row.name) }
        text class="soft end" x=(LEFT - 10.0) y=(number(middle)) { (units::bytes(row.bytes())) }
        @for (before, segment) in before.zip(&row.segments) {
            (draw_segment(segment, LEFT + before as f64 * scale, top, scale))
        }
    }
}

fn draw_segment(segment: &Segment, x: f64, top: f64, scale: f64) -> Markup {
    let width = number((segment.bytes as f64 * scale - 0.5).max(0.5));
    let live = ROW_HEIGHT * segment.live_bytes() as f64 / segment.bytes.max(1) as f64;
    let x = number(x);
    html! {
        g {
            title { (about(segment)) }
            rect class="live" x=(x) y=(number(top)) width=(width) height=(number(live)) {}
            @if live < ROW_HEIGHT {
                rect class="dead" x=(x) y=(number(top + live)) width=(width)
                    height=(number(ROW_HEIGHT - live)) {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::FileId;
    use std::sync::Arc;
    use tree::{FileRef, ObsoleteFiles};

    #[test]
    fn groups_are_named_by_their_bits_and_drawn_with_live_and_dead_bytes() {
        let mut segments = Segments::default();
        let obsolete_files = Arc::new(ObsoleteFiles::default());
        let mut add = |file: u64, group| {
            let held = FileRef::new_values(FileId(file), 0, obsolete_files.clone());
            segments.add(Segment::new(held, group, 1000)).unwrap();
        };
        add(3, Group::of(Tier::Main, 0b011 << 61, 3));
        add(4, Group::all(Tier::Cold));
        add(5, Group::all(Tier::Cold));
        segments.bury(FileId(3), 250);
        segments.retire(FileId(4), 7).unwrap();
        let rows = rows(&segments);
        let names: Vec<&str> = rows.iter().map(|row| &row.name[..]).collect();
        assert_eq!(names, ["main, hashes 011..", "cold, all keys", "retired"]);
        assert_eq!(rows[0].live_bytes(), 750);
        assert_eq!(about(rows[2].segments[0]), "000004.value: 1.00 KB, 0 B dead, retired at 7");
        let text = picture(&rows, "title");
        assert!(text.starts_with("<svg"), "{text}");
        assert_eq!(text.matches("class=\"live\"").count(), 1 + 3);
        // The legend's, that of the first, and all of the retired one.
        assert_eq!(text.matches("class=\"dead\"").count(), 1 + 2);
    }
}
