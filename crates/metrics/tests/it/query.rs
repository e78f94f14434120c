//! Checks the names in a query of Prometheus: metrics, labels and functions.

use shingle_metrics::{Definition, Kind, definitions};

const FUNCTIONS: &[&str] = &["rate", "deriv", "histogram_quantile", "sum", "min", "max"];
const OPERATORS: &[&str] = &["and", "or", "unless", "by"];
/// Labels that a scrape or the program adds to every series.
const ADDED: &[&str] = &["instance", "db", "le"];

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Text(String),
    Sign(char),
}

fn tokens(query: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = query;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || "_$:.".contains(c);
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        if end > 0 {
            tokens.push(Token::Word(rest[..end].to_string()));
            rest = &rest[end..];
        } else if first == '"' {
            let (text, after) = rest[1..].split_once('"').expect("the end of a text");
            tokens.push(Token::Text(text.to_string()));
            rest = after;
        } else {
            tokens.extend((!first.is_whitespace()).then_some(Token::Sign(first)));
            rest = &rest[first.len_utf8()..];
        }
    }
    tokens
}

/// The metric that has the series `name`.
fn definition_of(name: &str) -> &'static Definition {
    let mut all = definitions().iter();
    let found = all.find(|definition| definition.series().iter().any(|series| series == name));
    found.unwrap_or_else(|| panic!("no metric has the series {name}"))
}

pub fn is_label(name: &str) -> bool {
    let mut labels = definitions().iter().flat_map(|definition| definition.labels);
    ADDED.contains(&name) || labels.any(|label| *label == name)
}

/// The names of the metrics in `query`. A name that is unknown is a panic, and so is a counter
/// without a range, a label that the metric does not have, or a bracket without its other half.
pub fn metrics_of(query: &str) -> Vec<&'static str> {
    let tokens = tokens(query);
    let mut metrics = Vec::new();
    let mut open = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token {
            Token::Sign(sign @ ('(' | '[' | '{')) => open.push(*sign),
            Token::Sign(sign @ (')' | ']' | '}')) => {
                let wanted = match sign {
                    ')' => '(',
                    ']' => '[',
                    _ => '{',
                };
                assert_eq!(open.pop(), Some(wanted), "{query}");
            }
            Token::Word(word) if word == "by" => at = check_labels(&tokens, at, query),
            Token::Word(word) if FUNCTIONS.contains(&word.as_str()) => {
                let next = tokens.get(at);
                let is_call =
                    next == Some(&Token::Sign('(')) || next == Some(&Token::Word("by".to_string()));
                assert!(is_call, "{word} of nothing in {query}");
            }
            Token::Word(word)
                if OPERATORS.contains(&word.as_str())
                    || open.last() == Some(&'[')
                    || word.parse::<f64>().is_ok() => {}
            Token::Word(word) => {
                let definition = definition_of(word);
                at = check_selector(&tokens, at, definition, query);
                let has_range = tokens.get(at) == Some(&Token::Sign('['));
                let grows = definition.kind != Kind::Gauge;
                assert!(has_range || !grows, "{word} is a counter and needs a rate: {query}");
                metrics.push(definition.name);
            }
            _ => {}
        }
    }
    assert!(open.is_empty() && !metrics.is_empty(), "{query}");
    metrics
}

/// The labels between `(` and `)`; returns the place behind them.
fn check_labels(tokens: &[Token], at: usize, query: &str) -> usize {
    assert_eq!(tokens.get(at), Some(&Token::Sign('(')), "{query}");
    let rest = &tokens[at + 1..];
    let count = rest.iter().take_while(|token| **token != Token::Sign(')')).count();
    for token in &rest[..count] {
        match token {
            Token::Word(label) => assert!(is_label(label), "no label {label}: {query}"),
            sign => assert_eq!(*sign, Token::Sign(','), "{query}"),
        }
    }
    at + count + 2
}

/// The labels between `{` and `}`, if there are some; returns the place behind them.
fn check_selector(tokens: &[Token], at: usize, of: &Definition, query: &str) -> usize {
    if tokens.get(at) != Some(&Token::Sign('{')) {
        return at;
    }
    let rest = &tokens[at + 1..];
    let count = rest.iter().take_while(|token| **token != Token::Sign('}')).count();
    for token in &rest[..count] {
        if let Token::Word(label) = token {
            let is_known = ADDED.contains(&label.as_str()) || of.labels.contains(&label.as_str());
            assert!(is_known, "{} has no label {label}: {query}", of.name);
        }
    }
    at + count + 2
}

#[test]
fn a_wrong_query_is_found() {
    let good = "sum by (level) (rate(shingle_level_written_bytes_total{level=\"1\"}[5m])) > 0.5";
    assert_eq!(metrics_of(good), ["shingle_level_written_bytes"]);
    let bad = [
        ("shingle_level_written_bytes_total", "shingle_level_written_bytes"),
        ("[5m]", ""),
        ("{level", "{cause"),
        ("by (level)", "by (nobody)"),
        ("))", ")"),
        ("rate", "speed"),
    ];
    for (from, to) in bad {
        let query = good.replace(from, to);
        assert_ne!(query, good);
        assert!(std::panic::catch_unwind(|| metrics_of(&query)).is_err(), "{query}");
    }
}
