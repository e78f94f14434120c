//! Small charts as inline SVG. Colours are classes of the page's style sheet, so that light and
//! dark need nothing here; every mark has a title for those who point at it.

use maud::{Markup, html};

const WIDTH: f64 = 720.0;
const LABEL_WIDTH: f64 = 190.0;
const TEXT_WIDTH: f64 = 180.0;
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
}

impl Bar {
    /// A bar from zero.
    pub fn new(label: impl Into<String>, value: f64, text: String, class: &'static str) -> Bar {
        Bar { label: label.into(), from: 0.0, to: value, text, class }
    }
}

/// Horizontal bars below each other.
pub fn bars(title: &str, bars: &[Bar]) -> Markup {
    let height = bars.len() as f64 * ROW_HEIGHT + 4.0;
    let max = bars.iter().map(|bar| bar.to).fold(f64::MIN_POSITIVE, f64::max);
    let x = |value: f64| LABEL_WIDTH + value / max * (WIDTH - LABEL_WIDTH - TEXT_WIDTH);
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {height}")) role="img" aria-label=(title) {
            @for (i, bar) in bars.iter().enumerate() {
                @let top = i as f64 * ROW_HEIGHT + 4.0;
                @let middle = top + BAR_HEIGHT / 2.0 + 4.5;
                @let width = (x(bar.to) - x(bar.from)).max(1.0);
                text class="label" x=(LABEL_WIDTH - 10.0) y=(middle) text-anchor="end" {
                    (bar.label)
                }
                rect class=(bar.class) x=(number(x(bar.from))) y=(top) width=(number(width))
                    height=(BAR_HEIGHT) rx="2" { title { (bar.label) ": " (bar.text) } }
                text class="figure" x=(number(x(bar.to) + 8.0)) y=(middle) { (bar.text) }
            }
        }
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

/// Lines over a common x; `show_x` and `show_y` spell the axes' figures.
pub fn lines(
    title: &str,
    lines: &[Line],
    show_x: impl Fn(f64) -> String,
    show_y: impl Fn(f64) -> String,
) -> Markup {
    let points = || lines.iter().flat_map(|line| &line.points);
    let x_max = points().map(|p| p.0).fold(f64::MIN_POSITIVE, f64::max);
    let y_max = points().map(|p| p.1).fold(f64::MIN_POSITIVE, f64::max);
    let plot_width = WIDTH - PLOT_LEFT - PLOT_RIGHT;
    let plot_right = PLOT_LEFT + plot_width;
    let plot_height = PLOT_HEIGHT - PLOT_TOP - PLOT_BOTTOM;
    let x = |value: f64| PLOT_LEFT + value / x_max * plot_width;
    let y = |value: f64| PLOT_TOP + (1.0 - value / y_max) * plot_height;
    let path = |line: &Line| {
        let points = line.points.iter().map(|p| format!("{} {}", number(x(p.0)), number(y(p.1))));
        format!("M{}", points.collect::<Vec<_>>().join("L"))
    };
    let share = |i: u8| f64::from(i) / f64::from(GRID_LINES);
    let label_y = spread(lines.iter().map(|l| l.points.last().map_or(0.0, |p| y(p.1))).collect());
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {PLOT_HEIGHT}")) role="img" aria-label=(title) {
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
    }
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

/// One decimal is as fine as anybody sees.
fn number(value: f64) -> String {
    format!("{value:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_never_stand_on_each_other() {
        assert_eq!(spread(vec![50.0, 48.0, 0.0]), [64.0, 48.0, 0.0]);
    }

    #[test]
    fn empty_charts_have_no_strange_numbers() {
        let empty = lines("empty", &[], |x| x.to_string(), |y| y.to_string()).into_string();
        let zero = bars("zero", &[Bar::new("a", 0.0, "0".into(), "c0")]).into_string();
        assert!(!empty.contains("NaN") && !zero.contains("NaN"));
    }
}
