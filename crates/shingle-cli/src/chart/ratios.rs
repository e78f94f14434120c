//! Rows of marks on one logarithmic axis of ratios around 1, between their labels and columns.

use super::{Ratios, number};
use maud::{Markup, html};

/// The shape of a mark, which is also its class: it can be told without colours.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    Disc,
    Diamond,
    Cross,
}

/// One row: its marks, and what stands right of them.
pub struct Row {
    pub label: String,
    pub ratios: Vec<f64>,
    pub sign: Sign,
    pub columns: [String; 2],
}

/// Rows below a heading.
pub struct Group {
    pub heading: String,
    pub rows: Vec<Row>,
}

/// All that a picture of ratios shows.
pub struct Sheet {
    pub title: String,
    /// The names of the columns right of the axis.
    pub columns: [&'static str; 2],
    pub legend: Vec<(Sign, &'static str)>,
    pub groups: Vec<Group>,
    /// Lines below the rows.
    pub notes: Vec<String>,
}

/// The ends of the axis. A mark beyond them stands at the end, with an arrow.
const ENDS: (f64, f64) = (0.1, 10.0);
/// Factors in either direction that are shaded, the widest first.
const BANDS: [(f64, &str, &str); 2] =
    [(2.0, "wide-band", "within 2 times"), (1.25, "narrow-band", "within 1.25 times")];
const WIDTH: f64 = 880.0;
const AXIS_MIN: f64 = 240.0;
/// Advance of a letter of 12 pixels, rather too wide than too narrow.
const LETTER: f64 = 6.8;
const GAP: f64 = 24.0;
const ROW: f64 = 18.0;
const HEADING: f64 = 26.0;
const TOP: f64 = 86.0;

/// Where everything stands.
struct Layout {
    width: f64,
    axis: Ratios,
    /// The right ends of the columns.
    columns: [f64; 2],
    bottom: f64,
}

impl Layout {
    fn new(sheet: &Sheet) -> Layout {
        let rows = || sheet.groups.iter().flat_map(|group| &group.rows);
        let longest = |texts: &mut dyn Iterator<Item = &str>| {
            texts.map(|text| text.chars().count()).max().unwrap_or(0) as f64 * LETTER
        };
        let column = |i: usize| {
            let texts = rows().map(|row| row.columns[i].as_str());
            longest(&mut texts.chain([sheet.columns[i]])) + GAP
        };
        let left = longest(&mut rows().map(|row| row.label.as_str())) + 2.0 * GAP;
        let (first, second) = (column(0), column(1));
        let length = (WIDTH - left - first - second - 2.0 * GAP).max(AXIS_MIN);
        let end = left + length + GAP + first;
        Layout {
            width: end + second + GAP,
            axis: Ratios { low: ENDS.0, high: ENDS.1, start: left, length },
            columns: [end, end + second],
            bottom: TOP + sheet.groups.iter().map(height).sum::<f64>() + 4.0,
        }
    }

    fn right(&self) -> f64 {
        self.axis.start + self.axis.length
    }
}

fn height(group: &Group) -> f64 {
    HEADING + group.rows.len() as f64 * ROW
}

/// The picture, in pixels.
pub fn ratios(sheet: &Sheet) -> Markup {
    let layout = Layout::new(sheet);
    let height = layout.bottom + 24.0 + sheet.notes.len() as f64 * ROW + 8.0;
    let (width, height) = (number(layout.width), number(height));
    let tops = sheet.groups.iter().scan(TOP, |next, group| {
        let top = *next;
        *next += self::height(group);
        Some((top, group))
    });
    html! {
        svg viewBox=(format!("0 0 {width} {height}")) width=(width) height=(height) role="img"
            aria-label=(sheet.title) {
            text class="title" x=(GAP) y="28" { (sheet.title) }
            (legend(&sheet.legend))
            (scale(&layout))
            @for (name, x) in sheet.columns.iter().zip(layout.columns) {
                text class="axis" x=(number(x)) y=(TOP - 8.0) text-anchor="end" { (name) }
            }
            @for (top, group) in tops {
                text class="heading" x=(GAP) y=(top + 18.0) { (group.heading) }
                @for (i, row) in group.rows.iter().enumerate() {
                    (marks(&layout, row, top + HEADING + (i as f64 + 0.5) * ROW))
                }
            }
            @for (i, note) in sheet.notes.iter().enumerate() {
                text class="axis" x=(GAP) y=(number(layout.bottom + 40.0 + i as f64 * ROW)) {
                    (note)
                }
            }
        }
    }
}

/// The signs and bands with their meaning, in one line.
fn legend(signs: &[(Sign, &'static str)]) -> Markup {
    const Y: f64 = 50.0;
    let mut x = GAP + 6.0;
    let mut next = |text: &str| {
        let at = x;
        x += text.chars().count() as f64 * LETTER + 2.0 * GAP;
        at
    };
    html! {
        @for (sign, text) in signs {
            @let x = next(text);
            (mark(*sign, x, Y - 4.0))
            text class="axis" x=(number(x + 12.0)) y=(Y) { (text) }
        }
        @for (_, class, text) in BANDS.iter().rev() {
            @let x = next(text);
            rect class=(class) x=(number(x - 5.0)) y=(Y - 10.0) width="12" height="12" {}
            text class="axis" x=(number(x + 12.0)) y=(Y) { (text) }
        }
    }
}

/// Bands, grid lines and figures, above the rows and below them.
fn scale(layout: &Layout) -> Markup {
    let axis = &layout.axis;
    html! {
        @for (factor, class, _) in BANDS {
            @let (from, to) = (axis.place(1.0 / factor), axis.place(factor));
            rect class=(class) x=(number(from)) y=(TOP) width=(number(to - from))
                height=(number(layout.bottom - TOP)) {}
        }
        @for tick in axis.ticks() {
            @let x = number(axis.place(tick));
            @let is_one = (tick - 1.0).abs() < 1e-9;
            line class=(if is_one { "mark" } else { "grid" }) x1=(x) x2=(x) y1=(TOP)
                y2=(number(layout.bottom)) {}
            @for y in [TOP - 8.0, layout.bottom + 16.0] {
                text class="axis" x=(x) y=(number(y)) text-anchor="middle" {
                    (super::tick(&format!("{tick:.1}")))
                }
            }
        }
    }
}

fn marks(layout: &Layout, row: &Row, y: f64) -> Markup {
    let middle = number(y + 4.0);
    html! {
        text class="label" x=(number(layout.axis.start - GAP)) y=(middle) text-anchor="end" {
            (row.label)
        }
        line class="grid" x1=(number(layout.axis.start)) x2=(number(layout.right()))
            y1=(number(y)) y2=(number(y)) {}
        @for ratio in &row.ratios {
            @let inside = ratio.max(ENDS.0).min(ENDS.1);
            @let x = layout.axis.place(inside);
            (mark(row.sign, x, y))
            @if *ratio != inside { (arrow(x, y, if *ratio < inside { -1.0 } else { 1.0 })) }
        }
        @for (text, x) in row.columns.iter().zip(layout.columns) {
            text class="figure" x=(number(x)) y=(middle) text-anchor="end" { (text) }
        }
    }
}

fn mark(sign: Sign, x: f64, y: f64) -> Markup {
    let at = |d: &str| format!("M{} {}{d}", number(x), number(y));
    html! {
        @match sign {
            Sign::Disc => circle class="disc" cx=(number(x)) cy=(number(y)) r="5" {},
            Sign::Diamond => path class="diamond" d=(at("m-6 0l6 -6l6 6l-6 6z")) {},
            Sign::Cross => path class="cross" d=(at("m-5 -5l10 10m0 -10l-10 10")) {},
        }
    }
}

/// Beside a mark at an end of the axis: its value lies further out.
fn arrow(x: f64, y: f64, direction: f64) -> Markup {
    let d =
        format!("M{} {}l0 -8l{} 4z", number(x + 8.0 * direction), number(y + 4.0), 7.0 * direction);
    html! { path class="arrow" d=(d) {} }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet(label: &str, ratios: &[f64]) -> Sheet {
        let columns = ["2".to_string(), "1".to_string()];
        let row = Row { label: label.into(), ratios: ratios.to_vec(), sign: Sign::Cross, columns };
        Sheet {
            title: "A".into(),
            columns: ["paper", "measured"],
            legend: Vec::new(),
            groups: vec![Group { heading: "Fig. 1".into(), rows: vec![row] }],
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_mark_beyond_the_axis_stands_at_its_end_with_an_arrow() {
        let count = |ratios: &[f64]| {
            let sheet = sheet("a", ratios);
            let text = drawn(&sheet);
            let left = number(Layout::new(&sheet).axis.start);
            let at_left = text.matches(&format!("class=\"cross\" d=\"M{left} ")).count();
            (text.matches("\"cross\"").count(), text.matches("\"arrow\"").count(), at_left)
        };
        assert_eq!(count(&[0.1, 1.0, 10.0]), (3, 0, 1));
        assert_eq!(count(&[0.0, 0.05, 1.0, 12.0]), (4, 3, 2));
    }

    fn drawn(sheet: &Sheet) -> String {
        ratios(sheet).into_string()
    }

    #[test]
    fn long_labels_push_the_axis_and_widen_the_picture() {
        let layouts =
            ["a".repeat(10), "a".repeat(120)].map(|label| Layout::new(&sheet(&label, &[1.0])));
        assert!((layouts[0].width - WIDTH).abs() < 0.1, "{}", layouts[0].width);
        assert!(layouts[1].width > WIDTH && layouts[1].axis.length >= AXIS_MIN);
        assert!(layouts[1].axis.start > 120.0 * LETTER);
    }
}
