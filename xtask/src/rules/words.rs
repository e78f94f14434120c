//! Retired words do not come back. `words.toml` lists them, and `words-left.toml` has how often
//! each crate still uses each of them. That count may only fall.

use super::Violation;
use crate::repository::{self, Repository};
use crate::words::{self, Finding, LIST, List};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

pub const NAME: &str = "words";
pub const LEFT: &str = "words-left.toml";

/// The area of the files that are in no folder.
const ROOT: &str = "root";

/// How many places of one word in one crate are printed.
const PRINTED_MAX: usize = 12;

const HEADER: &str = "\
# How often each word of words.toml is still used, by crate or folder of documents. A number may
# only fall: `cargo xtask tidy --lower` lowers each to the count of today. A word without a table is
# new, and `--lower` adds its counts.
";

/// How often each word is used in each area.
type Counts = BTreeMap<String, BTreeMap<String, usize>>;

/// Words that are used more often than `words-left.toml` allows, and errors in the list.
pub fn check(repository: &Repository) -> Vec<Violation> {
    let list = match words::list(repository) {
        Ok(list) => list,
        Err(message) => return vec![Violation::new(NAME, LIST, 1, message)],
    };
    let mut found = check_list(repository, &list);
    let left = match left(repository) {
        Ok(left) => left,
        Err(message) => return vec![Violation::new(NAME, LEFT, 1, message)],
    };
    let findings = words::findings(repository, &list);
    let counts = counts(&list, &findings);
    for (word, areas) in &counts {
        for (area, &count) in areas {
            let allowed = left.get(word).and_then(|areas| areas.get(area)).copied();
            let allowed = allowed.unwrap_or_default();
            if count > allowed {
                found.extend(too_many(&list, &findings, word, area, (count, allowed)));
            }
        }
    }
    for word in left.keys().filter(|word| !counts.contains_key(*word)) {
        let message = format!("`{word}` is not in {LIST}: `cargo xtask tidy --lower` removes it");
        found.push(Violation::new(NAME, LEFT, repository.line_of(LEFT, "[\""), message));
    }
    found
}

fn check_list(repository: &Repository, list: &List) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut say = |key: &str, message: String| {
        found.push(Violation::new(NAME, LIST, line_of(repository, key), message));
    };
    for outside in &list.outside {
        if outside.reason.trim().is_empty() {
            say(&outside.path, format!("{} is out of scope without a reason", outside.path));
        }
    }
    let words = list.words.iter().flat_map(|word| &word.except);
    for path in list.outside.iter().map(|outside| &outside.path).chain(words) {
        if !repository.files.iter().any(|file| file.starts_with(path)) {
            say(path, format!("there is no {path}: correct or remove it"));
        }
    }
    let mut seen = BTreeSet::new();
    for word in &list.words {
        let text = word.words.text();
        if !seen.insert(text) {
            say(text, format!("`{text}` stands here twice: make it one"));
        }
        if word.instead.trim().is_empty() || word.kinds.is_empty() {
            say(text, format!("`{text}` needs a word to `use`, and where it is looked for: `in`"));
        }
    }
    found
}

/// The line of the list that contains `"key"` first.
fn line_of(repository: &Repository, key: &str) -> usize {
    let text = repository.text(LIST).unwrap_or_default();
    let quoted = format!("\"{key}\"");
    text.lines().position(|line| line.contains(&quoted)).map_or(1, |index| index + 1)
}

/// The places of a word in an area that uses it more often than allowed.
fn too_many(
    list: &List,
    findings: &[Finding],
    word: &str,
    area: &str,
    (count, allowed): (usize, usize),
) -> Vec<Violation> {
    let is_one = |finding: &&Finding| {
        list.words[finding.word].words.text() == word && self::area(&finding.path) == area
    };
    let places = findings.iter().filter(is_one).take(PRINTED_MAX);
    let say = |finding: &Finding| {
        let message = format!(
            "`{}`: write {}. {area} has {count}, {LEFT} allows {allowed}; \
             `cargo xtask words {area}` lists all",
            finding.found, list.words[finding.word].instead
        );
        Violation::new(NAME, &finding.path, finding.line, message)
    };
    places.map(say).collect()
}

/// A note where `words-left.toml` allows more words than are used.
pub fn slack(repository: &Repository) -> Option<String> {
    let list = words::list(repository).ok()?;
    let counts = counts(&list, &words::findings(repository, &list));
    let sum = |counts: &Counts| counts.values().flat_map(BTreeMap::values).sum::<usize>();
    let left = left(repository).ok()?;
    let (allowed, lower) = (sum(&left), sum(&lowered(&left, counts)));
    let fewer = allowed.checked_sub(lower).filter(|&fewer| fewer > 0)?;
    Some(format!("{LEFT} allows {fewer} words more than are used: run `cargo xtask tidy --lower`"))
}

/// `words-left.toml` with each count lowered to that of today.
pub fn lower(repository: &Repository) -> Result<String, String> {
    let list = words::list(repository)?;
    let counts = counts(&list, &words::findings(repository, &list));
    let mut text = HEADER.to_string();
    for (word, areas) in lowered(&left(repository)?, counts) {
        let _ = write!(text, "\n[\"{word}\"]\n");
        for (area, count) in areas {
            let _ = writeln!(text, "\"{area}\" = {count}");
        }
    }
    Ok(text)
}

fn lowered(left: &Counts, mut counts: Counts) -> Counts {
    for (word, areas) in &mut counts {
        let Some(left) = left.get(word) else { continue };
        for (area, count) in areas.iter_mut() {
            *count = (*count).min(left.get(area).copied().unwrap_or_default());
        }
        areas.retain(|_, count| *count > 0);
    }
    counts
}

/// Every word is new where the file is absent; a broken one, such as after a merge, is an error.
fn left(repository: &Repository) -> Result<Counts, String> {
    let Some(text) = repository.text(LEFT) else { return Ok(Counts::new()) };
    toml::from_str(text).map_err(|error| format!("{LEFT}: {error}"))
}

fn counts(list: &List, findings: &[Finding]) -> Counts {
    let words = list.words.iter().map(|word| (word.words.text().to_string(), BTreeMap::new()));
    let mut counts: Counts = words.collect();
    for finding in findings {
        let areas = counts.entry(list.words[finding.word].words.text().to_string()).or_default();
        *areas.entry(area(&finding.path)).or_default() += 1;
    }
    counts
}

/// The crate or the folder of documents that a file belongs to.
fn area(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        [first @ ("crates" | "docs"), second, _, ..] => format!("{first}/{second}"),
        [first, _, ..] => first.to_string(),
        _ => ROOT.to_string(),
    }
}

/// Every place under `under`, a folder or file, with its replacement; all places if it is empty.
pub fn listing(repository: &Repository, under: &str) -> Result<Vec<String>, String> {
    let list = words::list(repository)?;
    let findings = words::findings(repository, &list);
    let is_under = |path: &str| match under {
        ROOT => !path.contains('/'),
        under => repository::is_under(path, under),
    };
    let inside = findings.iter().filter(|finding| is_under(&finding.path));
    let line = |f: &Finding| {
        format!("{}:{}: `{}`: write {}", f.path, f.line, f.found, list.words[f.word].instead)
    };
    Ok(inside.map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: &str = "[[word]]\nwords = \"room\"\nuse = \"space\"\nin = [\"comments\"]\n";
    const PATH: &str = "crates/a/src/lib.rs";

    fn repository(list: &str, left: &str, text: &str) -> Repository {
        Repository::of(&[(LIST, list), (LEFT, left), (PATH, text)])
    }

    fn found(list: &str, left: &str, text: &str) -> Vec<String> {
        check(&repository(list, left, text)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_word_more_than_are_allowed_is_found_with_its_replacement() {
        let found = found(WORDS, "[\"room\"]\n\"crates/a\" = 1", "// room\n\n// No room.");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[1].starts_with("crates/a/src/lib.rs:3: [words] `room`: write space."));
        assert!(found[1].contains("crates/a has 2, words-left.toml allows 1"), "{found:?}");
    }

    #[test]
    fn as_many_as_are_allowed_and_fewer_are_fine() {
        let left = "[\"room\"]\n\"crates/a\" = 2";
        assert_eq!(found(WORDS, left, "// room\n\n// room"), Vec::<String>::new());
        assert_eq!(found(WORDS, left, "// room"), Vec::<String>::new());
        assert!(slack(&repository(WORDS, left, "// room")).is_some_and(|s| s.contains("1 words")));
        assert_eq!(slack(&repository(WORDS, left, "// room\n\n// room")), None);
    }

    #[test]
    fn numbers_are_lowered_and_never_raised() {
        let lower_of = |left: &str, text: &str| {
            let text = lower(&repository(WORDS, left, text)).expect("the list is right");
            text.strip_prefix(HEADER).expect("it begins with its header").to_string()
        };
        let two = "[\"room\"]\n\"crates/a\" = 2\n";
        assert_eq!(lower_of(two, "// room"), "\n[\"room\"]\n\"crates/a\" = 1\n");
        assert_eq!(
            lower_of("[\"room\"]\n\"crates/a\" = 1\n", "// room, room"),
            lower_of(two, "// room")
        );
        assert_eq!(lower_of(two, ""), "\n[\"room\"]\n");
        assert_eq!(lower_of("[\"room\"]\n", "// room"), "\n[\"room\"]\n");
        assert_eq!(lower_of("", "// room, room"), format!("\n{two}"), "a new word");
    }

    #[test]
    fn a_list_that_is_wrong_is_found() {
        let twice = format!("{WORDS}{WORDS}");
        assert!(found(&twice, "", "")[0].contains("twice"));
        let reason = format!("[[outside]]\npath = \"crates/\"\nreason = \" \"\n{WORDS}");
        assert!(found(&reason, "", "")[0].contains("without a reason"));
        let gone = format!("{WORDS}except = [\"crates/b/\"]");
        assert!(found(&gone, "", "")[0].starts_with("words.toml:5: [words] there is no crates/b/"));
        assert!(found(WORDS, "<<<<<<< HEAD", "")[0].starts_with("words-left.toml:1: "));
        assert!(lower(&repository(WORDS, "<<<<<<< HEAD", "")).is_err());
        assert!(found(WORDS, "[\"old\"]", "")[0].contains("`old` is not in words.toml"));
    }

    #[test]
    fn places_are_listed_by_folder() {
        let repository = repository(WORDS, "", "// room");
        let line = "crates/a/src/lib.rs:1: `room`: write space".to_string();
        assert_eq!(listing(&repository, "crates/a"), Ok(vec![line]));
        assert_eq!(listing(&repository, "docs"), Ok(vec![]));
    }
}
