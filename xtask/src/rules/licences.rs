//! Every package in the lock file has a licence that we allow.
//!
//! Licences come from `cargo metadata`, which needs every package on this machine. Where those of
//! other platforms are missing, the rule checks the rest; where more is missing, it checks nothing.
//! Either way a note says so.

use super::Violation;
use crate::repository::Repository;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

pub const NAME: &str = "licences";

const ALLOWED: [&str; 11] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Zlib",
];

pub fn check(repository: &Repository) -> Vec<Violation> {
    let Some(root) = repository.root.as_deref() else { return Vec::new() };
    let metadata = metadata(root, None).or_else(|_| metadata(root, host().as_deref()));
    metadata.map_or_else(|_| Vec::new(), |metadata| check_packages(&metadata))
}

/// What cannot be checked here, if anything.
pub fn unavailable(repository: &Repository) -> Option<String> {
    let root = repository.root.as_deref()?;
    let error = metadata(root, None).err()?;
    let what = match metadata(root, host().as_deref()) {
        Ok(_) => "of packages for other platforms ",
        Err(_) => "",
    };
    Some(format!("licences {what}are not checked: {error}; `cargo fetch` helps"))
}

/// What Cargo knows of the packages in the lock file, for one platform or for all.
fn metadata(root: &Path, platform: Option<&str>) -> Result<Value, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--format-version", "1", "--offline", "--locked"]).current_dir(root);
    if let Some(platform) = platform {
        command.args(["--filter-platform", platform]);
    }
    let output = command.output().map_err(|error| format!("cannot run cargo: {error}"))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(message.lines().next().unwrap_or("cargo metadata failed").to_string());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

/// The platform of this machine, as the compiler calls it.
fn host() -> Option<String> {
    let output = Command::new("rustc").arg("-vV").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().find_map(|line| line.strip_prefix("host: ").map(str::to_string))
}

fn check_packages(metadata: &Value) -> Vec<Violation> {
    let packages = metadata["packages"].as_array();
    let mut found = Vec::new();
    for package in packages.into_iter().flatten() {
        let licence = package["license"].as_str().unwrap_or("none");
        if !is_allowed(licence) {
            let name = package["name"].as_str().unwrap_or_default();
            let version = package["version"].as_str().unwrap_or_default();
            let message = format!(
                "{name} {version} has the licence `{licence}`, which is not on the list in \
                 xtask/src/rules/licences.rs: use another crate, or decide about the licence"
            );
            found.push(Violation::new(NAME, "Cargo.lock", 1, message));
        }
    }
    found
}

/// An SPDX expression that allowed licences satisfy: `AND` needs both sides, `OR` one.
fn is_allowed(expression: &str) -> bool {
    let text = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut at = 0;
    let allowed = alternatives(&words, &mut at);
    allowed && at == words.len()
}

fn alternatives(words: &[&str], at: &mut usize) -> bool {
    let mut allowed = all_of(words, at);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        allowed |= all_of(words, at);
    }
    allowed
}

fn all_of(words: &[&str], at: &mut usize) -> bool {
    let mut allowed = one(words, at);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        allowed &= one(words, at);
    }
    allowed
}

fn one(words: &[&str], at: &mut usize) -> bool {
    *at += 1;
    let Some(word) = words.get(*at - 1) else { return false };
    if *word == "(" {
        let allowed = alternatives(words, at);
        *at += 1;
        return allowed;
    }
    let mut licence = word.to_string();
    if words.get(*at) == Some(&"WITH") {
        licence = words[*at - 1..(*at + 2).min(words.len())].join(" ");
        *at += 2;
    }
    ALLOWED.contains(&licence.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_understood() {
        for allowed in [
            "MIT",
            "MIT OR Apache-2.0",
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR MIT",
        ] {
            assert!(is_allowed(allowed), "{allowed}");
        }
        for refused in ["none", "", "GPL-3.0", "MIT AND GPL-3.0", "MIT OR", "MIT Apache-2.0"] {
            assert!(!is_allowed(refused), "{refused}");
        }
    }

    #[test]
    fn a_package_with_another_licence_is_found() {
        let metadata = serde_json::json!({ "packages": [
            { "name": "a", "version": "1.0.0", "license": "MIT" },
            { "name": "b", "version": "2.0.0", "license": "GPL-3.0" },
            { "name": "c", "version": "3.0.0", "license": null },
        ] });
        let found: Vec<String> = check_packages(&metadata).into_iter().map(|v| v.message).collect();
        assert_eq!(found.len(), 2);
        assert!(found[0].starts_with("b 2.0.0 has the licence `GPL-3.0`"));
    }
}
