//! What a model can be told: parameters with units and bounds, and the one parser of them.
//!
//! A model is named as `smr-banded:band=40MiB,cache=1%`. Bytes take the units of
//! [`base::size`], times ns, us, ms and s, shares a per cent sign; counts take none. Every
//! parameter has a default, so none has to be given.
//!
//! Invariant: [`Settings`] hold a value within its bounds for every parameter of their model.

use base::{Error, Result};
use std::fmt;

/// What a parameter's value is, with its least and largest value as a person would write them.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Bytes, or bytes in a second.
    Bytes(&'static str, &'static str),
    /// A number without unit.
    Count(&'static str, &'static str),
    /// A time; in settings it is in ns.
    Time(&'static str, &'static str),
    /// A share; in settings 1.0 is the whole.
    Share(&'static str, &'static str),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Another model with its parameters. It takes all text that follows, so it stands last.
    Model,
}

/// One thing that a model can be told.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name in `model:name=value`.
    pub name: &'static str,
    /// What its value is.
    pub kind: Kind,
    /// Its value if it is not given, as a person would write it.
    pub default: &'static str,
    /// One line of help.
    pub help: &'static str,
}

/// Suffixes with their factors; a longer one before one that it ends with.
type Units = &'static [(&'static str, f64)];

const COUNT: Units = &[("", 1.0)];
const TIME: Units = &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
const SHARE: Units = &[("%", 0.01)];

impl Parameter {
    /// `text` as a value of this parameter; `None` if it is not a number with a unit of its kind.
    fn number(&self, text: &str) -> Option<f64> {
        let units = match self.kind {
            Kind::Bytes(..) => return base::size::parse(text).map(|bytes| bytes as f64),
            Kind::Count(..) => COUNT,
            Kind::Time(..) => TIME,
            Kind::Share(..) => SHARE,
            Kind::Choice(_) | Kind::Model => return None,
        };
        let (digits, factor) =
            units.iter().find_map(|(unit, by)| Some((text.strip_suffix(unit)?, by)))?;
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let number = digits.parse::<f64>().ok().filter(|_| is_plain)? * factor;
        let is_whole = matches!(self.kind, Kind::Share(..)) || number.fract() == 0.0;
        is_whole.then_some(number)
    }

    fn value(&self, text: &str) -> Result<Value> {
        let (min, max) = match self.kind {
            Kind::Model => return Ok(Value::Text(text.to_string())),
            Kind::Choice(words) if words.contains(&text) => {
                return Ok(Value::Text(text.to_string()));
            }
            Kind::Choice(_) => return Err(self.refuse(text)),
            Kind::Bytes(min, max)
            | Kind::Count(min, max)
            | Kind::Time(min, max)
            | Kind::Share(min, max) => (self.number(min), self.number(max)),
        };
        let number = self.number(text).filter(|&n| Some(n) >= min && Some(n) <= max);
        number.map(Value::Number).ok_or_else(|| self.refuse(text))
    }

    fn refuse(&self, text: &str) -> Error {
        Error::invalid(format!("{}={text}: not {}", self.name, self.kind))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Bytes(min, max) => write!(f, "bytes from {min} to {max}"),
            Kind::Count(min, max) => write!(f, "a number from {min} to {max}"),
            Kind::Time(min, max) => write!(f, "a time from {min} to {max}"),
            Kind::Share(min, max) => write!(f, "a share from {min} to {max}"),
            Kind::Choice(words) => write!(f, "one of {}", words.join(", ")),
            Kind::Model => f.write_str("a model, with its parameters to the end of the text"),
        }
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={} ({}; {})", self.name, self.default, self.help, self.kind)
    }
}

#[derive(Clone, Debug)]
enum Value {
    Number(f64),
    Text(String),
}

/// A value for every parameter of one model.
#[derive(Clone, Debug)]
pub struct Settings {
    values: Vec<(&'static str, Value)>,
}

impl Settings {
    /// The settings that `text` (`name=value,name=value`, or nothing) asks of a model.
    pub fn parse(parameters: &'static [Parameter], text: &str) -> Result<Settings> {
        let defaults = parameters.iter().map(|p| Ok((p.name, p.value(p.default)?)));
        let mut settings = Settings { values: defaults.collect::<Result<_>>()? };
        let mut given = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (name, after) = rest.split_once('=').unwrap_or((rest, ""));
            let found = parameters.iter().find(|parameter| parameter.name == name);
            let parameter = found.ok_or_else(|| unknown(parameters, name))?;
            if given.contains(&name) {
                return Err(Error::invalid(format!("{name} is given twice")));
            }
            given.push(name);
            let split = after.split_once(',').filter(|_| !matches!(parameter.kind, Kind::Model));
            let (value, next) = split.unwrap_or((after, ""));
            settings.set(parameter.name, parameter.value(value)?);
            rest = next;
        }
        Ok(settings)
    }

    fn set(&mut self, name: &str, value: Value) {
        for entry in self.values.iter_mut().filter(|entry| entry.0 == name) {
            entry.1 = value.clone();
        }
    }

    /// The bytes, count or time (ns) of a parameter that the model declares.
    pub fn number(&self, name: &str) -> u64 {
        self.share(name) as u64
    }

    /// The share of a parameter that the model declares; 1.0 is the whole.
    pub fn share(&self, name: &str) -> f64 {
        match self.get(name) {
            Value::Number(number) => *number,
            Value::Text(_) => unreachable!("{name} is declared as a text"),
        }
    }

    /// The word, or the model's text, of a parameter that the model declares.
    pub fn text(&self, name: &str) -> &str {
        match self.get(name) {
            Value::Text(text) => text,
            Value::Number(_) => unreachable!("{name} is declared as a number"),
        }
    }

    fn get(&self, name: &str) -> &Value {
        let found = self.values.iter().find(|value| value.0 == name);
        &found.expect("a model reads what it declares").1
    }
}

fn unknown(parameters: &[Parameter], name: &str) -> Error {
    let known: Vec<String> = parameters.iter().map(Parameter::to_string).collect();
    let known = if known.is_empty() { "none".to_string() } else { known.join("; ") };
    Error::invalid(format!("there is no parameter `{name}`; there are: {known}"))
}

/// Two lists of parameters as one; `N` is the sum of their lengths.
pub const fn join<const N: usize>(first: &[Parameter], second: &[Parameter]) -> [Parameter; N] {
    assert!(N == first.len() + second.len());
    let mut all = [first[0]; N];
    let mut at = 0;
    while at < N {
        all[at] = if at < first.len() { first[at] } else { second[at - first.len()] };
        at += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &[Parameter] = &[
        Parameter { name: "size", kind: Kind::Bytes("4K", "1TB"), default: "1MiB", help: "bytes" },
        Parameter { name: "turn", kind: Kind::Time("1us", "1s"), default: "8.5ms", help: "time" },
        Parameter { name: "part", kind: Kind::Share("0%", "50%"), default: "1.5%", help: "share" },
        Parameter { name: "n", kind: Kind::Count("1", "64"), default: "7", help: "count" },
        Parameter { name: "way", kind: Kind::Choice(&["up", "down"]), default: "up", help: "w" },
        Parameter { name: "of", kind: Kind::Model, default: "hdd", help: "model" },
    ];

    fn refusal(text: &str) -> String {
        Settings::parse(ALL, text).unwrap_err().message().to_string()
    }

    #[test]
    fn defaults_hold_where_nothing_is_given() {
        let settings = Settings::parse(ALL, "").unwrap();
        assert_eq!(settings.number("size"), 1 << 20);
        assert_eq!(settings.number("turn"), 8_500_000);
        assert_eq!(settings.share("part"), 0.015);
        assert_eq!((settings.number("n"), settings.text("way")), (7, "up"));
    }

    #[test]
    fn units_are_those_of_the_kind() {
        for (text, bytes) in
            [("size=4096", 4096), ("size=64K", 65_536), ("size=5GB", 5_000_000_000)]
        {
            assert_eq!(Settings::parse(ALL, text).unwrap().number("size"), bytes);
        }
        assert_eq!(Settings::parse(ALL, "turn=10us,n=3").unwrap().number("turn"), 10_000);
        for text in ["size=1ms", "turn=5", "part=0.5", "n=1K", "size=-4K", "size=1e6", "size="] {
            assert!(Settings::parse(ALL, text).is_err(), "{text}");
        }
    }

    #[test]
    fn refusals_say_what_is_possible() {
        assert_eq!(refusal("size=1K"), "size=1K: not bytes from 4K to 1TB");
        assert_eq!(refusal("way=left"), "way=left: not one of up, down");
        assert_eq!(refusal("n=3,n=4"), "n is given twice");
        assert!(refusal("sise=1M").contains("size=1MiB (bytes; bytes from 4K to 1TB)"));
    }

    #[test]
    fn a_model_takes_the_rest_with_its_commas() {
        let settings = Settings::parse(ALL, "n=2,of=hdd:a=1,b=2").unwrap();
        assert_eq!(settings.text("of"), "hdd:a=1,b=2");
    }
}
