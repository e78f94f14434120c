//! The listing compared with that of an earlier commit: what semantic versioning asks for.

use super::FILE;
use crate::repository::Repository;
use std::collections::BTreeSet;
use std::process::Command;

/// A line of the listing with the item that it belongs to.
type Line = (String, String);

/// What became of the interface since the commit `revision`, as lines to print. An error where
/// something that programs may use went, and the version does not say so.
pub fn since(repository: &Repository, revision: &str) -> Result<Vec<String>, String> {
    let root = repository.root.as_deref().ok_or("these texts are in memory alone")?;
    let show = |path: &str| {
        let object = format!("{revision}:{path}");
        let output = Command::new("git").args(["show", &object]).current_dir(root).output();
        let output = output.map_err(|error| format!("cannot run git: {error}"))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).trim().to_string()),
        }
    };
    let now = repository.text(FILE).ok_or_else(|| format!("there is no {FILE}"))?;
    let version_now = version(repository.text("Cargo.toml").unwrap_or_default());
    verdict(&show(FILE)?, now, &version(&show("Cargo.toml")?), &version_now)
}

fn verdict(then: &str, now: &str, from: &str, to: &str) -> Result<Vec<String>, String> {
    let (then, now) = (lines(then), lines(now));
    let tell = |sign: char, (item, line): &Line| match line.is_empty() {
        true => format!("{sign} {item}"),
        false => format!("{sign} {item}: {line}"),
    };
    let gone: Vec<String> = then.difference(&now).map(|line| tell('-', line)).collect();
    let new = now.difference(&then).map(|line| tell('+', line));
    let all: Vec<String> = gone.iter().cloned().chain(new).collect();
    if gone.is_empty() || breaks(from, to) {
        return Ok(all);
    }
    Err(format!(
        "{}\n{} lines of the interface changed or went, which programs may use: version {to} must \
         not follow {from}; raise the first number that is not 0",
        all.join("\n"),
        gone.len()
    ))
}

/// The lines of a listing; that of an item itself is empty.
fn lines(listing: &str) -> BTreeSet<Line> {
    let mut item = String::new();
    let body = listing.split_once("\n\n").map_or("", |(_, body)| body);
    let all = body.lines().filter(|line| !line.is_empty());
    let pairs = all.map(|line| match line.strip_prefix("    ") {
        Some(line) => (item.clone(), line.to_string()),
        None => {
            item = line.to_string();
            (item.clone(), String::new())
        }
    });
    pairs.collect()
}

/// A program that asks for version `from` is not given `to`: the first number that is not 0
/// differs.
fn breaks(from: &str, to: &str) -> bool {
    let significant = |version: &str| -> Vec<String> {
        let mut numbers = Vec::new();
        for number in version.split('.') {
            numbers.push(number.to_string());
            if number != "0" {
                break;
            }
        }
        numbers
    };
    significant(from) != significant(to)
}

fn version(manifest: &str) -> String {
    let manifest: toml::Table = manifest.parse().unwrap_or_default();
    let package = manifest.get("workspace").and_then(|workspace| workspace.get("package"));
    let version = package.and_then(|package| package.get("version")?.as_str());
    version.unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEN: &str = "Head.\n\nstruct Db\n    fn get(&self)\n    fn put(&self)\n\nfn open()\n";

    #[test]
    fn an_addition_needs_no_new_version() {
        let now = THEN.replace("    fn put", "    fn merge(&self)\n    fn put");
        let said = verdict(THEN, &now, "0.1.0", "0.1.1").unwrap();
        assert_eq!(said, ["+ struct Db: fn merge(&self)"]);
    }

    #[test]
    fn what_went_asks_for_a_version_that_breaks() {
        let now = THEN.replace("fn put(&self)", "fn put(&self, key: &[u8])");
        let error = verdict(THEN, &now, "0.1.0", "0.1.1").unwrap_err();
        assert!(error.contains("- struct Db: fn put(&self)\n"), "{error}");
        for to in ["0.2.0", "1.0.0"] {
            assert_eq!(verdict(THEN, &now, "0.1.0", to).unwrap().len(), 2, "{to}");
        }
        assert!(verdict(THEN, &now, "1.4.0", "1.5.0").is_err());
    }
}
