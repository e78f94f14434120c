//! A plot of an experiment: one metric of its systems, with the paper's values drawn in.

use crate::chart::{Bar, Dot, NARROW, Series, bars, dots, sweep};
use lab::compare::spell;
use lab::experiment::Plot;
use lab::{Experiment, Findings};
use maud::{Markup, html};

const CLASSES: [&str; 6] = ["c0", "c1", "c2", "c3", "c4", "c5"];

fn class(index: usize) -> &'static str {
    CLASSES[index % CLASSES.len()]
}

/// A number with its unit, large ones in thousands and so on.
fn show(value: f64, unit: &str) -> String {
    const STEPS: [(f64, &str); 3] = [(1e9, "G"), (1e6, "M"), (1e4, "k")];
    let step = STEPS.iter().find(|(from, _)| value.abs() >= *from);
    let number = match step {
        Some((from, letter)) => {
            format!("{}{letter}", spell(value / if *letter == "k" { 1e3 } else { *from }))
        }
        None => spell(value),
    };
    if unit.is_empty() { number } else { format!("{number} {unit}") }
}

/// A metric of a run, where it has one.
pub fn metric(
    findings: &Findings<'_>,
    system: &str,
    point: Option<&str>,
    name: &str,
) -> Option<f64> {
    let key = (system.to_string(), point.map(str::to_string));
    let value = findings.table.get(&key)?.as_ref().ok()?.get(name).copied()?;
    value.is_finite().then_some(value)
}

/// The value of a system, relative to another where the plot asks for it.
fn value(findings: &Findings<'_>, plot: &Plot, system: &str, point: Option<&str>) -> Option<f64> {
    let own = metric(findings, system, point, &plot.y)?;
    match &plot.over {
        Some(base) => Some(own / metric(findings, base, point, &plot.y)?),
        None => Some(own),
    }
}

fn systems<'a>(experiment: &'a Experiment, plot: &'a Plot) -> &'a [String] {
    if plot.systems.is_empty() { &experiment.systems } else { &plot.systems }
}

/// The points of a sweep by name, or nothing once.
pub fn points(experiment: &Experiment) -> Vec<Option<&str>> {
    let points = experiment.points.iter().map(|point| Some(point.name.as_str()));
    if experiment.points.is_empty() { vec![None] } else { points.collect() }
}

/// The plot as a picture with its title; dots as one for each point.
pub fn draw(findings: &Findings<'_>, plot: &Plot) -> Markup {
    let experiment = findings.experiment;
    if let Some(x) = &plot.x {
        return html! {
            @for point in points(experiment) {
                @let more = point.map(|point| format!(": {point}")).unwrap_or_default();
                (titled(plot, &more, as_dots(findings, plot, x, point)))
            }
        };
    }
    titled(plot, &by(experiment), of_systems(findings, plot))
}

/// What a plot that is not of dots goes by, behind its title.
fn by(experiment: &Experiment) -> String {
    match experiment.points.is_empty() {
        true => String::new(),
        false => format!(", by {}", experiment.axis),
    }
}

fn of_systems(findings: &Findings<'_>, plot: &Plot) -> Markup {
    match findings.experiment.points.is_empty() {
        true => as_bars(findings, plot),
        false => as_lines(findings, plot),
    }
}

/// The first plot of an experiment that is not of dots: its title, and an SVG file with `style`.
pub fn picture(findings: &Findings<'_>, style: &str) -> Option<(String, String)> {
    let plot = findings.experiment.plots.iter().find(|plot| plot.x.is_none())?;
    let unit = if plot.unit.is_empty() { String::new() } else { format!(", {}", plot.unit) };
    let text = of_systems(findings, plot).into_string();
    // A wide chart is an `svg` inside a `div`.
    let (attributes, rest) = text.split_once("<svg ")?.1.split_once('>')?;
    let (inside, _) = rest.split_once("</svg>")?;
    let start = format!("<svg xmlns=\"http://www.w3.org/2000/svg\" {attributes}>");
    let svg = format!("{start}<style>{style}</style>{inside}</svg>\n");
    Some((format!("{}{}{unit}", plot.title, by(findings.experiment)), svg))
}

fn titled(plot: &Plot, more: &str, picture: Markup) -> Markup {
    html! {
        div {
            h4 { (plot.title) (more) @if !plot.unit.is_empty() { ", " (plot.unit) } }
            (picture)
        }
    }
}

fn as_bars(findings: &Findings<'_>, plot: &Plot) -> Markup {
    let rows = systems(findings.experiment, plot).iter().enumerate().map(|(index, system)| {
        let measured = value(findings, plot, system, None);
        let text = measured.map_or("not measured".into(), |value| show(value, &plot.unit));
        let bar = Bar::new(system.clone(), measured.unwrap_or(0.0), text, class(index));
        Bar { mark: plot.paper.get(system).copied(), ..bar }
    });
    bars(NARROW, &plot.title, &rows.collect::<Vec<_>>())
}

fn as_lines(findings: &Findings<'_>, plot: &Plot) -> Markup {
    let experiment = findings.experiment;
    let points: Vec<String> = experiment.points.iter().map(|point| point.name.clone()).collect();
    let is_base = |system: &String| plot.over.as_ref() == Some(system);
    let series = systems(experiment, plot).iter().enumerate().filter(|(_, s)| !is_base(s));
    let series = series.map(|(index, system)| Series {
        label: system.clone(),
        values: points.iter().map(|p| value(findings, plot, system, Some(p))).collect(),
        class: class(index),
    });
    let at = |name: &String| points.iter().position(|point| point == name);
    let marks: Vec<(usize, f64)> =
        plot.paper.iter().filter_map(|(name, value)| Some((at(name)?, *value))).collect();
    let show = |value: f64| show(value, "");
    sweep(NARROW, &plot.title, &points, &series.collect::<Vec<_>>(), &marks, show)
}

/// The systems as dots, with their names below. Less is better in every direction: what nothing
/// else beats in one without losing in another is filled.
fn as_dots(findings: &Findings<'_>, plot: &Plot, x: &str, at: Option<&str>) -> Markup {
    let place = |system: &String| {
        let of = |name: &str| metric(findings, system, at, name).filter(|value| *value > 0.0);
        let area = plot.area.as_ref().map_or(Some(1.0), |area| of(area))?;
        Some((system.clone(), [of(x)?, of(&plot.y)?, area]))
    };
    let placed: Vec<_> = systems(findings.experiment, plot).iter().filter_map(place).collect();
    let beats = |a: &[f64; 3], b: &[f64; 3]| a != b && a.iter().zip(b).all(|(a, b)| a <= b);
    let smallest = placed.iter().map(|(_, at)| at[2]).fold(f64::INFINITY, f64::min);
    let dot = |(label, at): &(String, [f64; 3])| Dot {
        label: label.clone(),
        at: (at[0], at[1]),
        area: at[2] / smallest,
        is_best: !placed.iter().any(|(_, other)| beats(other, at)),
    };
    let all: Vec<Dot> = placed.iter().map(dot).collect();
    let name = |metric| column_name(findings.experiment, metric);
    let show = |value| show(value, "");
    html! {
        (dots(&plot.title, (name(x), name(&plot.y)), &all, show))
        ol.names {
            @for dot in &all { li class=[dot.is_best.then_some("best")] { (dot.label) } }
        }
        p.soft {
            "Filled, and bold: none is as good in all and better in one."
            @if let Some(area) = &plot.area { " A dot's area is its " (name(area)) "." }
        }
    }
}

/// What a metric is called where a table of the experiment has it.
fn column_name<'a>(experiment: &'a Experiment, metric: &'a str) -> &'a str {
    let column = experiment.columns.iter().find(|column| column.metric == metric);
    column.map_or(metric, |column| &column.name)
}
