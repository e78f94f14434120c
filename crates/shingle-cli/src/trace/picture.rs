//! Write against read amplification as SVG: a mark for each candidate, the best ones joined.

use maud::{Markup, html};
use std::collections::BTreeMap;
use std::f64::consts::TAU;
use workloads::trace::Candidate;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 520.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 56.0;
const GRID_LINES: u8 = 5;
const STYLE: &str = "\
text { font: 12px system-ui, sans-serif; fill: #333 } .grid { stroke: #ddd } \
.front { fill: none; stroke: #333; stroke-dasharray: 4 3 } \
@media (prefers-color-scheme: dark) { svg { background: #181818 } text { fill: #ddd } \
.grid { stroke: #444 } .front { stroke: #ddd } }";
/// One for each scheme.
const COLOURS: [&str; 8] =
    ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#999999", "#ee8866"];

/// The picture.
pub(super) fn front(candidates: &[Candidate]) -> Markup {
    let mut schemes: Vec<&str> = candidates.iter().map(|candidate| candidate.scheme).collect();
    schemes.sort_unstable();
    schemes.dedup();
    let most = |of: fn(&Candidate) -> f64| candidates.iter().map(of).fold(1.0, f64::max) * 1.05;
    let (x_max, y_max) = (most(|c| c.write_amplification), most(|c| c.read_amplification));
    let x = |value: f64| LEFT + value / x_max * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| HEIGHT - BOTTOM - value / y_max * (HEIGHT - TOP - BOTTOM);
    let place = |c: &Candidate| (x(c.write_amplification), y(c.read_amplification));
    let share = |i: u8| f64::from(i) / f64::from(GRID_LINES);
    let colour = |scheme: &str| {
        let at = schemes.iter().position(|name| *name == scheme).unwrap_or_default();
        COLOURS[at % COLOURS.len()]
    };
    html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img"
            aria-label="write amplification against read amplification" {
            style { (STYLE) }
            @for i in 0..=GRID_LINES {
                @let (at_x, at_y) = (x(x_max * share(i)), y(y_max * share(i)));
                line class="grid" x1=(LEFT) x2=(WIDTH - RIGHT)
                    y1=(number(at_y)) y2=(number(at_y)) {}
                text x=(LEFT - 8.0) y=(number(at_y + 4.0)) text-anchor="end" {
                    (number(y_max * share(i)))
                }
                text x=(number(at_x)) y=(HEIGHT - 38.0) text-anchor="middle" {
                    (number(x_max * share(i)))
                }
            }
            text x=(LEFT) y=(HEIGHT - 12.0) {
                "write amplification: bytes written per byte of the user"
            }
            text x=(LEFT) y=(TOP - 8.0) { "read amplification: places probed per get" }
            path class="front" d=(line(candidates, place)) {}
            @for (candidate, at) in candidates.iter().zip(spread(candidates, place)) {
                (mark(candidate, at, colour(candidate.scheme)))
            }
            @for (row, scheme) in (0u8..).zip(&schemes) {
                @let at = TOP + 12.0 + f64::from(row) * 20.0;
                circle cx=(WIDTH - RIGHT + 20.0) cy=(at - 4.0) r="5" fill=(colour(scheme)) {}
                text x=(WIDTH - RIGHT + 32.0) y=(at) { (scheme) }
            }
            text x=(WIDTH - RIGHT - 8.0) y=(HEIGHT - 12.0) { "hollow: separated values" }
        }
    }
}

/// The places of all marks. Those that would cover each other stand on a circle around theirs.
fn spread(candidates: &[Candidate], place: impl Fn(&Candidate) -> (f64, f64)) -> Vec<(f64, f64)> {
    const NEAR: f64 = 6.0;
    let mut groups: BTreeMap<(i64, i64), Vec<usize>> = BTreeMap::new();
    let cell = |(x, y): (f64, f64)| ((x / NEAR).round() as i64, (y / NEAR).round() as i64);
    for (at, candidate) in candidates.iter().enumerate() {
        groups.entry(cell(place(candidate))).or_default().push(at);
    }
    let mut places: Vec<(f64, f64)> = candidates.iter().map(place).collect();
    for group in groups.values().filter(|group| group.len() > 1) {
        let count = group.len() as f64;
        // So wide that neighbours on it do not touch.
        let radius = (count * 2.0 * NEAR / TAU).max(NEAR);
        for (turn, &at) in group.iter().enumerate() {
            let angle = turn as f64 / count * TAU;
            let (x, y) = places[at];
            places[at] = (x + radius * angle.cos(), y + radius * angle.sin());
        }
    }
    places
}

/// Filled where values are in the tree, hollow where they are separated.
fn mark(candidate: &Candidate, (x, y): (f64, f64), colour: &str) -> Markup {
    let fill = if candidate.values == "inline" { colour } else { "none" };
    let radius = if candidate.is_on_front { 6 } else { 4 };
    html! {
        circle cx=(number(x)) cy=(number(y)) r=(radius) fill=(fill) stroke=(colour) {
            title {
                (candidate.name()) ": " (format!("{:.2}", candidate.write_amplification)) ", "
                (format!("{:.2}", candidate.read_amplification))
            }
        }
    }
}

/// The line through those that none is better than.
fn line(candidates: &[Candidate], place: impl Fn(&Candidate) -> (f64, f64)) -> String {
    let mut best: Vec<(f64, f64)> =
        candidates.iter().filter(|candidate| candidate.is_on_front).map(place).collect();
    best.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
    let points = best.iter().map(|(x, y)| format!("{} {}", number(*x), number(*y)));
    format!("M{}", points.collect::<Vec<_>>().join("L"))
}

/// One decimal is as fine as anybody sees.
fn number(value: f64) -> String {
    format!("{value:.1}")
}
