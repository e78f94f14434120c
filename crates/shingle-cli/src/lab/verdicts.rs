//! Pictures of a paper's verdicts, from its file of values alone: the measured gain over the
//! paper's. A kept file gives the same picture as the run that wrote it.

use crate::chart::ratios::{Group, Row, Sheet, Sign, ratios};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use lab::Verdict;
use lab::claim::Stated;
use maud::{PreEscaped, html};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

const STYLE: &str = include_str!("verdicts.css");
/// The picture of all files together.
const OVERVIEW: &str = "overview";
const LEGEND: [(Sign, &str); 3] = [
    (Sign::Disc, "reproduced"),
    (Sign::Diamond, "reproduced in shape"),
    (Sign::Cross, "not reproduced"),
];
const NOTES: [&str; 3] = [
    "Ratio: the measured gain over the paper's. The gain of a ratio between systems is its \
     distance from 1.",
    "Shares, changes and figures, and ratios that the paper has at about 1, are compared whole.",
    "Lists and ranges have a mark for each point. An arrow: beyond the axis, or no gain at all.",
];

/// A row of a file of values.
#[derive(Deserialize)]
struct Value {
    claim: String,
    figure: String,
    value: String,
    paper: String,
    measured: String,
    ratio: String,
    verdict: String,
}

/// Why a value has no mark.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum LeftOut {
    Trend,
    Bound,
    NotMeasured,
    NoRatio,
}

impl LeftOut {
    fn words(self) -> &'static str {
        match self {
            LeftOut::Trend => "trends in words",
            LeftOut::Bound => "bounds",
            LeftOut::NotMeasured => "not measured",
            LeftOut::NoRatio => "without a finite ratio",
        }
    }
}

impl Value {
    /// The measured gain over the paper's, one for each measured number.
    fn ratios(&self) -> Result<Vec<f64>, LeftOut> {
        if self.sign().is_none() {
            return Err(LeftOut::NotMeasured);
        }
        match Stated::from(self.paper.as_str()) {
            Stated::Trend(_) => return Err(LeftOut::Trend),
            Stated::Above(_) => return Err(LeftOut::Bound),
            _ => {}
        }
        let ratios = self.ratio.split(", ").map(str::parse::<f64>).collect::<Result<Vec<_>, _>>();
        ratios.map_err(|_| LeftOut::NoRatio)
    }

    /// None for what cannot be reproduced, and for a verdict of another program.
    fn sign(&self) -> Option<Sign> {
        match Verdict::ALL.iter().find(|verdict| verdict.name() == self.verdict)? {
            Verdict::Holds => Some(Sign::Disc),
            Verdict::InShape => Some(Sign::Diamond),
            Verdict::DoesNotHold => Some(Sign::Cross),
            Verdict::WithoutIdea | Verdict::Impossible => None,
        }
    }
}

/// `shingle lab draw DIR`.
pub fn draw_again(context: &Context, folder: &Path) -> Outcome {
    let drawn = draw(folder)?;
    if drawn == 0 {
        let message = format!("{} has no file of values", folder.join("values").display());
        return Err(Failure::said(message, "name the directory `papers` that `lab run` wrote"));
    }
    context.remark(&format!("{drawn} pictures are in {}", folder.join("pictures").display()));
    Ok(())
}

/// Draws every file of `folder/values` into `folder/pictures`, and all of them in one picture more.
/// Returns the number of pictures.
pub fn draw(folder: &Path) -> Outcome<usize> {
    let mut sheets = BTreeMap::new();
    let mut all = Vec::new();
    let files = walkdir::WalkDir::new(folder.join("values")).sort_by_file_name();
    for file in files.into_iter().flatten() {
        let path = file.path();
        if path.extension().is_none_or(|extension| extension != "csv") {
            continue;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let values = read(path)?;
        all.push(summary(&name, &values));
        sheets.insert(name.clone(), sheet(&name, &values));
    }
    if all.is_empty() {
        return Ok(0);
    }
    sheets.insert(OVERVIEW.to_string(), overview(all));
    let pictures = folder.join("pictures");
    std::fs::create_dir_all(&pictures).map_err(|error| Failure::cannot_write(&pictures, &error))?;
    for (name, sheet) in &sheets {
        let path = pictures.join(format!("{name}.svg"));
        std::fs::write(&path, document(sheet))
            .map_err(|error| Failure::cannot_write(&path, &error))?;
    }
    Ok(sheets.len())
}

fn read(path: &Path) -> Outcome<Vec<Value>> {
    let broken = |error: csv::Error| {
        let help = "it has to be one that `shingle lab run` wrote";
        Failure::said(format!("{}: {error}", path.display()), help)
    };
    let mut reader = csv::Reader::from_path(path).map_err(broken)?;
    reader.deserialize().collect::<Result<_, _>>().map_err(broken)
}

/// `paper, scale` of a file's name.
fn spoken(name: &str) -> String {
    name.rsplit_once('-').map_or(name.to_string(), |(paper, scale)| format!("{paper}, {scale}"))
}

/// One row for each value that has a ratio, by claims.
fn sheet(name: &str, values: &[Value]) -> Sheet {
    let groups = values.chunk_by(|a, b| a.claim == b.claim).map(|claim| Group {
        heading: format!("{}: {}", claim[0].figure, claim[0].claim),
        rows: claim.iter().filter_map(row).collect(),
    });
    let mut notes = vec![left_out(values)];
    notes.extend(NOTES.map(String::from));
    Sheet {
        title: format!("{}: the measured gain over the paper's", spoken(name)),
        columns: ["paper", "measured"],
        legend: LEGEND.to_vec(),
        groups: groups.filter(|group| !group.rows.is_empty()).collect(),
        notes,
    }
}

fn row(value: &Value) -> Option<Row> {
    Some(Row {
        label: value.value.clone(),
        ratios: value.ratios().ok()?,
        sign: value.sign()?,
        columns: [value.paper.clone(), value.measured.clone()],
    })
}

/// How many values are drawn, and why the others are not.
fn left_out(values: &[Value]) -> String {
    let mut counts = BTreeMap::<LeftOut, usize>::new();
    for why in values.iter().filter_map(|value| value.ratios().err()) {
        *counts.entry(why).or_default() += 1;
    }
    let drawn = values.len() - counts.values().sum::<usize>();
    let each = counts.iter().map(|(why, count)| format!("{} {count}", why.words()));
    let each = each.collect::<Vec<_>>().join(", ");
    match counts.is_empty() {
        true => format!("Drawn: all {drawn} values."),
        false => format!("Drawn: {drawn} of {} values. Left out: {each}.", values.len()),
    }
}

/// The values of one file by verdict.
fn summary(name: &str, values: &[Value]) -> Group {
    let rows = LEGEND.iter().filter_map(|(sign, words)| {
        let of_sign = || values.iter().filter(|value| value.sign() == Some(*sign));
        let found: Vec<Vec<f64>> = of_sign().filter_map(|value| value.ratios().ok()).collect();
        (!found.is_empty()).then(|| Row {
            label: words.to_string(),
            sign: *sign,
            columns: [found.len().to_string(), of_sign().count().to_string()],
            ratios: found.concat(),
        })
    });
    Group { heading: spoken(name), rows: rows.collect() }
}

fn overview(groups: Vec<Group>) -> Sheet {
    Sheet {
        title: "The measured gains over the papers'".into(),
        columns: ["values drawn", "values"],
        legend: LEGEND.to_vec(),
        groups,
        notes: NOTES.map(String::from).to_vec(),
    }
}

/// A picture as a file, on a ground of its own.
fn document(sheet: &Sheet) -> String {
    let text = ratios(sheet).into_string();
    let ground =
        html! { style { (PreEscaped(STYLE)) } rect class="ground" width="100%" height="100%" {} };
    let text = text.replacen("<svg ", "<svg xmlns=\"http://www.w3.org/2000/svg\" ", 1);
    text.replacen('>', &format!(">{}", ground.into_string()), 1) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(paper: &str, measured: &str, ratio: &str) -> Value {
        let text = String::from;
        Value {
            claim: text("a/fig1/b"),
            figure: text("Fig. 1"),
            value: text("v"),
            paper: text(paper),
            measured: text(measured),
            ratio: text(ratio),
            verdict: text("reproduced in shape"),
        }
    }

    #[test]
    fn values_without_a_ratio_are_counted_with_the_reason() {
        let values = [
            value("4", "2.00", "0.3333"),
            value("grows", "2 of 3", ""),
            value("above 1", "3.00", ""),
            Value { verdict: "cannot be reproduced".into(), ..value("2", "nothing", "") },
            value("1 to 3", "1.12 ... 2.90", "0.9000, 1.00, 0.9500"),
            value("0", "1.00", ""),
        ];
        assert_eq!(
            left_out(&values),
            "Drawn: 2 of 6 values. Left out: trends in words 1, bounds 1, not measured 1, without \
             a finite ratio 1."
        );
        assert_eq!(sheet("a-small", &values).groups[0].rows.len(), 2);
        assert_eq!(left_out(&values[..1]), "Drawn: all 1 values.");
    }

    #[test]
    fn values_that_cannot_be_reproduced_are_in_no_row() {
        let impossible =
            Value { verdict: "cannot be reproduced".into(), ..value("2", "nothing", "") };
        let not = || Value { verdict: "not reproduced".into(), ..value("2", "9.00", "8.00") };
        let group = summary("a-small", &[impossible, not(), not()]);
        assert_eq!(group.rows.len(), 1);
        assert_eq!(group.rows[0].columns, ["2", "2"]);
    }

    #[test]
    fn a_picture_is_a_document_with_a_ground() {
        let text = document(&sheet("a-small", &[value("1, 2", "1.00, 4.00", "1.00, 2.00")]));
        let tree = roxmltree::Document::parse(&text).expect("well-formed");
        let of = |class| tree.descendants().filter(|n| n.attribute("class") == Some(class)).count();
        // Two points and the legend.
        assert_eq!((of("ground"), of("diamond"), of("disc")), (1, 3, 1));
    }
}
