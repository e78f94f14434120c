//! The listing of what the crate `shingle` exports is current, no signature names a type that
//! programs cannot name, and the pages about other stores name only what exists.

use super::Violation;
use crate::interface::{self, Exported, FILE, UNSTABLE};
use crate::repository::Repository;
use std::collections::BTreeSet;

pub const NAME: &str = "interface";
const FACADE: &str = "crates/shingle/src/lib.rs";

/// Pages whose tables say what a method of another store is called here.
const PAGES: &str = "docs/manual/from-";
/// The column that has our names.
const OURS: &str = "Shingle";

/// Types and traits of the standard library that signatures may name.
const STANDARD: &str = "Arc AsRef Box Clone Debug Default Display Duration Error Fn FnMut FnOnce \
    From Into Item Iterator Option Path RangeBounds Result Self Send String Sync Target Vec";

pub fn check(repository: &Repository) -> Vec<Violation> {
    if !repository.sources.contains_key(FACADE) {
        return Vec::new();
    }
    let items = interface::exported(repository);
    let mut found = Vec::new();
    if repository.text(FILE) != Some(interface::listing(&items).as_str()) {
        let message = "the crate `shingle` exports something else: run `cargo xtask interface`, \
                       look at the difference, and commit it with the change";
        found.push(Violation::new(NAME, FILE, 1, message.into()));
    }
    found.extend(unnamed(&items));
    found.extend(pages(repository, &items));
    found
}

/// Types in signatures that no `use shingle::...` reaches.
fn unnamed(items: &[Exported]) -> Vec<Violation> {
    let mut known: BTreeSet<&str> = STANDARD.split_whitespace().collect();
    known.extend(items.iter().map(|item| item.path.rsplit("::").next().unwrap_or_default()));
    let mut found = Vec::new();
    for item in items.iter().filter(|item| !UNSTABLE.contains(&item.path.as_str())) {
        for signature in item.signatures() {
            let words = signature.split(|c: char| !c.is_alphanumeric() && c != '_');
            let is_type = |word: &&str| {
                word.starts_with(char::is_uppercase) && word.contains(char::is_lowercase)
            };
            for word in words.filter(is_type).filter(|word| !known.contains(word)) {
                let message = format!(
                    "`{}` names the type `{word}` (`{signature}`), which programs cannot name: \
                     export it in {FACADE}, or leave it out of the signature",
                    item.path
                );
                found.push(Violation::new(NAME, FACADE, 1, message));
            }
        }
    }
    found
}

/// Names in the tables of the pages about other stores that the interface does not have.
fn pages(repository: &Repository, items: &[Exported]) -> Vec<Violation> {
    let names = interface::names(items);
    let pages = repository.texts.iter().filter(|(path, _)| path.starts_with(PAGES));
    let mut found = Vec::new();
    for (path, text) in pages {
        let mut column = None;
        for (index, line) in text.lines().enumerate() {
            let Some(cells) = cells(line) else {
                column = None;
                continue;
            };
            let Some(at) = column else {
                column = Some(cells.iter().position(|cell| *cell == OURS));
                continue;
            };
            let Some(cell) = at.and_then(|at| cells.get(at)) else { continue };
            for name in code_names(cell).filter(|name| !names.contains(name)) {
                let message = format!("`{name}` is not in {FILE}: correct the name");
                found.push(Violation::new(NAME, path, index + 1, message));
            }
        }
    }
    found
}

/// The cells of a row of a table.
fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

/// What pieces of code name: `Db::put` in `Db::put(key, value)`. Code that begins with a small
/// letter is an option or a command, except where it is called.
fn code_names(cell: &str) -> impl Iterator<Item = String> {
    let pieces = cell.split('`').skip(1).step_by(2);
    pieces.filter_map(|piece| {
        let end = piece.find(|c: char| !c.is_alphanumeric() && !matches!(c, ':' | '_'));
        let (name, rest) = piece.split_at(end.unwrap_or(piece.len()));
        let is_ours = name.starts_with(char::is_uppercase) || rest.starts_with('(');
        is_ours.then(|| name.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DB: &str = "pub struct Db { secret: u8 }\nimpl Db {\n    pub fn get(&self) -> Hidden {}\n\
                      }\npub fn open() {}";

    fn messages(page: &str, listing: Option<&str>) -> Vec<String> {
        let files = [
            ("crates/shingle/Cargo.toml", "[package]\nname = \"shingle\""),
            (FACADE, DB),
            ("docs/manual/from-x.md", page),
        ];
        let repository = Repository::of(&files);
        let current = interface::listing(&interface::exported(&repository));
        let listing = [(FILE, listing.unwrap_or(&current))];
        let repository = Repository::of(&[&files[..], &listing].concat());
        check(&repository).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_old_listing_and_a_type_without_a_name_are_found() {
        let found = messages("", Some("old"));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("run `cargo xtask interface`"));
        assert!(found[1].contains("`Db` names the type `Hidden`"));
    }

    #[test]
    fn names_of_our_column_must_exist() {
        let page = "# P\n\n| X | Shingle | differences |\n|---|---|---|\n\
                    | `X::get` | `Db::get`, `open()` | `Y` |\n\
                    | a | `Db::put(k)`, `scheme=ldc` | |\n\
                    \n| other | table |\n|---|---|\n| `Z` | `Q` |\n";
        let found = messages(page, None);
        let ours: Vec<&String> = found.iter().filter(|line| line.starts_with("docs")).collect();
        assert_eq!(ours.len(), 1, "{ours:?}");
        assert!(ours[0].starts_with("docs/manual/from-x.md:6: ") && ours[0].contains("`Db::put`"));
    }
}
