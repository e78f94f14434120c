//! What a release needs beyond the tests: the order of publishing, packages that build on their
//! own, every set of features, and the oldest compiler.

use crate::package::Package;
use crate::repository::Repository;
use crate::rules::publishable;
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

/// The crate whose features programs choose.
const FACADE: &str = "shingle";

/// Features of more than this many are not tried in every combination.
const COMBINED_MAX: usize = 4;

/// Prints the order of publishing. With `dry_run`, every package is built from what would be
/// uploaded: about as much work as a release build.
pub fn publishable(repository: &Repository, dry_run: bool) -> Result<(), String> {
    let violations = publishable::check(repository);
    if !violations.is_empty() {
        let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
        return Err(lines.join("\n"));
    }
    for package in publishable::order(repository) {
        println!("{package}");
    }
    if !dry_run {
        return Ok(());
    }
    // A folder of its own: packages of an earlier run would be taken for released ones.
    let folder = repository.root.as_deref().map(|root| root.join("target/publish"));
    let folder = folder.ok_or("there is no repository")?;
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| format!("cannot empty {folder:?}: {error}"))?;
    }
    let folder = folder.to_string_lossy().into_owned();
    let mut arguments = vec!["publish", "--workspace", "--dry-run", "--locked"];
    arguments.extend(["--target-dir", &folder]);
    for package in repository.members().filter(|package| !package.is_published()) {
        arguments.extend(["--exclude", package.cargo_name()]);
    }
    cargo(repository, &arguments)
}

/// Lints the crate `shingle` with every set of its features, warnings as errors.
pub fn features(repository: &Repository) -> Result<(), String> {
    let package = repository.members().find(|package| package.cargo_name() == FACADE);
    let package = package.ok_or("there is no crate `shingle`")?;
    for set in sets(package) {
        println!("features: {}", if set.is_empty() { "none" } else { &set });
        let lint = ["clippy", "--package", FACADE, "--lib", "--locked"];
        let features = ["--no-default-features", "--features", &set];
        cargo(repository, &[&lint[..], &features, &["--", "-D", "warnings"]].concat())?;
    }
    Ok(())
}

/// Every set of the package's features; of many only none, each alone, and all.
fn sets(package: &Package) -> Vec<String> {
    let table = package.manifest.get("features").and_then(toml::Value::as_table);
    let names: Vec<&str> = table.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    let names: Vec<&str> = names.into_iter().filter(|name| *name != "default").collect();
    let all = (1usize << names.len().min(usize::BITS as usize - 1)) - 1;
    let bits = |set: &usize| names.len() <= COMBINED_MAX || set.count_ones() <= 1 || *set == all;
    let sets = (0..=all).filter(bits);
    let of = |set: usize| -> Vec<&str> {
        (0..names.len()).filter(|at| set >> at & 1 == 1).map(|at| names[at]).collect()
    };
    sets.map(|set| of(set).join(",")).collect()
}

/// Compiles each published crate with the compiler that its `rust-version` names. The compilers
/// must be installed.
pub fn oldest_compiler(repository: &Repository) -> Result<(), String> {
    let installed = run(repository, "rustup", &["toolchain", "list"], true)?;
    let root = repository.toml("Cargo.toml").unwrap_or_default();
    let mut by_version: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in repository.members().filter(|package| package.is_published()) {
        let version = publishable::rust_version(&root, package);
        let missing = || format!("{} has no `rust-version`", package.cargo_name());
        by_version.entry(version.ok_or_else(missing)?).or_default().push(package.cargo_name());
    }
    for (version, packages) in by_version {
        let toolchain = format!("{version}.0");
        if !installed.lines().any(|line| line.starts_with(&toolchain)) {
            return Err(format!(
                "`rustup toolchain install {toolchain} --profile minimal` comes first"
            ));
        }
        println!("Rust {version}: {}", packages.join(", "));
        let mut arguments = vec!["run", &toolchain, "cargo", "check", "--locked"];
        arguments.extend(packages.iter().flat_map(|name| ["--package", name]));
        run(repository, "rustup", &arguments, false)?;
    }
    Ok(())
}

/// Runs cargo in the repository.
pub fn cargo(repository: &Repository, arguments: &[&str]) -> Result<(), String> {
    run(repository, "cargo", arguments, false).map(drop)
}

/// Runs a program in the repository; what it prints is captured or passed on.
fn run(
    repository: &Repository,
    program: &str,
    arguments: &[&str],
    is_captured: bool,
) -> Result<String, String> {
    let root = repository.root.as_deref().ok_or("these texts are in memory alone")?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root);
    let failed = |error| format!("cannot run {program}: {error}");
    let (status, text) = match is_captured {
        true => {
            let output = command.output().map_err(failed)?;
            (output.status, String::from_utf8_lossy(&output.stdout).into_owned())
        }
        false => (command.status().map_err(failed)?, String::new()),
    };
    let line = || format!("{program} {}", arguments.join(" "));
    if status.success() { Ok(text) } else { Err(format!("`{}` failed", line())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets_of(features: &str) -> Vec<String> {
        let manifest = format!("[package]\nname = \"x\"\n[features]\n{features}");
        sets(&Package::parse("crates/x/Cargo.toml", &manifest).unwrap())
    }

    #[test]
    fn few_features_are_tried_in_every_combination() {
        assert_eq!(sets_of(""), [""]);
        assert_eq!(sets_of("default = []\na = []\nb = []"), ["", "a", "b", "a,b"]);
    }

    #[test]
    fn many_features_are_tried_alone_and_together() {
        let five = sets_of("a = []\nb = []\nc = []\nd = []\ne = []");
        assert_eq!(five, ["", "a", "b", "c", "d", "e", "a,b,c,d,e"]);
    }
}
