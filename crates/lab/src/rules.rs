//! When a value is reproduced: the rules as data, and their application.

use crate::claim::{Sort, Stated};
use base::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a measured value stands to the paper's; the better, the lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Verdict {
    /// As the paper says.
    #[serde(rename = "reproduced")]
    Holds,
    /// The direction and the order of magnitude.
    #[serde(rename = "reproduced in shape")]
    InShape,
    /// Otherwise.
    #[serde(rename = "not reproduced")]
    DoesNotHold,
    /// It depends on what is not here.
    #[serde(rename = "cannot be reproduced")]
    Impossible,
}

impl Verdict {
    /// All of them, best first.
    pub const ALL: [Verdict; 4] =
        [Verdict::Holds, Verdict::InShape, Verdict::DoesNotHold, Verdict::Impossible];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Holds => "reproduced",
            Verdict::InShape => "reproduced in shape",
            Verdict::DoesNotHold => "not reproduced",
            Verdict::Impossible => "cannot be reproduced",
        }
    }
}

/// One rule.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    holds_within: Option<f64>,
    shape_within: Option<f64>,
    holds_difference: Option<f64>,
    shape_difference: Option<f64>,
    even_within: Option<f64>,
    #[serde(default)]
    direction: bool,
}

/// All rules, by name.
#[derive(Clone, Debug, Default)]
pub struct Rules(BTreeMap<String, Rule>);

impl Rule {
    fn number(&self, stated: f64, measured: f64) -> Verdict {
        let by_factor = |limit: Option<f64>| {
            let ratio = measured / stated;
            limit.is_some_and(|limit| ratio >= 1.0 / limit && ratio <= limit)
        };
        let by_difference =
            |limit: Option<f64>| limit.is_some_and(|limit| (measured - stated).abs() <= limit);
        if !measured.is_finite() || self.is_turned(stated, measured) {
            Verdict::DoesNotHold
        } else if by_factor(self.holds_within) || by_difference(self.holds_difference) {
            Verdict::Holds
        } else if by_factor(self.shape_within) || by_difference(self.shape_difference) {
            Verdict::InShape
        } else {
            Verdict::DoesNotHold
        }
    }

    /// The other system is ahead, or what should grow shrinks.
    fn is_turned(&self, stated: f64, measured: f64) -> bool {
        if !self.direction {
            return false;
        }
        if self.holds_difference.is_some() {
            return stated.signum() != measured.signum() && stated != 0.0 && measured != 0.0;
        }
        let even = self.even_within.unwrap_or(1.0).ln();
        stated.ln().abs() > even && stated.ln().signum() != measured.ln().signum()
    }
}

impl Rules {
    /// The rules of a text.
    pub fn read(text: &str) -> Result<Rules> {
        let rules = toml::from_str(text);
        rules.map(Rules).map_err(|error| Error::invalid(format!("rules: {error}")))
    }

    fn get(&self, name: &str) -> Result<&Rule> {
        let missing = || Error::invalid(format!("there is no rule called `{name}`"));
        self.0.get(name).ok_or_else(missing)
    }

    /// The verdict on `measured`, and measured over stated where both are numbers.
    pub fn judge(
        &self,
        sort: Sort,
        name: Option<&str>,
        stated: &Stated,
        measured: &[f64],
    ) -> Result<(Verdict, Option<f64>)> {
        let own = if sort == Sort::Ratio { "ratio" } else { "figure" };
        let rule = self.get(name.unwrap_or(own))?;
        let first = measured.first().copied().unwrap_or(f64::NAN);
        Ok(match stated {
            Stated::Number(number) => (rule.number(*number, first), Some(first / number)),
            Stated::About(number) => {
                (self.get("about")?.number(*number, first), Some(first / number))
            }
            Stated::Above(number) => {
                let holds = if first > *number { Verdict::Holds } else { Verdict::DoesNotHold };
                (holds, Some(first / number))
            }
            Stated::Range(low, high) => {
                let (least, most) = ends(measured);
                if least >= *low && most <= *high {
                    return Ok((Verdict::Holds, Some(1.0)));
                }
                let pairs = [(*low, least), (*high, most)].map(|(stated, measured)| {
                    if measured >= *low && measured <= *high {
                        (stated, stated)
                    } else {
                        (stated, measured)
                    }
                });
                let worst = pairs.map(|(stated, measured)| rule.number(stated, measured));
                let ratio = ((least / low) * (most / high)).sqrt();
                (worst[0].max(worst[1]), Some(ratio))
            }
            Stated::Points(points) => {
                if points.len() != measured.len() {
                    return Err(Error::invalid("as many points are measured as are stated"));
                }
                let pairs = || points.iter().zip(measured);
                let worst = pairs().map(|(stated, measured)| rule.number(*stated, *measured));
                let log = pairs().map(|(stated, measured)| (measured / stated).ln());
                let mean = log.sum::<f64>() / points.len() as f64;
                (worst.max().unwrap_or(Verdict::DoesNotHold), Some(mean.exp()))
            }
            Stated::Trend(_) => {
                let kept = measured.iter().filter(|truth| **truth == 1.0).count();
                let verdict = match kept * 2 {
                    twice if twice == measured.len() * 2 => Verdict::Holds,
                    twice if twice > measured.len() => Verdict::InShape,
                    _ => Verdict::DoesNotHold,
                };
                (verdict, None)
            }
        })
    }
}

fn ends(list: &[f64]) -> (f64, f64) {
    let least = list.iter().copied().fold(f64::INFINITY, f64::min);
    (least, list.iter().copied().fold(f64::NEG_INFINITY, f64::max))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(name: &str, stated: Stated, measured: &[f64]) -> Verdict {
        let rules = Rules::read(include_str!("../data/rules.toml")).unwrap();
        let sort = if name == "ratio" { Sort::Ratio } else { Sort::Figure };
        rules.judge(sort, Some(name), &stated, measured).unwrap().0
    }

    #[test]
    fn ratios_have_a_direction() {
        let ratio = |stated, measured| verdict("ratio", Stated::Number(stated), &[measured]);
        assert_eq!(ratio(4.0, 3.0), Verdict::Holds);
        assert_eq!(ratio(4.0, 1.5), Verdict::InShape);
        assert_eq!(ratio(1.2, 0.99), Verdict::DoesNotHold);
        assert_eq!(ratio(1.05, 0.9), Verdict::Holds);
        assert_eq!(ratio(4.0, f64::NAN), Verdict::DoesNotHold);
    }

    #[test]
    fn shares_are_compared_by_difference() {
        let share = |stated, measured| verdict("share", Stated::Number(stated), &[measured]);
        assert_eq!(share(0.5, 0.58), Verdict::Holds);
        assert_eq!(share(0.5, 0.25), Verdict::InShape);
        assert_eq!(share(0.1, -0.05), Verdict::DoesNotHold);
    }

    #[test]
    fn ranges_points_and_words() {
        assert_eq!(verdict("ratio", Stated::Range(2.0, 4.0), &[2.1, 3.9]), Verdict::Holds);
        assert_eq!(verdict("ratio", Stated::Range(2.0, 4.0), &[1.2, 3.9]), Verdict::InShape);
        let points = || Stated::Points(vec![1.0, 2.0]);
        assert_eq!(verdict("figure", points(), &[1.0, 2.1]), Verdict::Holds);
        assert_eq!(verdict("figure", points(), &[1.0, 9.0]), Verdict::DoesNotHold);
        assert_eq!(verdict("figure", Stated::About(1.0), &[1.2]), Verdict::Holds);
        assert_eq!(verdict("figure", Stated::Above(1.0), &[0.9]), Verdict::DoesNotHold);
        let trend = || Stated::Trend("rises".into());
        assert_eq!(verdict("figure", trend(), &[1.0, 1.0, 1.0]), Verdict::Holds);
        assert_eq!(verdict("figure", trend(), &[1.0, 0.0, 1.0]), Verdict::InShape);
        assert_eq!(verdict("figure", trend(), &[1.0, 0.0]), Verdict::DoesNotHold);
    }
}
