//! All systems of an experiment side by side: a table for each of its points, with the columns that
//! its file names, as HTML and as Markdown. The best figure of a column stands out.

use super::Account;
use super::plot::{metric, points};
use lab::Findings;
use lab::compare::spell;
use lab::experiment::Column;
use maud::{Markup, html};
use std::fmt::Write;

/// The best figure of a column at a point.
fn best(findings: &Findings<'_>, point: Option<&str>, column: &Column) -> Option<f64> {
    let systems = findings.experiment.systems.iter();
    let values = systems.filter_map(|system| metric(findings, system, point, &column.metric));
    values.reduce(if column.more_is_better { f64::max } else { f64::min })
}

/// A figure of a table, and whether no other of its column is better.
struct Figure {
    value: Option<f64>,
    is_best: bool,
}

impl Figure {
    fn text(&self) -> String {
        self.value.map_or("-".into(), spell)
    }
}

/// A row for each system, with a figure for each column.
fn rows<'a>(findings: &'a Findings<'_>, point: Option<&str>) -> Vec<(&'a str, Vec<Figure>)> {
    let experiment = findings.experiment;
    let best: Vec<Option<f64>> =
        experiment.columns.iter().map(|column| best(findings, point, column)).collect();
    let figures = |system: &String| {
        let cells = experiment.columns.iter().zip(&best);
        let figure = |(column, best): (&Column, &Option<f64>)| {
            let value = metric(findings, system, point, &column.metric);
            Figure { value, is_best: value.is_some() && value == *best }
        };
        cells.map(figure).collect()
    };
    experiment.systems.iter().map(|system| (system.as_str(), figures(system))).collect()
}

/// The tables of an experiment; headings sort.
pub fn tables(findings: &Findings<'_>) -> Markup {
    let experiment = findings.experiment;
    html! {
        @for point in points(experiment) {
            details {
                summary { "Table: " (point.unwrap_or(&experiment.title)) }
                (table(findings, point))
            }
        }
    }
}

fn table(findings: &Findings<'_>, point: Option<&str>) -> Markup {
    let columns = &findings.experiment.columns;
    html! {
        div.scroll { table.sortable.cards {
            thead { tr {
                th { button type="button" { "system" } }
                @for column in columns {
                    th.number { button type="button" { (column.name) } }
                }
            } }
            tbody { @for (system, figures) in rows(findings, point) { tr {
                td { (system) }
                @for (column, figure) in columns.iter().zip(&figures) {
                    td.number.best[figure.is_best] data-is=(column.name)
                        data-sort=(figure.value.unwrap_or(-1.0)) { (figure.text()) }
                }
            } } }
        } }
    }
}

/// The same for the page of the experiment's paper.
pub fn page(account: &Account<'_>, findings: &Findings<'_>) -> String {
    let experiment = findings.experiment;
    let mut text = format!(
        "## Side by side\n\n{} at `{}`, the best of a column in bold.\n",
        experiment.title, account.scale
    );
    for point in points(experiment) {
        let _ = write!(text, "\n### {}\n\n| system |", point.unwrap_or(&experiment.title));
        for column in &experiment.columns {
            let _ = write!(text, " {} |", column.name);
        }
        let _ = writeln!(text, "\n|---|{}", "---:|".repeat(experiment.columns.len()));
        for (system, figures) in rows(findings, point) {
            let figure = |figure: &Figure| match figure.is_best {
                true => format!(" **{}** |", figure.text()),
                false => format!(" {} |", figure.text()),
            };
            let figures: String = figures.iter().map(figure).collect();
            let _ = writeln!(text, "| {system} |{figures}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::plot::draw;
    use lab::{Experiment, Library, Scale};
    use std::collections::BTreeMap;

    const TEXT: &str = r#"
        figure = "1"
        title = "T"
        systems = ["a", "b", "c", "d"]
        axis = "device"
        [[point]]
        name = "disk"
        [[phase]]
        name = "p"
        do = "fillseq"
        [[column]]
        name = "writes"
        metric = "p.wa"
        [[column]]
        name = "gets/s"
        metric = "p.gets"
        more_is_better = true
        [[plot]]
        title = "P"
        x = "p.wa"
        y = "p.ra"
        area = "p.space"
        [[plot]]
        title = "P"
        x = "p.wa"
        y = "p.ra"
    "#;

    /// `d` failed; `c` is worse than `a` but for its space.
    fn findings(experiment: &Experiment) -> Findings<'_> {
        let run = |[wa, ra, space, gets]: [f64; 4]| {
            let names = ["p.wa", "p.ra", "p.space", "p.gets"].map(String::from);
            Ok(names.into_iter().zip([wa, ra, space, gets]).collect::<BTreeMap<_, _>>())
        };
        let runs = [
            ("a", run([2.0, 3.0, 2.0, 10.0])),
            ("b", run([4.0, 1.0, 2.0, 30.0])),
            ("c", run([3.0, 4.0, 1.0, 20.0])),
            ("d", Err("no room".to_string())),
        ];
        let at = |name: &str| (name.to_string(), Some("disk".to_string()));
        let table = runs.into_iter().map(|(name, run)| (at(name), run)).collect();
        Findings::new(experiment, Scale::default(), table).unwrap()
    }

    #[test]
    fn the_best_of_a_column_stands_out() {
        let experiment = Experiment::read("x/y", TEXT).unwrap();
        let library = Library::open().unwrap();
        let account =
            Account { library: &library, scale: "smoke", findings: Vec::new(), claims: Vec::new() };
        let text = page(&account, &findings(&experiment));
        for row in
            ["### disk", "| a | **2.00** | 10.00 |", "| b | 4.00 | **30.00** |", "| d | - | - |"]
        {
            assert!(text.contains(row), "{row}: {text}");
        }
        let html = tables(&findings(&experiment)).into_string();
        assert_eq!(html.matches("number best").count(), 2);
    }

    #[test]
    fn what_nothing_beats_in_every_direction_is_filled() {
        let experiment = Experiment::read("x/y", TEXT).unwrap();
        let findings = findings(&experiment);
        let best = |index: usize| {
            let picture = draw(&findings, &experiment.plots[index]).into_string();
            ["a", "b", "c"].map(|name| picture.contains(&format!("<li class=\"best\">{name}</li>")))
        };
        assert_eq!(best(0), [true, true, true]);
        assert_eq!(best(1), [true, true, false]);
    }
}
