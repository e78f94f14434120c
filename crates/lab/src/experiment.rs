//! An experiment: the runs of one figure, and how the paper's values follow from their metrics.

use crate::claim::SHAPE;
use crate::expression::{self, Expression};
use crate::null::Null;
use crate::paper::{Paper, map};
use crate::rules::Order;
use crate::scale::Scale;
use crate::settings::{Map, Settings, text};
use base::{Error, Result};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// A phase of a run: a name and settings of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// The first part of its metrics' names.
    pub name: String,
    /// On top of the run's settings; `do` says what happens.
    pub settings: Map,
}

/// A point of a sweep: settings on top of every system's.
#[derive(Clone, Debug)]
pub struct Point {
    /// Its name.
    pub name: String,
    /// Its settings.
    pub settings: Map,
}

/// How one value of a claim follows from metrics.
#[derive(Clone, Debug)]
pub struct Measure {
    /// The claim.
    pub claim: String,
    /// Which of its values.
    pub value: String,
    /// The expression; `None` where it cannot be reproduced.
    pub is: Option<(String, Expression)>,
    /// The rule of the verdict, where it is not the value's own.
    pub rule: Option<String>,
    /// Which way the points of a range go, where the paper says so.
    pub order: Option<Order>,
    /// The main conditions of a shape, by their numbers from 1.
    pub main: Vec<usize>,
    /// What would be measured without the idea, where what stands in for systems does not say it.
    pub null: Option<(String, Expression)>,
    /// Why it cannot be reproduced.
    pub impossible: Option<String>,
    /// Why it is missed: a sentence with expressions in `<...>`.
    pub because: Option<String>,
}

/// A column of the tables that have a row for each system, and of which each point has one.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// What stands above it, with the unit.
    pub name: String,
    /// The metric, `phase.metric`.
    pub metric: String,
    /// Whether more of it is better.
    #[serde(default)]
    pub more_is_better: bool,
}

/// A plot: one metric of all systems.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// The metric, `phase.metric`.
    pub y: String,
    /// Another one along the other axis: each system is a dot, in a picture for each point. Less is
    /// better of both.
    pub x: Option<String>,
    /// The area of the dots: a third metric of which less is better.
    pub area: Option<String>,
    /// Its unit.
    #[serde(default)]
    pub unit: String,
    /// Relative to this system.
    pub over: Option<String>,
    /// Systems; all where none is named.
    #[serde(default)]
    pub systems: Vec<String>,
    /// What the paper has: a system, or a point of the sweep, and its value.
    #[serde(default)]
    pub paper: BTreeMap<String, f64>,
}

/// An experiment.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// `paper/figure`.
    pub id: String,
    /// The figure or table.
    pub figure: String,
    /// What it is about.
    pub title: String,
    /// How it differs from what the paper did; empty where the scale is the only difference.
    pub deviation: String,
    /// Names of systems of the paper.
    pub systems: Vec<String>,
    /// Settings on top of the paper's.
    pub settings: Map,
    /// By name of a scale, what data shrinks by where it is not what the paper's other figures
    /// need: a figure with little data can afford to shrink it less. The same for all its systems.
    pub data_scales: BTreeMap<String, f64>,
    /// The same for sizes: a figure about requests of a block, which does not shrink, cannot have
    /// tables shrink far below it.
    pub size_scales: BTreeMap<String, f64>,
    /// What the sweep varies.
    pub axis: String,
    /// Points of the sweep; empty without one.
    pub points: Vec<Point>,
    /// What is done, in order.
    pub phases: Vec<Phase>,
    /// Metrics that follow from others of the same run, in order.
    pub derived: Vec<(String, Expression)>,
    /// Tables of all systems.
    pub columns: Vec<Column>,
    /// What is plotted.
    pub plots: Vec<Plot>,
    /// What is compared.
    pub measures: Vec<Measure>,
    /// What stands in where the idea is taken away, if it is not what the paper says.
    pub null: Option<Null>,
}

/// One run of an experiment.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The system.
    pub system: String,
    /// The point of the sweep.
    pub point: Option<String>,
    /// What is run.
    pub settings: Settings,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    figure: String,
    title: String,
    #[serde(default)]
    deviation: String,
    systems: Vec<String>,
    #[serde(default)]
    axis: String,
    #[serde(default)]
    settings: toml::Table,
    #[serde(default)]
    data_scale: BTreeMap<String, f64>,
    #[serde(default)]
    size_scale: BTreeMap<String, f64>,
    #[serde(default)]
    point: Vec<toml::Table>,
    phase: Vec<toml::Table>,
    #[serde(default)]
    derived: Vec<RawDerived>,
    #[serde(default)]
    column: Vec<Column>,
    #[serde(default)]
    plot: Vec<Plot>,
    #[serde(default)]
    measure: Vec<RawMeasure>,
    null: Option<Null>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDerived {
    name: String,
    is: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMeasure {
    claim: String,
    value: String,
    is: Option<String>,
    rule: Option<String>,
    order: Option<Order>,
    #[serde(default)]
    main: Vec<usize>,
    null: Option<String>,
    impossible: Option<String>,
    because: Option<String>,
}

/// An expression that names a system in every metric, or, of one run, in none.
fn parse(text: &str, of_one_run: bool) -> Result<Expression> {
    let parsed = expression::parse(text)?;
    let mut wrong = None;
    parsed.names(&mut |system, point, name| {
        if system.is_empty() != of_one_run || (of_one_run && point.is_some()) {
            wrong = Some(name.to_string());
        }
    });
    let form = if of_one_run { "[phase.metric]" } else { "[system phase.metric]" };
    match wrong {
        None => Ok(parsed),
        Some(name) => Err(Error::invalid(format!("expression `{text}`: {name} has to be {form}"))),
    }
}

impl RawDerived {
    fn read(self) -> Result<(String, Expression)> {
        Ok((self.name, parse(&self.is, true)?))
    }
}

impl RawMeasure {
    fn read(self) -> Result<Measure> {
        let parsed = |text: String| parse(&text, false).map(|parsed| (text, parsed));
        let (is, null) = (self.is.map(parsed), self.null.map(parsed));
        Ok(Measure {
            claim: self.claim,
            value: self.value,
            is: is.transpose()?,
            rule: self.rule,
            order: self.order,
            main: self.main,
            null: null.transpose()?,
            impossible: self.impossible,
            because: self.because,
        })
    }
}

fn named(mut table: toml::Table) -> (String, Map) {
    let name = table.remove("name").map(|name| text(&name)).unwrap_or_default();
    (name, map(&table))
}

impl Experiment {
    /// The experiment that `text` describes.
    pub fn read(id: &str, text: &str) -> Result<Experiment> {
        let wrong = |error: String| Error::invalid(format!("experiment {id}: {error}"));
        let file: File = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let measures = file.measure.into_iter().map(RawMeasure::read).collect::<Result<_>>();
        let derived = file.derived.into_iter().map(RawDerived::read).collect::<Result<_>>();
        let points = file.point.into_iter().map(named);
        let phases = file.phase.into_iter().map(named);
        Ok(Experiment {
            id: id.to_string(),
            figure: file.figure,
            title: file.title,
            deviation: file.deviation,
            systems: file.systems,
            settings: map(&file.settings),
            data_scales: file.data_scale,
            size_scales: file.size_scale,
            axis: file.axis,
            points: points.map(|(name, settings)| Point { name, settings }).collect(),
            phases: phases.map(|(name, settings)| Phase { name, settings }).collect(),
            derived: derived.map_err(|error| wrong(error.message().to_string()))?,
            columns: file.column,
            plots: file.plot,
            measures: measures.map_err(|error| wrong(error.message().to_string()))?,
            null: file.null,
        })
    }

    /// The claims that it answers.
    pub fn claims(&self) -> Vec<&str> {
        let mut claims: Vec<&str> = self.measures.iter().map(|m| m.claim.as_str()).collect();
        claims.dedup();
        claims
    }

    /// What measures this value of a claim.
    pub fn measure(&self, claim: &str, value: &str) -> Result<&Measure> {
        let found = self.measures.iter().find(|m| m.claim == claim && m.value == value);
        found.ok_or_else(|| {
            let what = if value == SHAPE { "its shape" } else { value };
            Error::invalid(format!(
                "experiment {}: nothing measures {what} of claim {claim}",
                self.id
            ))
        })
    }

    /// The names of the metrics that anything here reads: what has to be kept of a run.
    pub fn metrics(&self) -> Result<BTreeSet<String>> {
        let mut found = BTreeSet::new();
        let mut add = |expression: &Expression| {
            expression.names(&mut |_, _, name| {
                found.insert(name.to_string());
            });
        };
        for measure in &self.measures {
            let both = [&measure.is, &measure.null];
            both.into_iter().flatten().for_each(|(_, expression)| add(expression));
            for text in measure.because.iter().flat_map(|because| because.split('<').skip(1)) {
                add(&expression::parse(text.split('>').next().unwrap_or_default())?);
            }
        }
        self.derived.iter().for_each(|(_, expression)| add(expression));
        found.extend(self.columns.iter().map(|column| column.metric.clone()));
        for plot in &self.plots {
            let names = [Some(&plot.y), plot.x.as_ref(), plot.area.as_ref()];
            found.extend(names.into_iter().flatten().cloned());
        }
        Ok(found)
    }

    /// The scale of this name: its paper's, but for data and sizes where the figure says so.
    pub fn scale(&self, paper: &Paper, name: &str) -> Result<Scale> {
        let of_paper = paper.scale(name)?;
        let data = self.data_scales.get(name).copied().unwrap_or(of_paper.data);
        let sizes = self.size_scales.get(name).copied().unwrap_or(of_paper.sizes);
        Ok(Scale { data, sizes, ..of_paper.clone() })
    }

    /// Every run, with its settings at a scale.
    pub fn cells(&self, paper: &Paper, scale: &str) -> Result<Vec<Cell>> {
        let scale = self.scale(paper, scale)?;
        let mut cells = Vec::new();
        for name in &self.systems {
            let system = paper.systems.get(name).ok_or_else(|| {
                Error::invalid(format!("experiment {}: there is no system {name}", self.id))
            })?;
            let mut base = paper.defaults.clone();
            base.extend(system.settings.clone());
            base.extend(self.settings.clone());
            let none = Point { name: String::new(), settings: Map::new() };
            let points =
                if self.points.is_empty() { std::slice::from_ref(&none) } else { &self.points };
            for point in points {
                let mut map = base.clone();
                map.extend(point.settings.clone());
                cells.push(Cell {
                    system: name.clone(),
                    point: (!self.points.is_empty()).then(|| point.name.clone()),
                    settings: Settings::new(&map, &scale)?,
                });
            }
        }
        Ok(cells)
    }
}
