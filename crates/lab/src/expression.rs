//! Expressions over the metrics of named runs: what a claim's value is compared with.
//!
//! `[system phase.metric]` is a metric, `[system@point phase.metric]` that of one point of the
//! experiment's sweep and `[system@* phase.metric]` the list of all of them, in order;
//! `[phase.metric]` that of the run at hand, where there is one. Numbers, `+ - * /`, comparisons
//! and `and` work element by element, a number with every element of a list. `{name}` is a factor
//! of the scale. Functions: `min max mean first last count` make a number of a list; `rising
//! falling` are 1 where a list never turns back by more than 1 %, else 0; `list(a, b)` joins;
//! `abs`. A truth is 1 or 0.

use base::{Error, Result};

/// A part of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A number.
    Number(f64),
    /// A metric: system, point, name. No system: of the run at hand.
    Metric(String, Option<String>, String),
    /// A factor of the scale.
    Factor(String),
    /// An operator with its two sides.
    Binary(&'static str, Box<Expression>, Box<Expression>),
    /// A function of its arguments.
    Call(String, Vec<Expression>),
}

/// Where the metrics of an expression come from.
pub trait Metrics {
    /// The values of a metric: one, or one for each point where `point` is `*`.
    fn metric(&self, system: &str, point: Option<&str>, name: &str) -> Result<Vec<f64>>;

    /// A factor of the scale.
    fn factor(&self, name: &str) -> Result<f64>;
}

const OPERATORS: [&[&str]; 4] = [&["and"], &["<=", ">=", "<", ">"], &["+", "-"], &["*", "/"]];
const FUNCTIONS: [&str; 10] =
    ["min", "max", "mean", "first", "last", "count", "rising", "falling", "list", "abs"];
/// The share by which a list may turn back and still count as rising.
const SLACK: f64 = 0.01;

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    fn fail(&self, what: &str) -> Error {
        Error::invalid(format!("expression `{}`, at byte {}: {what}", self.text, self.at))
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn until(&mut self, end: char) -> Result<&'a str> {
        let rest = self.rest();
        let length = rest.find(end).ok_or_else(|| self.fail(&format!("no `{end}`")))?;
        self.at += length + end.len_utf8();
        Ok(&rest[..length])
    }

    fn binary(&mut self, level: usize) -> Result<Expression> {
        let Some(operators) = OPERATORS.get(level) else { return self.atom() };
        let mut left = self.binary(level + 1)?;
        while let Some(&operator) = operators.iter().find(|operator| self.take(operator)) {
            let right = self.binary(level + 1)?;
            left = Expression::Binary(operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn atom(&mut self) -> Result<Expression> {
        if self.take("(") {
            let inner = self.binary(0)?;
            return if self.take(")") { Ok(inner) } else { Err(self.fail("no `)`")) };
        }
        if self.take("[") {
            return self.metric();
        }
        if self.take("{") {
            return Ok(Expression::Factor(self.until('}')?.trim().to_string()));
        }
        let rest = self.rest();
        let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.');
        let word = &rest[..length.unwrap_or(rest.len())];
        if word.is_empty() {
            return Err(self.fail("something is missing"));
        }
        self.at += word.len();
        if !FUNCTIONS.contains(&word) {
            let number = word.parse().map_err(|_| self.fail(&format!("what is `{word}`?")))?;
            return Ok(Expression::Number(number));
        }
        if !self.take("(") {
            return Err(self.fail("a function needs `(`"));
        }
        let mut arguments = vec![self.binary(0)?];
        while self.take(",") {
            arguments.push(self.binary(0)?);
        }
        if !self.take(")") {
            return Err(self.fail("no `)`"));
        }
        Ok(Expression::Call(word.to_string(), arguments))
    }

    fn metric(&mut self) -> Result<Expression> {
        let inside = self.until(']')?;
        let (who, name) = inside.rsplit_once(' ').unwrap_or(("", inside));
        let (system, point) = match who.trim().split_once('@') {
            Some((system, point)) => (system, Some(point.to_string())),
            None => (who.trim(), None),
        };
        Ok(Expression::Metric(system.to_string(), point, name.to_string()))
    }
}

/// Reads an expression.
pub fn parse(text: &str) -> Result<Expression> {
    let mut parser = Parser { text, at: 0 };
    let expression = parser.binary(0)?;
    if parser.rest().is_empty() { Ok(expression) } else { Err(parser.fail("what is this?")) }
}

fn binary(operator: &str, a: f64, b: f64) -> f64 {
    let truth = |yes: bool| f64::from(u8::from(yes));
    match operator {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" => a / b,
        "<" => truth(a < b),
        ">" => truth(a > b),
        "<=" => truth(a <= b),
        ">=" => truth(a >= b),
        _ => truth(a != 0.0 && b != 0.0),
    }
}

/// Whether a list rises, with `forward` of 1, or falls, with -1, and never turns back by much.
pub(crate) fn goes(list: &[f64], forward: f64) -> bool {
    let steps = |pair: &[f64]| forward * (pair[1] - pair[0]) >= -SLACK * pair[0].abs();
    let ends = list.first().zip(list.last());
    let moved = ends.is_some_and(|(first, last)| forward * (last - first) > 0.0);
    moved && list.windows(2).all(steps)
}

fn call(name: &str, list: &[f64]) -> f64 {
    let steps = |forward: f64| f64::from(u8::from(goes(list, forward)));
    let missing = f64::NAN;
    match name {
        "min" => list.iter().copied().reduce(f64::min).unwrap_or(missing),
        "max" => list.iter().copied().reduce(f64::max).unwrap_or(missing),
        "mean" => list.iter().sum::<f64>() / list.len() as f64,
        "first" => list.first().copied().unwrap_or(missing),
        "last" => list.last().copied().unwrap_or(missing),
        "count" => list.len() as f64,
        "rising" => steps(1.0),
        _ => steps(-1.0),
    }
}

impl Expression {
    /// Its values: one, or a list.
    pub fn values(&self, metrics: &dyn Metrics) -> Result<Vec<f64>> {
        match self {
            Expression::Number(number) => Ok(vec![*number]),
            Expression::Factor(name) => Ok(vec![metrics.factor(name)?]),
            Expression::Metric(system, point, name) => {
                metrics.metric(system, point.as_deref(), name)
            }
            Expression::Binary(operator, left, right) => {
                let (left, right) = (left.values(metrics)?, right.values(metrics)?);
                let length = left.len().max(right.len());
                if [left.len(), right.len()].iter().any(|&l| l != 1 && l != length) {
                    return Err(Error::invalid("two lists of different lengths"));
                }
                let at = |list: &[f64], i: usize| list[if list.len() == 1 { 0 } else { i }];
                Ok((0..length).map(|i| binary(operator, at(&left, i), at(&right, i))).collect())
            }
            Expression::Call(name, arguments) => {
                let mut list = Vec::new();
                for argument in arguments {
                    list.extend(argument.values(metrics)?);
                }
                match name.as_str() {
                    "list" => Ok(list),
                    "abs" => Ok(list.into_iter().map(f64::abs).collect()),
                    _ => Ok(vec![call(name, &list)]),
                }
            }
        }
    }

    /// The systems, with their points, that it names.
    pub fn names(&self, visit: &mut dyn FnMut(&str, Option<&str>, &str)) {
        match self {
            Expression::Metric(system, point, name) => visit(system, point.as_deref(), name),
            Expression::Binary(_, left, right) => {
                left.names(visit);
                right.names(visit);
            }
            Expression::Call(_, arguments) => arguments.iter().for_each(|a| a.names(visit)),
            Expression::Number(_) | Expression::Factor(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed;

    impl Metrics for Fixed {
        fn metric(&self, system: &str, point: Option<&str>, name: &str) -> Result<Vec<f64>> {
            Ok(match (system, point, name) {
                ("LDB-smr", Some("*"), "load.wa") => vec![2.0, 4.0, 8.0],
                ("LDB-smr", Some("40 MB"), "load.wa") => vec![4.0],
                _ => vec![1.0],
            })
        }

        fn factor(&self, _: &str) -> Result<f64> {
            Ok(0.5)
        }
    }

    fn value(text: &str) -> Vec<f64> {
        parse(text).unwrap().values(&Fixed).unwrap()
    }

    #[test]
    fn operators_bind_as_usual_and_work_element_by_element() {
        assert_eq!(value("1 + 2 * 3 - 8 / 4"), [5.0]);
        assert_eq!(value("(1 + 2) * {sizes}"), [1.5]);
        assert_eq!(value("[LDB-smr@* load.wa] / [LWC-smr load.wa]"), [2.0, 4.0, 8.0]);
        assert_eq!(value("[LDB-smr@40 MB load.wa] > 3 and 1 < 2"), [1.0]);
    }

    #[test]
    fn functions_make_numbers_of_lists() {
        assert_eq!(value("mean([LDB-smr@* load.wa])"), [14.0 / 3.0]);
        assert_eq!(value("last([LDB-smr@* load.wa]) - first([LDB-smr@* load.wa])"), [6.0]);
        assert_eq!(value("rising([LDB-smr@* load.wa])"), [1.0]);
        assert_eq!(value("falling([LDB-smr@* load.wa])"), [0.0]);
        assert_eq!(value("rising(list(1, 1.2, 1.195, 1.3))"), [1.0]);
        assert_eq!(value("max(list(1, abs(2 - 5)), 2)"), [3.0]);
    }

    #[test]
    fn mistakes_say_where_they_are() {
        for text in ["1 +", "[a", "sin(1)", "(1", "1 2", "min 3", ""] {
            let error = parse(text).unwrap_err();
            assert!(error.message().contains("at byte"), "{error}");
        }
        let error = parse("list(1, 2) + list(1, 2, 3)").unwrap().values(&Fixed).unwrap_err();
        assert!(error.message().contains("different lengths"));
    }
}
