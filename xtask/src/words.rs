//! Retired words: the list in `words.toml`, and every place that still uses one.

use crate::names;
use crate::prose::{self, Block, Word};
use crate::repository::Repository;
use crate::source::Source;
use serde::Deserialize;
use std::collections::BTreeSet;
use syn::visit::{self, Visit};

/// The list.
pub const LIST: &str = "words.toml";

/// The list as it is written.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// Files out of scope.
    #[serde(default)]
    pub outside: Vec<Outside>,
    /// The words.
    #[serde(default, rename = "word")]
    pub words: Vec<Retired>,
}

/// A path out of scope.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outside {
    /// A file, or a folder with its slash.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// A retired word or phrase.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retired {
    /// What is looked for.
    pub words: Phrase,
    /// What to write.
    #[serde(rename = "use")]
    pub instead: String,
    /// Where it is looked for.
    #[serde(rename = "in")]
    pub kinds: BTreeSet<Kind>,
    /// Correct uses.
    #[serde(default)]
    pub not: Vec<Phrase>,
    /// Paths where the words mean something else.
    #[serde(default)]
    pub except: Vec<String>,
}

/// The kinds of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Markdown.
    Docs,
    /// Comments, with the documentation of code.
    Comments,
    /// Strings outside tests.
    Strings,
    /// Files and `mod`.
    Modules,
    /// Names of types and variants, where they are declared.
    Types,
    /// All names that are declared.
    Names,
}

/// Consecutive words, each with its alternatives; `_` is any word, `x*` every word that begins so.
#[derive(Deserialize)]
#[serde(from = "String")]
pub struct Phrase {
    text: String,
    slots: Vec<Vec<String>>,
    is_first: bool,
}

impl From<String> for Phrase {
    fn from(text: String) -> Phrase {
        let slot = |slot: &str| slot.split('|').map(str::to_string).collect();
        let is_first = text.starts_with('^');
        let slots = text.trim_start_matches('^').split_whitespace().map(slot).collect();
        Phrase { text, slots, is_first }
    }
}

impl Phrase {
    /// As it is written in the list.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// It begins at `at`: the words follow each other without a mark between them.
    fn stands_at(&self, block: &[Word], at: usize) -> bool {
        let Some(words) = block.get(at..at + self.slots.len()) else { return false };
        let fits = |(word, slot): (&Word, &Vec<String>)| slot.iter().any(|s| fits(s, &word.text));
        words.iter().zip(&self.slots).all(fits)
            && words[1..].iter().all(|word| word.before.is_none())
            && (!self.is_first || words[0].before.is_some() && !is_question(&block[at + 1..]))
    }

    /// It overlaps the words from `from` to `to`.
    fn touches(&self, block: &[Word], from: usize, to: usize) -> bool {
        let first = (from + 1).saturating_sub(self.slots.len());
        (first..to).any(|at| self.stands_at(block, at))
    }
}

fn fits(slot: &str, word: &str) -> bool {
    match slot.strip_suffix('*') {
        _ if slot == "_" => true,
        Some(begin) => word.starts_with(begin),
        None => word == slot,
    }
}

/// The first end of a sentence in `rest` is a question mark.
fn is_question(rest: &[Word]) -> bool {
    let marks = rest.iter().filter_map(|word| word.before);
    marks.into_iter().find(|mark| ".!?|\n".contains(*mark)) == Some('?')
}

/// A place that uses a retired word.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file.
    pub path: String,
    /// The line.
    pub line: usize,
    /// What stands there.
    pub found: String,
    /// The word's place in the list.
    pub word: usize,
}

/// The list of the repository; empty if the file is absent.
pub fn list(repository: &Repository) -> Result<List, String> {
    let Some(text) = repository.text(LIST) else { return Ok(List::default()) };
    toml::from_str(text).map_err(|error| error.to_string())
}

/// Every place of every word, in order.
pub fn findings(repository: &Repository, list: &List) -> Vec<Finding> {
    let is_inside = |path: &str| !list.outside.iter().any(|other| path.starts_with(&other.path));
    let mut found = Vec::new();
    for (path, text) in &repository.texts {
        if path.ends_with(".md") && is_inside(path) {
            let blocks = prose::of_document(text);
            found.extend(in_prose(list, path, Kind::Docs, &blocks));
            found.extend(in_path(list, path));
        }
    }
    for source in repository.sources.values().filter(|source| is_inside(&source.path)) {
        found.extend(in_source(list, source));
    }
    found.sort();
    found
}

fn in_source(list: &List, source: &Source) -> Vec<Finding> {
    let path = &source.path;
    let strings = source.strings.iter().filter(|string| !source.is_test(string.line));
    let strings: Vec<Block> = strings.map(prose::of_string).collect();
    let comments = prose::of_comments(&source.comments);
    let mut found = in_prose(list, path, Kind::Comments, &comments);
    found.extend(in_prose(list, path, Kind::Strings, &strings));
    found.extend(in_path(list, path));
    found.extend(in_names(list, source));
    found
}

/// The words of the list that are looked for in one of `kinds` in this file.
fn looked_for<'a>(
    list: &'a List,
    path: &'a str,
    kinds: &'a [Kind],
) -> impl Iterator<Item = (usize, &'a Retired)> {
    list.words.iter().enumerate().filter(move |(_, word)| {
        kinds.iter().any(|kind| word.kinds.contains(kind))
            && !word.except.iter().any(|other| path.starts_with(other))
    })
}

fn in_prose(list: &List, path: &str, kind: Kind, blocks: &[Block]) -> Vec<Finding> {
    let mut found = Vec::new();
    for (index, retired) in looked_for(list, path, &[kind]) {
        for block in blocks {
            for at in (0..block.len()).filter(|&at| retired.words.stands_at(block, at)) {
                let end = at + retired.words.slots.len();
                if retired.not.iter().any(|other| other.touches(block, at, end)) {
                    continue;
                }
                let words: Vec<&str> = block[at..end].iter().map(|w| w.text.as_str()).collect();
                let (line, text) = (block[at].line, words.join(" "));
                found.push(Finding { path: path.to_string(), line, found: text, word: index });
            }
        }
    }
    found
}

/// Files that are called by a word of the list.
fn in_path(list: &List, path: &str) -> Vec<Finding> {
    let stems = path.split('/').map(|part| part.split('.').next().unwrap_or(part));
    let stems: Vec<&str> = stems.collect();
    let words = looked_for(list, path, &[Kind::Modules]);
    let named = words.filter(|(_, word)| stems.iter().any(|stem| is_word(&word.words, stem)));
    named.map(|(word, _)| finding(path, 1, path, word)).collect()
}

/// The names that a file declares: of types and variants, and all names.
fn in_names(list: &List, source: &Source) -> Vec<Finding> {
    let mut declared = Declared::default();
    source.file.iter().for_each(|file| declared.visit_file(file));
    let mut found = Vec::new();
    for name in declared.0 {
        let (text, line) = (name.to_string(), names::line(name.span()));
        let is_type = text.starts_with(char::is_uppercase) && text.contains(char::is_lowercase);
        let parts = parts(&text);
        let kinds: &[Kind] = if is_type { &[Kind::Types, Kind::Names] } else { &[Kind::Names] };
        for (index, word) in looked_for(list, &source.path, kinds) {
            if parts.iter().any(|part| is_word(&word.words, part)) {
                found.push(finding(&source.path, line, &text, index));
            }
        }
    }
    found
}

/// The names that items, variants, fields and functions are declared by.
#[derive(Default)]
struct Declared(Vec<syn::Ident>);

impl<'ast> Visit<'ast> for Declared {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let is_function = matches!(item, syn::Item::Fn(_));
        self.0.extend(names::item_name(item).filter(|_| !is_function).cloned());
        visit::visit_item(self, item);
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        self.0.push(variant.ident.clone());
        visit::visit_variant(self, variant);
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        self.0.extend(field.ident.clone());
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.0.push(signature.ident.clone());
    }
}

fn finding(path: &str, line: usize, found: &str, word: usize) -> Finding {
    Finding { path: path.to_string(), line, found: found.to_string(), word }
}

/// The phrase is one word, and it is `text`.
fn is_word(phrase: &Phrase, text: &str) -> bool {
    matches!(&phrase.slots[..], [slot] if slot.iter().any(|slot| fits(slot, text)))
}

/// The words of a name, in small letters: `LdcPolicy` and `ldc_policy` are `ldc`, `policy`.
pub fn parts(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = '_';
    for c in name.chars() {
        if c == '_' || c.is_uppercase() && before.is_lowercase() {
            words.push(String::new());
        }
        if c != '_' {
            words.last_mut().expect("one at least").extend(c.to_lowercase());
        }
        before = c;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(list: &str, path: &str, text: &str) -> Vec<(usize, String)> {
        let repository = Repository::of(&[(LIST, list), (path, text)]);
        let list = super::list(&repository).expect("the list is right");
        let found = findings(&repository, &list);
        found.into_iter().map(|finding| (finding.line, finding.found)).collect()
    }

    fn word(words: &str, kinds: &str, more: &str) -> String {
        format!("[[word]]\nwords = \"{words}\"\nuse = \"x\"\nin = [{kinds}]\n{more}\n")
    }

    fn lines(words: &str, text: &str) -> Vec<usize> {
        let list = word(words, "\"docs\"", "");
        found(&list, "a.md", text).into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn phrases_are_found_over_lines_and_not_over_marks_or_code() {
        assert_eq!(lines("at rest", "# A\nIt is At\nrest. At `x` rest at, rest"), [2]);
        assert_eq!(lines("relocat*", "relocated\nlocation"), [1]);
        assert_eq!(lines("a|one tenth", "a tenth\nevery tenth\none tenth"), [1, 3]);
        assert_eq!(lines("what _ waits", "what it waits"), [1]);
        assert_eq!(lines("room", "```\nroom\n```\n`room` rooms"), [0; 0]);
    }

    #[test]
    fn a_subject_is_found_at_the_beginning_of_a_clause() {
        let text = "Who reads, waits.\n\nThe user who reads waits,\nwho writes too.\n\n\
                    Who is it for?\n\nNames:\n- who";
        assert_eq!(lines("^who|whoever", text), [1, 4, 9]);
    }

    #[test]
    fn correct_uses_and_other_places_are_free() {
        let list = word("front", "\"docs\"", "not = [\"in front\"]\nexcept = [\"b/\"]");
        assert_eq!(found(&list, "a.md", "in front\na front").len(), 1);
        assert_eq!(found(&list, "b/a.md", "a front"), []);
        let outside = format!("[[outside]]\npath = \"a.md\"\nreason = \"old\"\n{list}");
        assert_eq!(found(&outside, "a.md", "a front"), []);
    }

    #[test]
    fn comments_strings_types_and_modules_are_told_apart() {
        let text = "//! A front.\nfn front() -> &str { \"front\" }\nstruct OpenFront;\n\
                    fn f(x: OpenFront) { x.front() }\n\
                    #[cfg(test)]\nmod tests { const A: &str = \"front\"; }\nmod front;";
        let at = |kind: &str| {
            let found = found(&word("front", kind, ""), "a/front.rs", text);
            found.into_iter().map(|(line, _)| line).collect::<Vec<_>>()
        };
        assert_eq!(at("\"comments\""), [1]);
        assert_eq!(at("\"strings\""), [2]);
        assert_eq!(at("\"types\""), [3]);
        assert_eq!(at("\"modules\""), [1]);
        assert_eq!(at("\"names\""), [2, 3]);
    }

    #[test]
    fn a_field_that_is_not_known_is_an_error() {
        let list = word("a", "\"docs\"", "instead = \"b\"");
        assert!(super::list(&Repository::of(&[(LIST, &list)])).is_err());
    }
}
