//! Claims beside what was measured: a verdict for each value, and for the claim the worst of them.

use crate::claim::{Claim, Sort, Stated};
use crate::data::Library;
use crate::experiment::{Experiment, Measure};
use crate::expression::{self, Metrics};
use crate::null::{Null, WithoutIdea};
use crate::rules::{Asked, Judgement, Rules};
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
    /// The measured gain over the stated one, for each number; negative in the other direction.
    pub ratios: Vec<f64>,
    /// Of ranges and lists that of the worst.
    pub ratio: Option<f64>,
    /// How they stand to each other.
    pub verdict: Verdict,
    /// The verdict on what would be measured without the idea.
    pub without: Verdict,
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
    /// The worst of its values; another one where it passes without the idea too.
    pub verdict: Verdict,
    /// The worst of its values without the idea.
    pub without: Verdict,
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
            "without": by_name(&|value| Value::from(value.without.name())),
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

/// The verdict in words. `of_gain`: the ratio is that of gains.
fn sentence(judgement: &Judgement, of_gain: bool, sort: Sort, measured: &[f64]) -> String {
    let (gain, value) = match (of_gain, measured.len()) {
        (true, 1) => ("the gain is", "the paper's"),
        (true, _) => ("the worst gain is", "the paper's"),
        (false, 1) => ("", "the paper's value"),
        (false, _) => ("at worst", "the paper's values"),
    };
    let times = match judgement.ratio() {
        Some(ratio) if of_gain && ratio <= 0.0 => "there is no gain, or the other way round".into(),
        Some(ratio) if ratio.is_finite() => {
            format!("{gain} {} times {value}", spell(ratio)).trim_start().to_string()
        }
        _ => "it has no ratio to the paper's".into(),
    };
    let kept = measured.iter().filter(|truth| **truth == 1.0).count();
    match (judgement.verdict, sort) {
        (_, Sort::Shape) => format!("{kept} of {} conditions are true.", measured.len()),
        (Verdict::Holds, _) => format!("Within the rule: {times}."),
        (Verdict::InShape, _) => format!("Within the wider rule: {times}."),
        _ => format!("Outside the rule: {times}."),
    }
}

/// What a value is compared by: the rules, and what was measured.
struct Scene<'a> {
    rules: &'a Rules,
    findings: &'a Findings<'a>,
    /// The runs that stand in for those of the proposed system.
    stand_ins: &'a Findings<'a>,
    null: &'a Null,
}

fn asked(measure: &Measure, sort: Sort) -> Asked<'_> {
    Asked { sort, rule: measure.rule.as_deref(), order: measure.order, main: &measure.main }
}

impl<'a> Scene<'a> {
    fn new(
        library: &'a Library,
        findings: &'a Findings<'a>,
        stand_ins: &'a Findings<'a>,
    ) -> Result<Scene<'a>> {
        let of_paper = &library.paper(findings.experiment)?.null;
        let null = findings.experiment.null.as_ref().unwrap_or(of_paper);
        Ok(Scene { rules: &library.rules, findings, stand_ins, null })
    }

    fn value(&self, measure: &Measure, sort: Sort, stated: &Stated) -> Result<ValueResult> {
        let Scene { rules, findings, .. } = self;
        let mut result = ValueResult {
            name: measure.value.clone(),
            paper: stated.to_string(),
            measured: Vec::new(),
            ratios: Vec::new(),
            ratio: None,
            verdict: Verdict::Impossible,
            without: Verdict::Impossible,
            reason: measure.impossible.clone().unwrap_or_default(),
            expression: measure.is.as_ref().map_or_else(String::new, |(text, _)| text.clone()),
        };
        let Some((_, expression)) = &measure.is else { return Ok(result) };
        let asked = asked(measure, sort);
        let measured = match expression.values(*findings) {
            Ok(measured) => measured,
            Err(error) => {
                (result.verdict, result.without) = (Verdict::DoesNotHold, Verdict::DoesNotHold);
                result.reason = format!("It could not be measured: {}.", error.message());
                return Ok(result);
            }
        };
        if measure.impossible.is_none() {
            let judgement = rules.judge(&asked, stated, &measured)?;
            let of_gain = rules.is_of_gain(&asked, stated)?;
            result.reason = sentence(&judgement, of_gain, sort, &measured);
            result.ratio = judgement.ratio().filter(|ratio| ratio.is_finite());
            (result.verdict, result.ratios) = (judgement.verdict, judgement.ratios);
            result.without = self.without(measure, &asked, stated)?;
        }
        result.measured = measured;
        if let Some(because) = measure.because.as_ref().filter(|_| result.verdict > Verdict::Holds)
        {
            // A run that failed elsewhere must not take the report with it.
            let why = fill(because, *findings).unwrap_or_else(|error| error.to_string());
            result.reason = format!("{} {why}", result.reason);
        }
        Ok(result)
    }

    /// The verdict on what would be measured without the idea. What cannot be read then fails.
    fn without(&self, measure: &Measure, asked: &Asked<'_>, stated: &Stated) -> Result<Verdict> {
        if self.rules.is_no_difference(asked, stated)? {
            return Ok(Verdict::Holds);
        }
        let points = &self.findings.experiment.points;
        let points = points.iter().map(|point| point.name.as_str()).collect();
        let (metrics, stand_ins) = (self.findings, self.stand_ins);
        let without = WithoutIdea { metrics, stand_ins, points, null: self.null };
        let values = match (&measure.null, &measure.is) {
            (Some((_, expression)), _) => expression.values(self.findings),
            (None, Some((_, expression))) => expression.values(&without),
            (None, None) => return Ok(Verdict::Impossible),
        };
        let judgement = values.and_then(|values| self.rules.judge(asked, stated, &values));
        Ok(judgement.map_or(Verdict::DoesNotHold, |judgement| judgement.verdict))
    }
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

/// The verdict on a claim without the idea, with the runs that stand in for others taken from
/// `stand_ins`: the same experiment with another seed. What passes then passes by chance.
pub fn by_chance(
    library: &Library,
    findings: &Findings<'_>,
    stand_ins: &Findings<'_>,
    claim: &Claim,
) -> Result<Verdict> {
    let scene = Scene::new(library, findings, stand_ins)?;
    let mut worst = None;
    for (name, sort, stated) in &claim.values {
        let measure = findings.experiment.measure(&claim.id, name)?;
        if measure.impossible.is_none() && measure.is.is_some() {
            worst = worst.max(Some(scene.without(measure, &asked(measure, *sort), stated)?));
        }
    }
    Ok(worst.unwrap_or(Verdict::Impossible))
}

fn compare(library: &Library, findings: &Findings<'_>, claim: &Claim) -> Result<ClaimResult> {
    let experiment = findings.experiment;
    let scene = Scene::new(library, findings, findings)?;
    let mut values = Vec::new();
    for (name, sort, stated) in &claim.values {
        let measure = experiment.measure(&claim.id, name)?;
        let explain =
            |error: Error| Error::invalid(format!("{}, {name}: {}", claim.id, error.message()));
        values.push(scene.value(measure, *sort, stated).map_err(explain)?);
    }
    let possible = || values.iter().filter(|value| value.verdict != Verdict::Impossible);
    let worst =
        |of: fn(&ValueResult) -> Verdict| possible().map(of).max().unwrap_or(Verdict::Impossible);
    let (verdict, without) = (worst(|value| value.verdict), worst(|value| value.without));
    let is_empty = verdict.passes() && without.passes();
    Ok(ClaimResult {
        id: claim.id.clone(),
        place: claim.place.clone(),
        experiment: experiment.id.clone(),
        verdict: if is_empty { Verdict::WithoutIdea } else { verdict },
        without,
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
    fn the_reason_says_what_the_ratio_is_of() {
        let text = |ratios: &[f64], of_gain| {
            let judgement = Judgement { verdict: Verdict::DoesNotHold, ratios: ratios.to_vec() };
            sentence(&judgement, of_gain, Sort::Ratio, ratios)
        };
        assert_eq!(text(&[0.5], false), "Outside the rule: 0.50 times the paper's value.");
        assert_eq!(text(&[0.5], true), "Outside the rule: the gain is 0.50 times the paper's.");
        assert!(text(&[0.5, 1.0], false).contains("at worst 0.50 times the paper's values"));
        assert!(text(&[0.5, -1.0], true).contains("the other way round"));
        assert!(text(&[f64::INFINITY], false).contains("no ratio"));
    }

    /// A paper of one claim, measured: `new` has the write amplification `wa`, `old` 4.
    fn made_up(wa: f64) -> ClaimResult {
        let files = [
            ("rules", include_str!("../data/rules.toml")),
            (
                "claims",
                "[[claim]]\nid = \"x/y/z\"\nratio = { \"old/new\" = 2.0, \"even\" = 1.0 }\n",
            ),
            (
                "x/paper",
                "title = \"X\"\n[defaults]\n[null]\nnew = \"old\"\n[scale.smoke]\nsizes = 1\n\
                 data = 1\nvalues = 1\nvalue_min = 1\nrequests_min = 1\n[system.new]\n\
                 [system.old]\n",
            ),
            (
                "x/y",
                "figure = \"1\"\ntitle = \"T\"\nsystems = [\"new\", \"old\"]\n[[phase]]\n\
                 name = \"p\"\ndo = \"fillseq\"\n[[measure]]\nclaim = \"x/y/z\"\n\
                 value = \"old/new\"\nis = \"[old p.wa] / [new p.wa]\"\n[[measure]]\n\
                 claim = \"x/y/z\"\nvalue = \"even\"\nis = \"1\"\n",
            ),
        ];
        let files = files.map(|(name, text)| (name.to_string(), text.to_string()));
        let library = Library::of(files).unwrap();
        let run = |wa| Ok(BTreeMap::from([("p.wa".to_string(), wa)]));
        let table =
            [("new", run(wa)), ("old", run(4.0))].map(|(name, run)| ((name.into(), None), run));
        let findings =
            Findings::new(&library.experiments[0], Scale::default(), table.into()).unwrap();
        claims(&library, &[findings]).unwrap().remove(0)
    }

    #[test]
    fn a_system_that_is_its_baseline_fails() {
        let claim = made_up(2.0);
        assert_eq!((claim.verdict, claim.without), (Verdict::Holds, Verdict::DoesNotHold));
        let [even, gains] = claim.values.as_slice() else { panic!("{claim:?}") };
        assert_eq!((even.without, gains.without), (Verdict::Holds, Verdict::DoesNotHold));
        assert_eq!(made_up(4.0).verdict, Verdict::DoesNotHold);
    }

    /// Nothing tells a claim of no difference from a system without the idea.
    #[test]
    fn what_passes_without_the_idea_does_not_count() {
        let text = "[[claim]]\nid = \"x/y/z\"\nratio = { \"even\" = 1.05 }\n";
        let claim = crate::claim::read(text).unwrap().remove("x/y/z").unwrap();
        let mut library = Library::open().unwrap();
        let measure = "figure = \"1\"\ntitle = \"T\"\nsystems = [\"UDC\", \"LDC\"]\n[[phase]]\n\
                       name = \"p\"\ndo = \"fillseq\"\n[[measure]]\nclaim = \"x/y/z\"\n\
                       value = \"even\"\nis = \"[LDC p.wa] / [UDC p.wa]\"\n";
        let experiment = Experiment::read("ldc/y", measure).unwrap();
        library.claims = BTreeMap::from([(claim.id.clone(), claim)]);
        let verdict = |wa: f64| {
            let run = |wa| Ok(BTreeMap::from([("p.wa".to_string(), wa)]));
            let table = [("UDC", run(4.0)), ("LDC", run(wa))];
            let table = table.map(|(name, run)| ((name.into(), None), run)).into();
            let findings = Findings::new(&experiment, Scale::default(), table).unwrap();
            claims(&library, &[findings]).unwrap().remove(0).verdict
        };
        assert_eq!(verdict(4.2), Verdict::WithoutIdea);
        assert_eq!(verdict(8.0), Verdict::DoesNotHold);
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
