//! Claims beside what was measured: a verdict for each value, and for the claim the worst of them.

use crate::claim::{Claim, Sort, Stated};
use crate::data::Library;
use crate::experiment::{Experiment, Measure};
use crate::expression::{self, Metrics};
use crate::rules::Rules;
use crate::scale::Scale;
use crate::schedule::{Outcome, Table};
use base::{Error, Result};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

pub use crate::rules::Verdict;

/// One value of a claim, compared.
#[derive(Clone, Debug, Serialize)]
pub struct ValueResult {
    /// Its name in the claim.
    pub name: String,
    /// What the paper says.
    pub paper: String,
    /// What was measured: one number, or one for each point or condition.
    pub measured: Vec<f64>,
    /// Measured over stated; for ranges and lists the geometric mean.
    pub ratio: Option<f64>,
    /// How they stand to each other.
    pub verdict: Verdict,
    /// Why, in a sentence.
    pub reason: String,
    /// What was evaluated.
    pub expression: String,
}

/// A claim, compared.
#[derive(Clone, Debug, Serialize)]
pub struct ClaimResult {
    /// Its id.
    pub id: String,
    /// Figure, table or section.
    pub place: String,
    /// The experiment that answers it.
    pub experiment: String,
    /// The worst of its values.
    pub verdict: Verdict,
    /// Each value.
    pub values: Vec<ValueResult>,
}

impl ClaimResult {
    /// The claim with its verdict as one JSON object.
    pub fn to_json(&self) -> Value {
        let by_name = |get: &dyn Fn(&ValueResult) -> Value| -> Map<String, Value> {
            self.values.iter().map(|value| (value.name.clone(), get(value))).collect()
        };
        let reasons: Vec<String> =
            self.values.iter().map(|v| format!("{}: {}", v.name, v.reason)).collect();
        json!({
            "id": self.id,
            "where": self.place,
            "experiment": self.experiment,
            "paper": by_name(&|value| Value::from(value.paper.clone())),
            "measured": by_name(&|value| numbers(&value.measured)),
            "ratio": by_name(&|value| value.ratio.map_or(Value::Null, number)),
            "verdicts": by_name(&|value| Value::from(value.verdict.name())),
            "verdict": self.verdict.name(),
            "reason": reasons.join(" "),
        })
    }
}

/// A number as JSON; null where it is none.
fn number(value: f64) -> Value {
    serde_json::Number::from_f64(value).map_or(Value::Null, Value::Number)
}

fn numbers(values: &[f64]) -> Value {
    match values {
        [one] => number(*one),
        _ => values.iter().copied().map(number).collect(),
    }
}

/// An experiment with its metrics.
pub struct Findings<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// The scale.
    pub scale: Scale,
    /// Metrics by run.
    pub table: Table,
}

impl<'a> Findings<'a> {
    /// A JSON object for each run: its system, its point of the sweep, and its metrics, or why
    /// there are none.
    pub fn to_json(&self) -> Vec<Value> {
        let row = |((system, point), outcome): (&(String, Option<String>), &Outcome)| {
            let (metrics, error) = match outcome {
                Ok(metrics) => (json!(metrics), Value::Null),
                Err(why) => (Value::Null, json!(why)),
            };
            json!({
                "experiment": self.experiment.id,
                "system": system,
                "point": point,
                "metrics": metrics,
                "error": error,
            })
        };
        self.table.iter().map(row).collect()
    }

    /// What came of the runs of `experiment`, and what it derives from their metrics.
    pub fn new(experiment: &'a Experiment, scale: Scale, mut table: Table) -> Result<Self> {
        for metrics in table.values_mut().flatten() {
            for (name, expression) in &experiment.derived {
                let values = expression.values(&OneRun { scale: &scale, metrics })?;
                metrics.insert(name.clone(), values.first().copied().unwrap_or(f64::NAN));
            }
        }
        Ok(Findings { experiment, scale, table })
    }

    fn one(&self, system: &str, point: Option<&str>, name: &str) -> Result<f64> {
        let key = (system.to_string(), point.map(str::to_string));
        let run = self.table.get(&key);
        let label = format!("{system}{}", point.map(|p| format!("@{p}")).unwrap_or_default());
        let run = run.ok_or_else(|| Error::invalid(format!("there is no run of {label}")))?;
        let metrics =
            run.as_ref().map_err(|why| Error::invalid(format!("{label} failed: {why}")))?;
        let missing = || Error::invalid(format!("{label} has no metric {name}"));
        metrics.get(name).copied().ok_or_else(missing)
    }
}

impl Metrics for Findings<'_> {
    fn metric(&self, system: &str, point: Option<&str>, name: &str) -> Result<Vec<f64>> {
        if point != Some("*") {
            return self.one(system, point, name).map(|value| vec![value]);
        }
        let points = self.experiment.points.iter();
        points.map(|point| self.one(system, Some(&point.name), name)).collect()
    }

    fn factor(&self, name: &str) -> Result<f64> {
        factor(&self.scale, name)
    }
}

/// The metrics of one run, which name no system.
struct OneRun<'a> {
    scale: &'a Scale,
    metrics: &'a crate::Metrics,
}

impl Metrics for OneRun<'_> {
    fn metric(&self, _: &str, _: Option<&str>, name: &str) -> Result<Vec<f64>> {
        let missing = || Error::invalid(format!("the run has no metric {name}; run it again"));
        self.metrics.get(name).map(|value| vec![*value]).ok_or_else(missing)
    }

    fn factor(&self, name: &str) -> Result<f64> {
        factor(self.scale, name)
    }
}

fn factor(scale: &Scale, name: &str) -> Result<f64> {
    match name {
        "sizes" => Ok(scale.sizes),
        "data" => Ok(scale.data),
        _ => Err(Error::invalid(format!("a scale has no factor {name}"))),
    }
}

/// A measured number as reasons and reports spell it.
pub fn spell(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => "nothing".into(),
        0.0 => "0".into(),
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// Replaces `<expression>` in a sentence by what it is.
pub fn fill(text: &str, metrics: &dyn Metrics) -> Result<String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        let (inside, after) =
            after.split_once('>').ok_or_else(|| Error::invalid("`<` without `>`"))?;
        let values = expression::parse(inside)?.values(metrics)?;
        let values: Vec<String> = values.into_iter().map(spell).collect();
        filled += before;
        filled += &values.join(", ");
        rest = after;
    }
    Ok(filled + rest)
}

fn sentence(verdict: Verdict, sort: Sort, ratio: Option<f64>, measured: &[f64]) -> String {
    let times = match ratio {
        Some(0.0) if measured.len() > 1 => "one of the values is zero".into(),
        Some(ratio) if measured.len() > 1 => {
            format!("{} times the paper's values in geometric mean", spell(ratio))
        }
        Some(ratio) => format!("{} times the paper's value", spell(ratio)),
        None => "the paper's value is zero".into(),
    };
    let kept = measured.iter().filter(|truth| **truth == 1.0).count();
    match (verdict, sort) {
        (_, Sort::Shape) => format!("{kept} of {} conditions are true.", measured.len()),
        (Verdict::Holds, _) => format!("Within the rule: {times}."),
        (Verdict::InShape, _) => format!("The direction and the order of magnitude: {times}."),
        _ => format!("Outside the rule: {times}."),
    }
}

fn value(
    rules: &Rules,
    findings: &Findings<'_>,
    measure: &Measure,
    sort: Sort,
    stated: &Stated,
) -> Result<ValueResult> {
    let mut result = ValueResult {
        name: measure.value.clone(),
        paper: stated.to_string(),
        measured: Vec::new(),
        ratio: None,
        verdict: Verdict::Impossible,
        reason: measure.impossible.clone().unwrap_or_default(),
        expression: measure.is.as_ref().map_or_else(String::new, |(text, _)| text.clone()),
    };
    let Some((_, expression)) = &measure.is else { return Ok(result) };
    match expression.values(findings) {
        Err(error) => {
            result.verdict = Verdict::DoesNotHold;
            result.reason = format!("It could not be measured: {}.", error.message());
        }
        Ok(measured) => {
            result.measured = measured;
            if measure.impossible.is_none() {
                let rule = measure.rule.as_deref();
                let (verdict, ratio) = rules.judge(sort, rule, stated, &result.measured)?;
                (result.verdict, result.ratio) = (verdict, ratio.filter(|ratio| ratio.is_finite()));
                result.reason = sentence(verdict, sort, result.ratio, &result.measured);
            }
            if let Some(because) =
                measure.because.as_ref().filter(|_| result.verdict > Verdict::Holds)
            {
                // A run that failed elsewhere must not take the report with it.
                let why = fill(because, findings).unwrap_or_else(|error| error.to_string());
                result.reason = format!("{} {why}", result.reason);
            }
        }
    }
    Ok(result)
}

/// The results of every claim that the experiments answer, in the order of ids.
pub fn claims(library: &Library, all: &[Findings<'_>]) -> Result<Vec<ClaimResult>> {
    let mut results = BTreeMap::new();
    for findings in all {
        for claim in findings.experiment.claims() {
            let claim = library.claim(claim)?;
            results.insert(claim.id.clone(), compare(library, findings, claim)?);
        }
    }
    Ok(results.into_values().collect())
}

fn compare(library: &Library, findings: &Findings<'_>, claim: &Claim) -> Result<ClaimResult> {
    let mut values = Vec::new();
    for (name, sort, stated) in &claim.values {
        let measure = findings.experiment.measure(&claim.id, name)?;
        let explain =
            |error: Error| Error::invalid(format!("{}, {name}: {}", claim.id, error.message()));
        let compared = value(&library.rules, findings, measure, *sort, stated);
        values.push(compared.map_err(explain)?);
    }
    let possible = values.iter().map(|v| v.verdict).filter(|v| *v != Verdict::Impossible);
    Ok(ClaimResult {
        id: claim.id.clone(),
        place: claim.place.clone(),
        experiment: findings.experiment.id.clone(),
        verdict: possible.max().unwrap_or(Verdict::Impossible),
        values,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment(derived: &str) -> Result<Experiment> {
        let text = format!(
            "figure = \"1\"\ntitle = \"T\"\nsystems = [\"a\", \"b\"]\n[[phase]]\nname = \"p\"\n\
             do = \"fillseq\"\n[[derived]]\nname = \"own.twice\"\nis = \"{derived}\"\n\
             [[derived]]\nname = \"own.more\"\nis = \"[own.twice] + {{data}}\"\n"
        );
        Experiment::read("x/y", &text)
    }

    fn table() -> Table {
        let metrics = BTreeMap::from([("p.wa".to_string(), 3.0)]);
        Table::from([
            (("a".to_string(), None), Ok(metrics)),
            (("b".to_string(), None), Err("no room".to_string())),
        ])
    }

    #[test]
    fn derived_metrics_stand_beside_those_that_they_follow_from() {
        let experiment = experiment("2 * [p.wa]").unwrap();
        let scale = Scale { data: 0.5, ..Scale::default() };
        let findings = Findings::new(&experiment, scale.clone(), table()).unwrap();
        let of_a = &findings.table[&("a".to_string(), None)];
        assert_eq!(of_a.as_ref().unwrap()["own.twice"], 6.0);
        assert_eq!(of_a.as_ref().unwrap()["own.more"], 6.5);
        assert!(findings.table[&("b".to_string(), None)].is_err());
        // What was kept of a run has them already.
        let again = Findings::new(&experiment, scale, findings.table.clone()).unwrap();
        assert_eq!(again.table, findings.table);
    }

    #[test]
    fn what_is_derived_from_a_metric_that_is_not_there_is_refused() {
        let experiment = experiment("[p.awa]").unwrap();
        let error = Findings::new(&experiment, Scale::default(), table()).err().unwrap();
        assert!(error.to_string().contains("no metric p.awa"), "{error}");
    }

    #[test]
    fn what_a_list_is_on_average_is_not_said_of_one_value() {
        let text =
            |ratio, measured: &[f64]| sentence(Verdict::DoesNotHold, Sort::Ratio, ratio, measured);
        assert_eq!(text(Some(0.5), &[1.0]), "Outside the rule: 0.50 times the paper's value.");
        assert!(
            text(Some(0.5), &[1.0, 2.0]).contains("0.50 times the paper's values in geometric")
        );
        assert_eq!(text(Some(0.0), &[0.0, 2.0]), "Outside the rule: one of the values is zero.");
    }

    /// Before anything runs.
    #[test]
    fn expressions_name_a_system_or_are_of_one_run() {
        let error = experiment("[a p.wa]").unwrap_err().to_string();
        assert!(error.contains("p.wa has to be [phase.metric]"), "{error}");
        let measure = "figure = \"1\"\ntitle = \"T\"\nsystems = [\"a\"]\n[[phase]]\nname = \"p\"\n\
                       [[measure]]\nclaim = \"c\"\nvalue = \"v\"\nis = \"[p.wa] / 2\"\n";
        let error = Experiment::read("x/y", measure).unwrap_err().to_string();
        assert!(error.contains("p.wa has to be [system phase.metric]"), "{error}");
    }
}
