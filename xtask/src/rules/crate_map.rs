//! ARCHITECTURE.md and the workspace name the same crates, both ways.

use super::Violation;
use crate::repository::Repository;
use std::collections::BTreeMap;

pub const NAME: &str = "crate-map";
const MAP: &str = "ARCHITECTURE.md";

pub fn check(repository: &Repository) -> Vec<Violation> {
    let Some(text) = repository.text(MAP) else { return Vec::new() };
    let named = folders(text);
    let members: Vec<&str> = repository.members().map(|package| &*package.folder).collect();
    let mut found = Vec::new();
    for (folder, line) in &named {
        if !members.contains(&folder.as_str()) {
            let message = format!("there is no crate `{folder}`: remove or correct it");
            found.push(Violation::new(NAME, MAP, *line, message));
        }
    }
    for folder in members.iter().filter(|folder| !named.contains_key(**folder)) {
        let message = format!("crate `{folder}` is not on the map: give it a paragraph");
        found.push(Violation::new(NAME, MAP, 1, message));
    }
    found
}

/// Crate folders that the text names, each with its first line.
fn folders(text: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        for part in line.split(|c: char| !c.is_alphanumeric() && !"/-_.<>*".contains(c)) {
            let mut parts = part.split('/');
            let folder = match (parts.next(), parts.next()) {
                (Some("crates"), Some(name)) if is_crate_name(name) => format!("crates/{name}"),
                (Some(name @ ("python" | "xtask")), _) => name.to_string(),
                _ => continue,
            };
            found.entry(folder).or_insert(index + 1);
        }
    }
    found
}

fn is_crate_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ghosts_and_missing_crates_are_found() {
        let repository = Repository::of(&[
            (MAP, "# Map\n\n`crates/base/src/key.rs`, `crates/<name>`\n[x](crates/ghost)"),
            ("crates/base/Cargo.toml", "[package]\nname = \"shingle-base\""),
            ("xtask/Cargo.toml", "[package]\nname = \"xtask\""),
        ]);
        let found: Vec<String> = check(&repository).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("ARCHITECTURE.md:4: ") && found[0].contains("crates/ghost"));
        assert!(found[1].contains("`xtask` is not on the map"));
    }
}
