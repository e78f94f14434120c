//! When a value is reproduced: the rules as data, and their application.
//!
//! A measured value is compared by its gain, the distance from no effect, so that a small gain is
//! not taken for a large one because both are near to 1.

use crate::claim::{Sort, Stated};
use crate::expression::goes;
use base::{Error, Result};
use serde::{Deserialize, Serialize};

/// How a measured value stands to the paper's; the better, the lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Verdict {
    /// As the paper says.
    #[serde(rename = "reproduced")]
    Holds,
    /// The same direction, and a gain within the wider factor.
    #[serde(rename = "reproduced in shape")]
    InShape,
    /// Of a claim: it would be reproduced with the baseline in place of the proposed system.
    #[serde(rename = "also passes without the idea")]
    WithoutIdea,
    /// Otherwise.
    #[serde(rename = "not reproduced")]
    DoesNotHold,
    /// It depends on what is not here.
    #[serde(rename = "cannot be reproduced")]
    Impossible,
}

impl Verdict {
    /// All of them, best first.
    pub const ALL: [Verdict; 5] = [
        Verdict::Holds,
        Verdict::InShape,
        Verdict::WithoutIdea,
        Verdict::DoesNotHold,
        Verdict::Impossible,
    ];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Holds => "reproduced",
            Verdict::InShape => "reproduced in shape",
            Verdict::WithoutIdea => "also passes without the idea",
            Verdict::DoesNotHold => "not reproduced",
            Verdict::Impossible => "cannot be reproduced",
        }
    }

    /// Reproduced, at least in shape.
    pub fn passes(self) -> bool {
        self <= Verdict::InShape
    }
}

/// Which way the values of a sweep go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// From low to high.
    Rising,
    /// From high to low.
    Falling,
}

impl Order {
    fn forward(self) -> f64 {
        if self == Order::Rising { 1.0 } else { -1.0 }
    }

    /// How well `measured` keeps the order.
    fn verdict(self, measured: &[f64]) -> Verdict {
        let ends = measured.first().zip(measured.last());
        if goes(measured, self.forward()) {
            Verdict::Holds
        } else if ends.is_some_and(|(first, last)| self.forward() * (last - first) > 0.0) {
            Verdict::InShape
        } else {
            Verdict::DoesNotHold
        }
    }
}

/// What is asked of a measured value beside the paper's number.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Of the value.
    pub sort: Sort,
    /// `share`, where the value is one.
    pub rule: Option<&'a str>,
    /// Of the points of a range, where the paper has one.
    pub order: Option<Order>,
    /// Numbers of a shape's main conditions, from 1.
    pub main: &'a [usize],
}

/// The verdict on a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The worst of its numbers.
    pub verdict: Verdict,
    /// For each number its gain over the stated one; negative in the other direction. None where
    /// no number is stated.
    pub ratios: Vec<f64>,
}

impl Judgement {
    /// The ratio that is furthest from 1.
    pub fn ratio(&self) -> Option<f64> {
        let distance = |ratio: &f64| if *ratio > 0.0 { ratio.ln().abs() } else { f64::INFINITY };
        self.ratios.iter().copied().max_by(|a, b| distance(a).total_cmp(&distance(b)))
    }

    fn of(judged: impl Iterator<Item = (Verdict, f64)>) -> Judgement {
        let (verdicts, ratios): (Vec<Verdict>, Vec<f64>) = judged.unzip();
        let verdict = verdicts.into_iter().max().unwrap_or(Verdict::DoesNotHold);
        Judgement { verdict, ratios }
    }

    fn and(mut self, other: Verdict) -> Judgement {
        self.verdict = self.verdict.max(other);
        self
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limits {
    holds_within: f64,
    shape_within: f64,
}

impl Limits {
    /// Of a measured gain over the stated one.
    fn verdict(&self, ratio: f64) -> Verdict {
        let within = |limit: f64| ratio >= 1.0 / limit && ratio <= limit;
        if within(self.holds_within) {
            Verdict::Holds
        } else if within(self.shape_within) {
            Verdict::InShape
        } else {
            Verdict::DoesNotHold
        }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Even {
    stated_within: f64,
    holds_within: f64,
    shape_within: f64,
}

/// What a number is, and so what no effect would be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ratio,
    Share,
    Figure,
}

/// All rules.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    ratio: Limits,
    share: Limits,
    figure: Limits,
    even: Even,
}

/// The measured gain over the stated one.
fn gain(kind: Kind, stated: f64, measured: f64) -> f64 {
    match kind {
        Kind::Ratio if stated < 1.0 => (1.0 / measured - 1.0) / (1.0 / stated - 1.0),
        Kind::Ratio => (measured - 1.0) / (stated - 1.0),
        Kind::Share | Kind::Figure => measured / stated,
    }
}

impl Rules {
    /// The rules of a text.
    pub fn read(text: &str) -> Result<Rules> {
        toml::from_str(text).map_err(|error| Error::invalid(format!("rules: {error}")))
    }

    fn kind(&self, asked: &Asked<'_>) -> Result<Kind> {
        match (asked.rule, asked.sort) {
            (Some("share"), _) => Ok(Kind::Share),
            (Some(name), _) => {
                Err(Error::invalid(format!("there is no rule called `{name}`, only `share`")))
            }
            (None, Sort::Ratio) => Ok(Kind::Ratio),
            (None, _) => Ok(Kind::Figure),
        }
    }

    /// Whether a number says that there is no difference.
    fn is_even(&self, kind: Kind, stated: f64) -> bool {
        match kind {
            Kind::Ratio => stated.ln().abs() <= self.even.stated_within.ln(),
            Kind::Share => stated == 0.0,
            Kind::Figure => false,
        }
    }

    /// Whether a value says that there is no difference, which holds of any two equal systems.
    pub fn is_no_difference(&self, asked: &Asked<'_>, stated: &Stated) -> Result<bool> {
        let kind = self.kind(asked)?;
        Ok(match stated {
            Stated::Number(number) => self.is_even(kind, *number),
            Stated::About(_) => true,
            Stated::Range(low, high) => [low, high].iter().all(|end| self.is_even(kind, **end)),
            Stated::Points(points) => points.iter().all(|point| self.is_even(kind, *point)),
            Stated::Above(_) | Stated::Trend(_) => false,
        })
    }

    /// Whether the ratio of a value is that of gains.
    pub fn is_of_gain(&self, asked: &Asked<'_>, stated: &Stated) -> Result<bool> {
        Ok(self.kind(asked)? == Kind::Ratio && !self.is_no_difference(asked, stated)?)
    }

    fn even(&self, ratio: f64) -> (Verdict, f64) {
        let Even { holds_within, shape_within, .. } = self.even;
        (Limits { holds_within, shape_within }.verdict(ratio), ratio)
    }

    fn number(&self, kind: Kind, stated: f64, measured: f64) -> (Verdict, f64) {
        match kind {
            _ if !self.is_even(kind, stated) => {
                let limits = match kind {
                    Kind::Ratio => &self.ratio,
                    Kind::Share => &self.share,
                    Kind::Figure => &self.figure,
                };
                let ratio = gain(kind, stated, measured);
                (limits.verdict(ratio), ratio)
            }
            Kind::Share => self.even((1.0 + measured) / (1.0 + stated)),
            Kind::Ratio | Kind::Figure => self.even(measured / stated),
        }
    }

    /// The points of a sweep against a range.
    fn range(&self, kind: Kind, ends: [f64; 2], order: Option<Order>, list: &[f64]) -> Judgement {
        let mut list = list.to_vec();
        let kept = order.map_or(Verdict::Holds, |order| order.verdict(&list));
        if order.is_none() {
            list.sort_by(f64::total_cmp);
        }
        let [low, high] = ends;
        let (first, last) = if order == Some(Order::Falling) { (high, low) } else { (low, high) };
        let (Some(start), Some(end)) = (list.first(), list.last()) else {
            return Judgement::of(std::iter::empty());
        };
        let between = list.iter().skip(1).take(list.len().saturating_sub(2));
        let between = between.map(|measured| match measured.max(low).min(high) {
            near if near == *measured => (Verdict::Holds, 1.0),
            near => self.number(kind, near, *measured),
        });
        let start = std::iter::once(self.number(kind, first, *start));
        let end = std::iter::once(self.number(kind, last, *end));
        Judgement::of(start.chain(between).chain(end)).and(kept)
    }

    /// The points of a sweep against those of the paper.
    fn points(&self, kind: Kind, stated: &[f64], measured: &[f64]) -> Judgement {
        let pairs = stated.iter().zip(measured);
        let judged = pairs.map(|(stated, measured)| self.number(kind, *stated, *measured));
        let step = |list: &[f64]| list.last().zip(list.first()).map_or(1.0, |(a, b)| a / b).ln();
        let has_order = step(stated).abs() > self.even.stated_within.ln();
        let is_turned = has_order && step(stated) * step(measured) <= 0.0;
        let kept = if is_turned { Verdict::DoesNotHold } else { Verdict::Holds };
        Judgement::of(judged).and(kept)
    }

    /// The verdict on `measured`.
    pub fn judge(&self, asked: &Asked<'_>, stated: &Stated, measured: &[f64]) -> Result<Judgement> {
        let kind = self.kind(asked)?;
        let first = measured.first().copied().unwrap_or(f64::NAN);
        let one = |judged| Judgement::of(std::iter::once(judged));
        Ok(match stated {
            Stated::Number(number) => one(self.number(kind, *number, first)),
            Stated::About(number) => one(self.even(first / number)),
            Stated::Above(number) => {
                let holds = if first > *number { Verdict::Holds } else { Verdict::DoesNotHold };
                Judgement { verdict: holds, ratios: Vec::new() }
            }
            Stated::Range(low, high) => self.range(kind, [*low, *high], asked.order, measured),
            Stated::Points(points) => {
                if points.len() != measured.len() {
                    return Err(Error::invalid("as many points are measured as are stated"));
                }
                self.points(kind, points, measured)
            }
            Stated::Trend(_) => trend(measured, asked.main),
        })
    }
}

/// The verdict on a shape by the truth of its conditions.
fn trend(truths: &[f64], main: &[usize]) -> Judgement {
    let is_true = |truth: &f64| *truth == 1.0;
    let kept = truths.iter().filter(|truth| is_true(truth)).count();
    let is_main = |number: &usize| {
        number.checked_sub(1).and_then(|index| truths.get(index)).is_some_and(is_true)
    };
    let verdict = match kept {
        0 => Verdict::DoesNotHold,
        all if all == truths.len() => Verdict::Holds,
        most if most * 2 > truths.len() && !main.is_empty() && main.iter().all(is_main) => {
            Verdict::InShape
        }
        _ => Verdict::DoesNotHold,
    };
    Judgement { verdict, ratios: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{DoesNotHold, Holds, InShape};

    const RATIO: Asked<'_> = Asked { sort: Sort::Ratio, rule: None, order: None, main: &[] };
    const FIGURE: Asked<'_> = Asked { sort: Sort::Figure, ..RATIO };
    const SHARE: Asked<'_> = Asked { rule: Some("share"), ..FIGURE };

    fn rules() -> Rules {
        Rules::read(include_str!("../data/rules.toml")).unwrap()
    }

    fn judged(asked: &Asked<'_>, stated: Stated, measured: &[f64]) -> Judgement {
        rules().judge(asked, &stated, measured).unwrap()
    }

    fn verdict(asked: &Asked<'_>, stated: Stated, measured: &[f64]) -> Verdict {
        judged(asked, stated, measured).verdict
    }

    fn number(asked: &Asked<'_>, stated: f64, measured: f64) -> Verdict {
        verdict(asked, Stated::Number(stated), &[measured])
    }

    #[test]
    fn a_ratio_is_judged_by_its_gain() {
        assert_eq!(number(&RATIO, 4.0, 3.5), Holds);
        assert_eq!(number(&RATIO, 4.0, 2.5), InShape);
        // 0.65 times the ratio, and 0.35 times the gain.
        assert_eq!(number(&RATIO, 4.0, 2.05), DoesNotHold);
        assert_eq!(number(&RATIO, 1.49, 1.03), DoesNotHold);
        assert_eq!(number(&RATIO, 1.49, 2.6), DoesNotHold);
        // The system that is ahead may stand below the line.
        assert_eq!(number(&RATIO, 0.5, 0.52), Holds);
        assert_eq!(number(&RATIO, 0.5, 0.74), DoesNotHold);
        assert!((judged(&RATIO, Stated::Number(0.5), &[0.25]).ratio().unwrap() - 3.0).abs() < 1e-9);
    }

    #[test]
    fn a_ratio_of_one_has_no_direction() {
        assert_eq!(number(&RATIO, 1.2, 1.0), DoesNotHold);
        assert_eq!(number(&RATIO, 0.8, 1.0), DoesNotHold);
        assert_eq!(number(&RATIO, 1.2, 0.9), DoesNotHold);
        assert_eq!(number(&RATIO, 4.0, f64::NAN), DoesNotHold);
        assert_eq!(verdict(&RATIO, Stated::Above(1.0), &[1.0]), DoesNotHold);
        assert_eq!(verdict(&RATIO, Stated::Above(1.0), &[1.2]), Holds);
    }

    #[test]
    fn no_difference_is_judged_by_the_ratio() {
        assert_eq!(number(&RATIO, 1.05, 0.97), Holds);
        assert_eq!(number(&RATIO, 1.05, 0.9), InShape);
        assert_eq!(verdict(&RATIO, Stated::About(1.0), &[1.3]), DoesNotHold);
        assert_eq!(number(&SHARE, 0.0, -0.05), Holds);
        assert_eq!(number(&SHARE, 0.0, 0.4), DoesNotHold);
        let is_even = |asked, stated: Stated| rules().is_no_difference(asked, &stated).unwrap();
        assert!(is_even(&RATIO, Stated::Range(1.0337, 1.1)) && is_even(&SHARE, Stated::from("0")));
        assert!(!is_even(&RATIO, Stated::Range(1.0337, 1.2)));
        assert!(!is_even(&FIGURE, Stated::Number(1.0)));
    }

    #[test]
    fn shares_and_figures_are_judged_by_their_factor() {
        assert_eq!(number(&SHARE, 0.09, 0.0142), DoesNotHold);
        assert_eq!(number(&SHARE, 0.5, 0.45), Holds);
        assert_eq!(number(&SHARE, 0.5, 0.27), InShape);
        assert_eq!(number(&SHARE, 0.1, -0.1), DoesNotHold);
        assert_eq!(number(&SHARE, -0.16, -0.1), InShape);
        assert_eq!(number(&FIGURE, 10.0, 12.0), Holds);
        assert_eq!(number(&FIGURE, 10.0, 19.0), InShape);
        assert_eq!(number(&FIGURE, 10.0, 4.0), DoesNotHold);
        let unknown = Asked { rule: Some("machine"), ..FIGURE };
        assert!(rules().judge(&unknown, &Stated::Number(1.0), &[1.0]).is_err());
    }

    #[test]
    fn a_range_is_judged_at_every_point_and_by_its_order() {
        let range = || Stated::Range(2.0, 4.0);
        let rising = Asked { order: Some(Order::Rising), ..RATIO };
        let falling = Asked { order: Some(Order::Falling), ..RATIO };
        assert_eq!(verdict(&RATIO, range(), &[4.1, 3.0, 2.1]), Holds);
        assert_eq!(verdict(&RATIO, range(), &[2.0, 3.0, 3.0]), InShape);
        assert_eq!(verdict(&RATIO, range(), &[2.0, 1.1, 4.0]), DoesNotHold);
        assert_eq!(verdict(&rising, range(), &[2.0, 3.0, 4.0]), Holds);
        assert_eq!(verdict(&rising, range(), &[2.0, 9.0, 4.0]), DoesNotHold);
        assert_eq!(verdict(&rising, range(), &[2.0, 3.0, 2.5, 4.0]), InShape);
        assert_eq!(verdict(&rising, range(), &[4.0, 3.0, 2.0]), DoesNotHold);
        assert_eq!(verdict(&falling, range(), &[4.0, 3.0, 2.0]), Holds);
        // Alike all along, and near enough to both ends.
        assert_eq!(verdict(&rising, range(), &[2.5, 2.5, 2.5]), DoesNotHold);
        assert_eq!(verdict(&RATIO, range(), &[]), DoesNotHold);
    }

    #[test]
    fn a_list_is_as_good_as_its_worst_point_and_keeps_its_direction() {
        let points = || Stated::Points(vec![1.0, 1.1, 1.3]);
        assert_eq!(verdict(&FIGURE, points(), &[1.1, 1.0, 1.2]), Holds);
        assert_eq!(verdict(&FIGURE, points(), &[1.0, 1.1, 9.0]), DoesNotHold);
        assert_eq!(verdict(&FIGURE, points(), &[1.2, 1.1, 1.2]), DoesNotHold);
        assert_eq!(verdict(&FIGURE, Stated::Points(vec![1.0, 1.05]), &[1.05, 1.0]), Holds);
        let worst = judged(&FIGURE, points(), &[1.0, 1.1, 0.65]).ratio();
        assert_eq!(worst, Some(0.5));
        assert!(rules().judge(&FIGURE, &points(), &[1.0]).is_err());
    }

    #[test]
    fn a_shape_holds_in_part_with_its_main_conditions_alone() {
        let with = |main: &[usize], truths: &[f64]| {
            let asked = Asked { sort: Sort::Shape, main, ..RATIO };
            verdict(&asked, Stated::Trend("rises".into()), truths)
        };
        assert_eq!(with(&[], &[1.0, 1.0, 1.0]), Holds);
        assert_eq!(with(&[], &[1.0, 0.0, 1.0]), DoesNotHold);
        assert_eq!(with(&[1], &[1.0, 0.0, 1.0]), InShape);
        assert_eq!(with(&[2], &[1.0, 0.0, 1.0]), DoesNotHold);
        assert_eq!(with(&[1], &[1.0, 0.0]), DoesNotHold);
        assert_eq!(with(&[], &[]), DoesNotHold);
    }
}
