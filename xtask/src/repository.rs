//! The repository as the rules see it: every text file in memory, by its path from the root.
//!
//! Build output, most hidden folders and nested repositories are left out. Rules take a
//! [`Repository`] and no path, so that their tests are a few lines of text.

use crate::modules;
use crate::package::Package;
use crate::source::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Folders with a dot that belong to the project.
const HIDDEN_FOLDERS: [&str; 3] = [".ci", ".cargo", ".github"];

/// Everything that the rules look at.
pub struct Repository {
    /// Where it lies; `None` for the texts of a test.
    pub root: Option<PathBuf>,
    /// Every file, from the root, with forward slashes.
    pub files: BTreeSet<String>,
    /// Markdown, TOML and plain text, by path.
    pub texts: BTreeMap<String, String>,
    /// Rust files, by path.
    pub sources: BTreeMap<String, Source>,
    /// Packages, by folder.
    pub packages: Vec<Package>,
}

impl Repository {
    /// Reads the repository that this tool was built in.
    pub fn load() -> Result<Repository, String> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here.parent().expect("xtask is a folder of the repository");
        let mut found = Vec::new();
        walk(root, "", &mut found)?;
        let mut repository = Repository::of_texts(found);
        repository.root = Some(root.to_path_buf());
        Ok(repository)
    }

    /// A repository of these paths and texts.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Repository {
        Repository::of_texts(files.iter().map(|(p, t)| (p.to_string(), t.to_string())).collect())
    }

    fn of_texts(found: Vec<(String, String)>) -> Repository {
        let files = found.iter().map(|(path, _)| path.clone()).collect();
        let (rust, other): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|(path, _)| path.ends_with(".rs"));
        let texts: BTreeMap<String, String> = other.into_iter().collect();
        let packages: Vec<Package> =
            texts.iter().filter_map(|(path, text)| Package::parse(path, text)).collect();
        let mut sources: BTreeMap<String, Source> =
            rust.into_iter().map(|(path, text)| (path.clone(), Source::new(path, text))).collect();
        for path in modules::test_only(&packages, &sources) {
            if let Some(source) = sources.get_mut(&path) {
                source.mark_all_test();
            }
        }
        Repository { root: None, files, texts, sources, packages }
    }

    /// Writes a file of the repository.
    pub fn write(&self, path: &str, text: &str) -> Result<(), String> {
        let root = self.root.as_deref().ok_or("these texts are in memory alone")?;
        fs::write(root.join(path), text).map_err(|error| format!("cannot write {path}: {error}"))
    }

    /// The text of a Markdown, TOML or plain file.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    /// A parsed TOML file; `None` when it is absent. Cargo itself complains about broken manifests,
    /// so a broken file of ours is empty here and reported by the rule that needs it.
    pub fn toml(&self, path: &str) -> Option<toml::Table> {
        self.text(path).map(|text| text.parse().unwrap_or_default())
    }

    /// The packages of the workspace.
    pub fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.is_member())
    }

    /// The line, from 1, of a text file that begins with `key`, quoted or not; 1 without one.
    pub fn line_of(&self, path: &str, key: &str) -> usize {
        let text = self.text(path).unwrap_or_default();
        let begins = |line: &str| line.trim_start().trim_start_matches('"').starts_with(key);
        text.lines().position(begins).map_or(1, |index| index + 1)
    }
}

/// The path is `folder` or lies below it; every path lies below the empty one.
pub fn is_under(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder.trim_end_matches('/'));
    rest.is_some_and(|rest| folder.is_empty() || rest.is_empty() || rest.starts_with('/'))
}

fn walk(folder: &Path, prefix: &str, found: &mut Vec<(String, String)>) -> Result<(), String> {
    let failed = |error| format!("cannot read {}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            let hidden = name.starts_with('.') && !HIDDEN_FOLDERS.contains(&name.as_str());
            let nested = entry.path().join(".git").exists();
            if !hidden && !nested && name != "target" {
                walk(&entry.path(), &path, found)?;
            }
        } else if kind.is_symlink() {
            found.push((path, String::new()));
        } else if kind.is_file() {
            let is_text =
                [".rs", ".md", ".toml", ".txt"].iter().any(|suffix| name.ends_with(suffix));
            let text = if is_text { fs::read_to_string(entry.path()) } else { Ok(String::new()) };
            found.push((path, text.map_err(failed)?));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_ends_at_a_slash() {
        for folder in ["", "a", "a/b", "a/b/", "a/b/c.rs"] {
            assert!(is_under("a/b/c.rs", folder), "{folder}");
        }
        assert!(!is_under("a/bc", "a/b") && !is_under("a", "a/b"));
    }

    #[test]
    fn packages_are_found_by_their_manifests() {
        let repository = Repository::of(&[
            ("Cargo.toml", "[workspace]"),
            ("crates/base/Cargo.toml", "[package]\nname = \"shingle-base\""),
            ("peers/Cargo.toml", "[package]\nname = \"peers\""),
        ]);
        let members: Vec<_> = repository.members().map(|p| (p.name(), p.cargo_name())).collect();
        assert_eq!(members, [("base", "shingle-base")]);
    }
}
