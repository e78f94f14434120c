//! A parser of both text formats, written from their specifications and strict about them.

use std::collections::{BTreeMap, BTreeSet};

/// A series: its name and labels.
pub type Series = (String, BTreeMap<String, String>);

/// What a text says.
#[derive(Debug, Default)]
pub struct Parsed {
    /// The type of each family, by the name of its `TYPE` line.
    pub types: BTreeMap<String, String>,
    pub units: BTreeMap<String, String>,
    pub helps: BTreeMap<String, String>,
    pub values: BTreeMap<Series, f64>,
}

impl Parsed {
    /// The sum over all series of this name.
    pub fn sum(&self, name: &str) -> Option<f64> {
        let of_name = self.values.iter().filter(|((series, _), _)| series == name);
        let values: Vec<f64> = of_name.map(|(_, value)| *value).collect();
        (!values.is_empty()).then(|| values.iter().sum())
    }
}

fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_' || c == ':')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':')
}

/// Reads a quoted label value; returns it with the rest of the line.
fn quoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.strip_prefix('"').expect("a quote").char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &text[at + 2..]),
            '\\' => match chars.next().expect("an escaped character").1 {
                'n' => value.push('\n'),
                c @ ('"' | '\\') => value.push(c),
                other => panic!("no such escape: \\{other}"),
            },
            c => value.push(c),
        }
    }
    panic!("no end of {text}");
}

fn labels(mut text: &str) -> (BTreeMap<String, String>, &str) {
    let mut labels = BTreeMap::new();
    loop {
        let (name, rest) = text.split_once('=').expect("a label");
        assert!(is_name(name) && !name.contains(':') && !name.starts_with("__"), "{name}");
        let (value, rest) = quoted(rest);
        assert!(labels.insert(name.to_string(), value).is_none(), "{name} twice");
        match rest.strip_prefix(',') {
            Some(more) => text = more,
            None => return (labels, rest.strip_prefix('}').expect("the end of the labels")),
        }
    }
}

fn number(text: &str) -> f64 {
    match text {
        "+Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        "NaN" => f64::NAN,
        other => other.parse().unwrap_or_else(|_| panic!("no number: {other}")),
    }
}

/// The names of series that a family of this type may have.
fn series_names(family: &str, kind: &str, is_openmetrics: bool) -> Vec<String> {
    match (kind, is_openmetrics) {
        ("counter", true) => vec![format!("{family}_total")],
        ("histogram", _) => ["_bucket", "_sum", "_count"].map(|s| format!("{family}{s}")).to_vec(),
        ("counter" | "gauge", _) => vec![family.to_string()],
        _ => panic!("an unknown type {kind}"),
    }
}

/// Reads a text; any departure from the format is a panic.
pub fn parse(text: &str, is_openmetrics: bool) -> Parsed {
    let mut parsed = Parsed::default();
    let mut current: Option<(String, Vec<String>)> = None;
    let mut with_samples = BTreeSet::new();
    assert!(text.ends_with('\n'));
    let body = match is_openmetrics {
        true => text.strip_suffix("# EOF\n").expect("# EOF is the last line"),
        false => text,
    };
    for line in body.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let (what, name) = (words.next().unwrap(), words.next().unwrap().to_string());
            let rest = words.next().unwrap().to_string();
            assert!(is_name(&name), "{line}");
            assert!(!with_samples.contains(&name), "after the samples: {line}");
            let map = match what {
                "TYPE" => {
                    current = Some((name.clone(), series_names(&name, &rest, is_openmetrics)));
                    &mut parsed.types
                }
                "UNIT" if is_openmetrics => {
                    assert!(name.ends_with(&format!("_{rest}")), "the unit ends the name: {line}");
                    &mut parsed.units
                }
                "HELP" => &mut parsed.helps,
                _ => panic!("{line}"),
            };
            assert!(map.insert(name, rest).is_none(), "twice: {line}");
            continue;
        }
        let end = line.find(['{', ' ']).expect("a value");
        let (name, rest) = line.split_at(end);
        let (family, names) = current.as_ref().expect("a type before the sample");
        assert!(is_name(name) && names.contains(&name.to_string()), "not of {family}: {line}");
        with_samples.insert(family.clone());
        let (labels, rest) = match rest.strip_prefix('{') {
            Some(rest) => labels(rest),
            None => (BTreeMap::new(), rest),
        };
        let value = number(rest.strip_prefix(' ').expect("one space before the value"));
        let series = (name.to_string(), labels);
        assert!(parsed.values.insert(series, value).is_none(), "twice: {line}");
    }
    check_histograms(&parsed);
    parsed
}

/// Buckets grow with their bounds, and the last is the count.
fn check_histograms(parsed: &Parsed) {
    for (family, _) in parsed.types.iter().filter(|(_, kind)| *kind == "histogram") {
        let bucket = format!("{family}_bucket");
        let of_family = parsed.values.iter().filter(|((name, _), _)| *name == bucket);
        let mut buckets: Vec<(f64, f64)> =
            of_family.map(|((_, labels), count)| (number(&labels["le"]), *count)).collect();
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{family}: {buckets:?}");
        let last = buckets.last().unwrap();
        assert_eq!((last.0, Some(last.1)), (f64::INFINITY, parsed.sum(&format!("{family}_count"))));
    }
}
