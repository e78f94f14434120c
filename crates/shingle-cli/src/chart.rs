//! Small charts as inline SVG. Colours are classes of the page's style sheet, so that light and
//! dark need nothing here; every mark has a title for those who point at it.

pub mod ratios;

use maud::{Markup, html};

/// Widths of a chart, of what stands left of it and of what stands right.
#[derive(Clone, Copy)]
pub struct Frame {
    width: f64,
    left: f64,
    right: f64,
}

/// Over a whole page.
pub const WIDE: Frame = Frame { width: 720.0, left: 190.0, right: 180.0 };
/// Half of that: two side by side, and legible on a phone.
pub const NARROW: Frame = Frame { width: 440.0, left: 96.0, right: 104.0 };

const ROW_HEIGHT: f64 = 26.0;
const BAR_HEIGHT: f64 = 18.0;

/// One bar: where it begins and ends, in the unit of the chart.
pub struct Bar {
    /// What it is.
    pub label: String,
    /// Where it begins; 0 but for waterfalls.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// The figure beside it.
    pub text: String,
    /// A class of the style sheet.
    pub class: &'static str,
    /// A value to compare with, drawn across the bar.
    pub mark: Option<f64>,
}

impl Bar {
    /// A bar from zero.
    pub fn new(label: impl Into<String>, value: f64, text: String, class: &'static str) -> Bar {
        Bar { label: label.into(), from: 0.0, to: value, text, class, mark: None }
    }
}

/// Horizontal bars below each other.
pub fn bars(frame: Frame, title: &str, bars: &[Bar]) -> Markup {
    let height = bars.len() as f64 * ROW_HEIGHT + 4.0;
    let ends = bars.iter().map(|bar| bar.to.max(bar.mark.unwrap_or(0.0)));
    let max = ends.fold(f64::MIN_POSITIVE, f64::max);
    let x = |value: f64| frame.left + value / max * (frame.width - frame.left - frame.right);
    framed(
        frame,
        html! {
            svg viewBox=(format!("0 0 {} {height}", frame.width)) role="img" aria-label=(title) {
                @for (i, bar) in bars.iter().enumerate() {
                    @let top = i as f64 * ROW_HEIGHT + 4.0;
                    @let middle = top + BAR_HEIGHT / 2.0 + 4.5;
                    @let width = (x(bar.to) - x(bar.from)).max(1.0);
                    text class="label" x=(frame.left - 10.0) y=(middle) text-anchor="end" {
                        (bar.label)
                    }
                    rect class=(bar.class) x=(number(x(bar.from))) y=(top) width=(number(width))
                        height=(BAR_HEIGHT) rx="2" { title { (bar.label) ": " (bar.text) } }
                    @let end = x(bar.to.max(bar.mark.unwrap_or(0.0)));
                    text class="figure" x=(number(end + 8.0)) y=(middle) { (bar.text) }
                    @if let Some(mark) = bar.mark {
                        line class="mark" x1=(number(x(mark))) x2=(number(x(mark)))
                            y1=(top - 3.0) y2=(top + BAR_HEIGHT + 3.0) {}
                    }
                }
            }
        },
    )
}

/// Width of a phone's page: a chart of this width keeps its letters there.
const PHONE_WIDTH: f64 = 350.0;
const PHONE_ROW_HEIGHT: f64 = 40.0;

/// [`bars`] over a whole page, and a second drawing for phones: the style sheet shows one of them.
pub fn page_bars(title: &str, all: &[Bar]) -> Markup {
    html! {
        div.desk { (bars(WIDE, title, all)) }
        div.phone { (phone_bars(title, all)) }
    }
}

/// Horizontal bars over the whole width, each below its label and its figure.
fn phone_bars(title: &str, bars: &[Bar]) -> Markup {
    let height = bars.len() as f64 * PHONE_ROW_HEIGHT + 4.0;
    let max = bars.iter().map(|bar| bar.to).fold(f64::MIN_POSITIVE, f64::max);
    let x = |value: f64| value / max * PHONE_WIDTH;
    html! {
        svg viewBox=(format!("0 0 {PHONE_WIDTH} {height}")) role="img" aria-label=(title) {
            @for (i, bar) in bars.iter().enumerate() {
                @let top = i as f64 * PHONE_ROW_HEIGHT;
                text class="label" x="0" y=(number(top + 16.0)) { (bar.label) }
                text class="figure" x=(PHONE_WIDTH) y=(number(top + 16.0)) text-anchor="end" {
                    (bar.text)
                }
                rect class=(bar.class) x=(number(x(bar.from))) y=(number(top + 22.0))
                    width=(number((x(bar.to) - x(bar.from)).max(1.0))) height="10" rx="2" {}
            }
        }
    }
}

/// A wide chart keeps letters that can be read on a small screen, which scrolls it.
fn framed(frame: Frame, svg: Markup) -> Markup {
    match frame.width > NARROW.width {
        true => html! { div class="scroll wide" { (svg) } },
        false => svg,
    }
}

/// One line of a line chart.
pub struct Line {
    /// What it is.
    pub label: &'static str,
    /// Its points, x ascending.
    pub points: Vec<(f64, f64)>,
    /// A class of the style sheet.
    pub class: &'static str,
}

const PLOT_HEIGHT: f64 = 240.0;
const PLOT_LEFT: f64 = 80.0;
const PLOT_RIGHT: f64 = 150.0;
const PLOT_TOP: f64 = 12.0;
const PLOT_BOTTOM: f64 = 30.0;
const GRID_LINES: u8 = 4;

/// The end of an axis up to `max` whose grid lines stand at round figures.
fn axis_end(max: f64) -> f64 {
    const STEPS: [f64; 10] = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    let step = max / f64::from(GRID_LINES);
    let unit = 10f64.powf(step.log10().floor());
    let round = STEPS.iter().find(|round| *round * unit >= step * (1.0 - 1e-9));
    round.map_or(max, |round| round * unit * f64::from(GRID_LINES))
}

/// Lines over a common x; `show_x` and `show_y` spell the axes' figures.
pub fn lines(
    title: &str,
    lines: &[Line],
    show_x: impl Fn(f64) -> String,
    show_y: impl Fn(f64) -> String,
) -> Markup {
    let points = || lines.iter().flat_map(|line| &line.points);
    let x_max = points().map(|p| p.0).fold(f64::MIN_POSITIVE, f64::max);
    let y_max = axis_end(points().map(|p| p.1).fold(f64::MIN_POSITIVE, f64::max));
    let plot_width = WIDE.width - PLOT_LEFT - PLOT_RIGHT;
    let plot_right = PLOT_LEFT + plot_width;
    let plot_height = PLOT_HEIGHT - PLOT_TOP - PLOT_BOTTOM;
    let x = |value: f64| PLOT_LEFT + value / x_max * plot_width;
    let y = |value: f64| PLOT_TOP + (1.0 - value / y_max) * plot_height;
    let path =
        |line: &Line| path(&line.points.iter().map(|p| (x(p.0), y(p.1))).collect::<Vec<_>>());
    let share = |i: u8| f64::from(i) / f64::from(GRID_LINES);
    let label_y = spread(lines.iter().map(|l| l.points.last().map_or(0.0, |p| y(p.1))).collect());
    framed(
        WIDE,
        html! {
            svg viewBox=(format!("0 0 {} {PLOT_HEIGHT}", WIDE.width))
                role="img" aria-label=(title) {
                @for i in 0..=GRID_LINES {
                    @let (gx, gy) = (x(x_max * share(i)), y(y_max * share(i)));
                    line class="grid" x1=(PLOT_LEFT) x2=(number(plot_right))
                        y1=(number(gy)) y2=(number(gy)) {}
                    text class="axis" x=(PLOT_LEFT - 8.0) y=(number(gy + 4.0)) text-anchor="end" {
                        (show_y(y_max * share(i)))
                    }
                    text class="axis" x=(number(gx)) y=(PLOT_HEIGHT - 8.0) text-anchor="middle" {
                        (show_x(x_max * share(i)))
                    }
                }
                @for (line, at) in lines.iter().zip(label_y).filter(|(l, _)| !l.points.is_empty()) {
                    path class=(format!("line {}", line.class)) d=(path(line)) {
                        title { (line.label) }
                    }
                    text class="label" x=(number(plot_right + 8.0)) y=(number(at + 4.0)) {
                        (line.label)
                    }
                }
            }
        },
    )
}

/// A line over named points, and what it is compared with at some of them.
pub struct Series {
    /// What it is.
    pub label: String,
    /// A value for each point; none where it was not measured.
    pub values: Vec<Option<f64>>,
    /// A class of the style sheet.
    pub class: &'static str,
}

/// Lines over points that have names, with `marks` (point, value) to compare with.
pub fn sweep(
    frame: Frame,
    title: &str,
    points: &[String],
    series: &[Series],
    marks: &[(usize, f64)],
    show: impl Fn(f64) -> String,
) -> Markup {
    const LEFT: f64 = 52.0;
    let values = series.iter().flat_map(|line| line.values.iter().flatten().copied());
    let values = values.chain(marks.iter().map(|mark| mark.1));
    let max = axis_end(values.fold(f64::MIN_POSITIVE, f64::max));
    let height = PLOT_HEIGHT - PLOT_TOP - PLOT_BOTTOM;
    let width = frame.width - LEFT - frame.right;
    let step = width / points.len().max(1) as f64;
    let x = |i: usize| LEFT + (i as f64 + 0.5) * step;
    let y = |value: f64| PLOT_TOP + (1.0 - value / max) * height;
    let placed = |line: &Series| -> Vec<(f64, f64)> {
        let points = line.values.iter().enumerate();
        points.filter_map(|(i, value)| value.map(|value| (x(i), y(value)))).collect()
    };
    let lines: Vec<(&Series, Vec<(f64, f64)>)> =
        series.iter().map(|line| (line, placed(line))).collect();
    let label_y = spread(lines.iter().map(|l| l.1.last().map_or(0.0, |p| p.1)).collect());
    let label_y = raised(label_y, PLOT_TOP + height);
    html! {
        svg viewBox=(format!("0 0 {} {PLOT_HEIGHT}", frame.width)) role="img" aria-label=(title) {
            @for i in 0..=GRID_LINES {
                @let value = max * f64::from(i) / f64::from(GRID_LINES);
                line class="grid" x1=(LEFT) x2=(number(LEFT + width))
                    y1=(number(y(value))) y2=(number(y(value))) {}
                text class="axis" x=(LEFT - 6.0) y=(number(y(value) + 4.0)) text-anchor="end" {
                    (tick(&show(value)))
                }
            }
            @for i in shown(points, step) {
                text class="axis" x=(number(x(i))) y=(PLOT_HEIGHT - 8.0) text-anchor="middle" {
                    (points[i])
                }
            }
            @for ((line, at), label_y) in lines.iter().zip(label_y) {
                path class=(format!("line {}", line.class)) d=(path(at)) {}
                @for (at, value) in at.iter().zip(line.values.iter().flatten()) {
                    circle class=(line.class) cx=(number(at.0)) cy=(number(at.1)) r="3" {
                        title { (line.label) ": " (show(*value)) }
                    }
                }
                text class="label" x=(number(LEFT + width + 6.0)) y=(number(label_y + 4.0)) {
                    (line.label)
                }
            }
            @for (point, value) in marks {
                line class="mark" x1=(number(x(*point) - 9.0)) x2=(number(x(*point) + 9.0))
                    y1=(number(y(*value))) y2=(number(y(*value))) {
                    title { "paper: " (show(*value)) }
                }
            }
        }
    }
}

/// A dot with its name.
pub struct Dot {
    /// What it is.
    pub label: String,
    /// Where; both above zero.
    pub at: (f64, f64),
    /// Its area, over that of the smallest.
    pub area: f64,
    /// Nothing else is as good in every direction and better in one.
    pub is_best: bool,
}

const DOTS_HEIGHT: f64 = 300.0;
const DOT_RADIUS: f64 = 8.0;

/// An axis on which equal distances are equal ratios, from `start` on over `length`.
struct Ratios {
    low: f64,
    high: f64,
    start: f64,
    length: f64,
}

impl Ratios {
    /// For values above zero, with a margin around them.
    fn new(values: impl Iterator<Item = f64>, start: f64, length: f64) -> Ratios {
        const ROOM: f64 = 1.2;
        let range = values.fold((f64::INFINITY, 0.0f64), |(a, b), v| (a.min(v), b.max(v)));
        let (low, high) = if range.1 > 0.0 { range } else { (1.0, 1.0) };
        Ratios { low: low / ROOM, high: high * ROOM, start, length }
    }

    fn place(&self, value: f64) -> f64 {
        self.start + (value / self.low).ln() / (self.high / self.low).ln() * self.length
    }

    /// Round figures for grid lines: four at least where there are as many.
    fn ticks(&self) -> Vec<f64> {
        const FIGURES: [&[f64]; 4] = [
            &[1.0],
            &[1.0, 2.0, 5.0],
            &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
            &[1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
        ];
        let powers = || self.low.log10().floor() as i32..=self.high.log10().floor() as i32;
        let of = |figures: &[f64]| -> Vec<f64> {
            let all = powers().flat_map(|power| figures.iter().map(move |f| f * 10f64.powi(power)));
            all.filter(|tick| (self.low..=self.high).contains(tick)).collect()
        };
        let enough = FIGURES.iter().map(|figures| of(figures)).find(|ticks| ticks.len() >= 4);
        enough.unwrap_or_else(|| of(FIGURES[3]))
    }
}

/// Numbered dots over two axes of ratios, which are `names`; the best are filled.
pub fn dots(
    title: &str,
    names: (&str, &str),
    dots: &[Dot],
    show: impl Fn(f64) -> String,
) -> Markup {
    const LEFT: f64 = 52.0;
    let (top, bottom) = (PLOT_TOP + 12.0, DOTS_HEIGHT - PLOT_BOTTOM - 8.0);
    let x = Ratios::new(dots.iter().map(|dot| dot.at.0), LEFT, NARROW.width - LEFT - 8.0);
    let y = Ratios::new(dots.iter().map(|dot| dot.at.1), bottom, top - bottom);
    let right = x.start + x.length;
    // What is best lies on top.
    let mut order: Vec<(usize, &Dot)> = dots.iter().enumerate().collect();
    order.sort_by_key(|(_, dot)| dot.is_best);
    html! {
        svg viewBox=(format!("0 0 {} {DOTS_HEIGHT}", NARROW.width)) role="img" aria-label=(title) {
            @for tick_x in x.ticks() {
                @let gx = number(x.place(tick_x));
                line class="grid" x1=(gx) x2=(gx) y1=(top) y2=(bottom) {}
                text class="axis" x=(gx) y=(number(bottom + 16.0)) text-anchor="middle" {
                    (tick(&show(tick_x)))
                }
            }
            @for tick_y in y.ticks() {
                @let gy = y.place(tick_y);
                line class="grid" x1=(LEFT) x2=(number(right)) y1=(number(gy)) y2=(number(gy)) {}
                text class="axis" x=(LEFT - 6.0) y=(number(gy + 4.0)) text-anchor="end" {
                    (tick(&show(tick_y)))
                }
            }
            text class="axis" x="0" y=(PLOT_TOP - 1.0) { (names.1) }
            text class="axis" x=(number(right)) y=(DOTS_HEIGHT - 3.0) text-anchor="end" {
                (names.0)
            }
            @for (i, dot) in order {
                @let (dx, dy) = (x.place(dot.at.0), y.place(dot.at.1));
                circle class=(if dot.is_best { "dot best" } else { "dot" }) cx=(number(dx))
                    cy=(number(dy)) r=(number(DOT_RADIUS * dot.area.sqrt())) {
                    title {
                        (dot.label) ": " (names.0) " " (show(dot.at.0)) ", " (names.1) " "
                        (show(dot.at.1))
                    }
                }
                text class=(if dot.is_best { "inside best" } else { "inside" }) x=(number(dx))
                    y=(number(dy + 3.0)) text-anchor="middle" { (i + 1) }
            }
        }
    }
}

fn path(points: &[(f64, f64)]) -> String {
    let points = points.iter().map(|p| format!("{} {}", number(p.0), number(p.1)));
    let points: Vec<String> = points.collect();
    if points.is_empty() { String::new() } else { format!("M{}", points.join("L")) }
}

/// A figure of an axis, which is round: without the zeros behind its point.
fn tick(label: &str) -> String {
    let end = label.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(label.len());
    let (figure, unit) = label.split_at(end);
    let is_broken = figure.contains('.');
    let figure =
        if is_broken { figure.trim_end_matches('0').trim_end_matches('.') } else { figure };
    format!("{figure}{unit}")
}

/// The points whose names fit beside each other.
fn shown(points: &[String], step: f64) -> impl Iterator<Item = usize> {
    const LETTER: f64 = 6.6;
    let longest = points.iter().map(|name| name.chars().count()).max().unwrap_or(1);
    let every = ((longest as f64 + 1.0) * LETTER / step).ceil().max(1.0) as usize;
    (0..points.len()).step_by(every)
}

/// Moves labels apart that would stand on each other.
fn spread(mut at: Vec<f64>) -> Vec<f64> {
    const APART: f64 = 16.0;
    let mut order: Vec<usize> = (0..at.len()).collect();
    order.sort_by(|&a, &b| at[a].total_cmp(&at[b]));
    for pair in order.windows(2) {
        at[pair[1]] = at[pair[1]].max(at[pair[0]] + APART);
    }
    at
}

/// Labels that reach below `bottom`, higher by as much.
fn raised(at: Vec<f64>, bottom: f64) -> Vec<f64> {
    let below = at.iter().copied().fold(bottom, f64::max) - bottom;
    at.into_iter().map(|y| y - below).collect()
}

/// One decimal is as fine as anybody sees.
fn number(value: f64) -> String {
    format!("{value:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_of_ratios_has_round_figures_inside() {
        for (values, ticks) in [
            ([0.7, 1.6], vec![0.7, 1.0, 1.5]),
            ([2.0, 90.0], vec![2.0, 5.0, 10.0, 20.0, 50.0, 100.0]),
            ([3.0, 4e6], vec![10.0, 1e2, 1e3, 1e4, 1e5, 1e6]),
        ] {
            let axis = Ratios::new(values.into_iter(), 10.0, 100.0);
            let found = axis.ticks();
            assert!(ticks.iter().all(|tick| found.iter().any(|f| (f / tick - 1.0).abs() < 1e-9)));
            assert!(found.len() >= 4, "{found:?}");
            assert!(found.iter().all(|tick| (10.0..=110.0).contains(&axis.place(*tick))));
        }
    }

    #[test]
    fn labels_never_stand_on_each_other() {
        assert_eq!(spread(vec![50.0, 48.0, 0.0]), [64.0, 48.0, 0.0]);
        assert_eq!(raised(vec![64.0, 48.0], 60.0), [60.0, 44.0]);
    }

    #[test]
    fn axes_end_where_their_lines_are_round() {
        assert_eq!(axis_end(11.57), 12.0);
        assert_eq!(axis_end(0.9817), 1.0);
        assert_eq!(axis_end(4.0), 4.0);
        assert_eq!(axis_end(16_073.0), 20_000.0);
        assert!(axis_end(f64::MIN_POSITIVE) > 0.0);
    }

    #[test]
    fn round_figures_of_axes_have_no_zeros_behind_their_point() {
        assert_eq!(
            ["24.00", "1.50k", "200.0", "100", "0.2500 s", "0"].map(tick),
            ["24", "1.5k", "200", "100", "0.25 s", "0"]
        );
    }

    /// A phone's page is 350 pixels wide, so that letters keep their size; nothing is beside them.
    #[test]
    fn bars_for_phones_have_letters_of_full_size_and_nothing_beside_the_page() {
        let all = [Bar::new("get a missing key  p99.9", 2.0, "1.40 µs".into(), "c0")];
        let text = page_bars("reads", &all).into_string();
        let phone = text.split("class=\"phone\"").nth(1).expect("there is one for phones");
        assert!(phone.contains("viewBox=\"0 0 350 "), "{phone}");
        let page = include_str!("page.css");
        assert!(page.contains("max-width: 40rem") && page.contains(".desk { display: none; }"));
        let ends = phone.split(" x=\"").skip(1).filter_map(|rest| rest.split('"').next());
        assert!(ends.map(|x| x.parse::<f64>().expect("a number")).all(|x| x <= 350.0), "{phone}");
    }

    #[test]
    fn empty_charts_have_no_strange_numbers() {
        let empty = lines("empty", &[], |x| x.to_string(), |y| y.to_string()).into_string();
        let zero = bars(WIDE, "zero", &[Bar::new("a", 0.0, "0".into(), "c0")]).into_string();
        assert!(!empty.contains("NaN") && !zero.contains("NaN"));
    }
}
