//! What a claim's expressions would read without the paper's idea.
//!
//! A table names what stands in for what. `LDC = "UDC"` reads every metric of the system `LDC` from
//! the run of `UDC` at the same point of the sweep; `"HashKV@on" = "HashKV@off"` that of one point
//! from another, and `"LDC@*" = "LDC@10"` that of all points from one, as if the sweep changed
//! nothing. A number stands in for a metric of any run: `wa = 1` is a store that amplifies nothing.
//! The entry that names the point comes first. Everything else is read as it was measured.

use crate::expression::Metrics;
use base::Result;
use serde::Deserialize;
use std::collections::BTreeMap;

/// What is read in place of something.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum StandIn {
    /// This number.
    Number(f64),
    /// The run of this `system`, or `system@point`.
    Run(String),
}

/// By the name of a metric without its phase, `system@point`, `system@*` or `system`.
pub type Null = BTreeMap<String, StandIn>;

/// A system with its point, as `null` has them: what is read in place of its run, if anything is.
pub fn run<'a>(
    null: &'a Null,
    system: &'a str,
    point: Option<&'a str>,
) -> Option<(&'a str, Option<&'a str>)> {
    let own = point.map(|point| format!("{system}@{point}"));
    let all = point.map(|_| format!("{system}@*"));
    let keys = [own, all, Some(system.to_string())];
    match keys.into_iter().flatten().find_map(|key| null.get(&key))? {
        StandIn::Number(_) => None,
        StandIn::Run(text) => Some(match text.split_once('@') {
            Some((system, point)) => (system, Some(point)),
            None => (text, point),
        }),
    }
}

/// The number that stands in for a metric, if one does.
pub fn number(null: &Null, metric: &str) -> Option<f64> {
    match null.get(metric.rsplit('.').next()?)? {
        StandIn::Number(number) => Some(*number),
        StandIn::Run(_) => None,
    }
}

/// Metrics as they would be without the idea.
pub struct WithoutIdea<'a> {
    /// What was measured.
    pub metrics: &'a dyn Metrics,
    /// What was measured of the runs that stand in for others: `metrics` too, or what was measured
    /// with another seed.
    pub stand_ins: &'a dyn Metrics,
    /// The names of the points of the sweep.
    pub points: Vec<&'a str>,
    /// What stands in for it.
    pub null: &'a Null,
}

impl WithoutIdea<'_> {
    fn one(&self, system: &str, point: Option<&str>, name: &str) -> Result<Vec<f64>> {
        if let Some(number) = number(self.null, name) {
            return Ok(vec![number]);
        }
        match run(self.null, system, point) {
            Some((system, point)) => self.stand_ins.metric(system, point, name),
            None => self.metrics.metric(system, point, name),
        }
    }
}

impl Metrics for WithoutIdea<'_> {
    fn metric(&self, system: &str, point: Option<&str>, name: &str) -> Result<Vec<f64>> {
        if point != Some("*") {
            return self.one(system, point, name);
        }
        let each = self.points.iter().map(|point| self.one(system, Some(point), name));
        Ok(each.collect::<Result<Vec<_>>>()?.concat())
    }

    fn factor(&self, name: &str) -> Result<f64> {
        self.metrics.factor(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Error;

    /// Of `new` 8 and 6, of `old` 2 and 3.
    struct Measured;

    impl Metrics for Measured {
        fn metric(&self, system: &str, point: Option<&str>, _: &str) -> Result<Vec<f64>> {
            match (system, point) {
                ("new", Some("1")) => Ok(vec![8.0]),
                ("new", Some("2")) => Ok(vec![6.0]),
                ("old", Some("1")) => Ok(vec![2.0]),
                ("old", Some("2")) => Ok(vec![3.0]),
                ("old", Some("*")) => Ok(vec![2.0, 3.0]),
                ("new", Some("*")) => Ok(vec![8.0, 6.0]),
                _ => Err(Error::invalid(format!("there is no run of {system}"))),
            }
        }

        fn factor(&self, _: &str) -> Result<f64> {
            Ok(1.0)
        }
    }

    fn read(null: &str, is: &str) -> Result<Vec<f64>> {
        let null: Null = toml::from_str(null).unwrap();
        let points = vec!["1", "2"];
        let without = WithoutIdea { metrics: &Measured, stand_ins: &Measured, points, null: &null };
        crate::expression::parse(is).unwrap().values(&without)
    }

    #[test]
    fn the_baseline_stands_in_for_the_system_at_every_point() {
        let ratio = "[new@* p.wa] / [old@* p.wa]";
        assert_eq!(read("", ratio).unwrap(), [4.0, 2.0]);
        assert_eq!(read("new = \"old\"", ratio).unwrap(), [1.0, 1.0]);
        assert_eq!(read("new = \"old\"", "[new@2 p.wa]").unwrap(), [3.0]);
    }

    #[test]
    fn points_stand_in_for_points_and_numbers_for_metrics() {
        assert_eq!(read("\"new@2\" = \"new@1\"", "[new@* p.wa]").unwrap(), [8.0, 8.0]);
        let all = "\"new@*\" = \"new@2\"\nnew = \"old\"";
        assert_eq!(read(all, "[new@* p.wa]").unwrap(), [6.0, 6.0]);
        assert_eq!(read("wa = 1", "[new@* p.wa] / [old@1 p.wa]").unwrap(), [1.0, 1.0]);
        assert!(read("new = \"absent\"", "[new@1 p.wa]").is_err());
    }
}
