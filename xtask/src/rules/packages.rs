//! Every package in the lock file is what `deny.toml` allows: its licence, where it comes from, and
//! one version of each. `cargo deny` reads the same file, and knows advisories besides.
//!
//! The facts come from `cargo metadata`, which needs every package on this machine. Where those of
//! other platforms are missing, the rule checks the rest; where more is missing, it checks nothing.
//! Either way a note says so.

use super::Violation;
use crate::repository::Repository;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

pub const NAME: &str = "packages";
const LOCK: &str = "Cargo.lock";
const DENY: &str = "deny.toml";

pub fn check(repository: &Repository) -> Vec<Violation> {
    let Some(root) = repository.root.as_deref() else { return Vec::new() };
    let Some(deny) = repository.toml(DENY) else { return Vec::new() };
    let metadata = metadata(root, None).or_else(|_| metadata(root, host().as_deref()));
    metadata.map_or_else(|_| Vec::new(), |metadata| check_packages(&deny, &metadata))
}

/// What cannot be checked here, if anything.
pub fn unavailable(repository: &Repository) -> Option<String> {
    let root = repository.root.as_deref()?;
    let error = metadata(root, None).err()?;
    let what = match metadata(root, host().as_deref()) {
        Ok(_) => "for other platforms ",
        Err(_) => "",
    };
    Some(format!("packages {what}are not checked: {error}; `cargo fetch` helps"))
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

/// A package as `cargo metadata` describes it.
struct Found<'a> {
    name: &'a str,
    version: &'a str,
    licence: &'a str,
    /// `None`: it is in this repository.
    source: Option<&'a str>,
}

fn check_packages(deny: &toml::Table, metadata: &Value) -> Vec<Violation> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let packages: Vec<Found> = packages
        .map(|package| Found {
            name: package["name"].as_str().unwrap_or_default(),
            version: package["version"].as_str().unwrap_or_default(),
            licence: package["license"].as_str().unwrap_or("none"),
            source: package["source"].as_str(),
        })
        .collect();
    let mut found = Vec::new();
    let mut say = |message: String| found.push(Violation::new(NAME, LOCK, 1, message));
    let allowed = strings(deny, "licenses", "allow");
    let registries = strings(deny, "sources", "allow-registry");
    let exceptions = exceptions(deny);
    for Found { name, version, licence, source } in &packages {
        let is_exception = |(other, allowed): &(String, Vec<String>)| {
            other == name && is_allowed(licence, allowed)
        };
        if !is_allowed(licence, &allowed) && !exceptions.iter().any(is_exception) {
            say(format!(
                "{name} {version} has the licence `{licence}`, which is not on the list in {DENY}: \
                 use another crate, or decide about the licence"
            ));
        }
        let registry = source.map(|source| source.trim_start_matches("registry+"));
        if registry.is_some_and(|registry| !registries.iter().any(|allowed| allowed == registry)) {
            say(format!(
                "{name} {version} comes from {}, and {DENY} does not list it: use a release from \
                 the registry",
                source.unwrap_or_default()
            ));
        }
    }
    check_versions(deny, &packages).into_iter().for_each(say);
    found
}

/// Packages of more than one version, and exceptions for those that are not.
fn check_versions(deny: &toml::Table, packages: &[Found]) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(package.name).or_default().push(package.version);
    }
    let mut found = Vec::new();
    let skipped = skipped(deny);
    for (name, version) in &skipped {
        let is_needed = versions.get(name.as_str()).is_some_and(|versions| {
            versions.len() > 1 && versions.iter().any(|other| is_of(other, version))
        });
        if !is_needed {
            found
                .push(format!("{DENY} skips `{name}@{version}`, which is no duplicate: remove it"));
        }
    }
    for (name, all) in versions {
        let is_skipped = |version: &&str| {
            skipped.iter().any(|(other, skip)| other == name && is_of(version, skip))
        };
        let left = all.iter().filter(|version| !is_skipped(version)).count();
        if all.len() > 1 && left > 1 {
            found.push(format!(
                "{name} has the versions {}, which are built and shipped side by side: bring the \
                 crates that use it together, or list one in [bans] of {DENY} with a reason",
                all.join(" and ")
            ));
        }
    }
    found
}

/// `version` is `wanted`, or begins with its numbers.
fn is_of(version: &str, wanted: &str) -> bool {
    let rest = version.strip_prefix(wanted);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The exceptions for duplicates, as name and version.
fn skipped(deny: &toml::Table) -> Vec<(String, String)> {
    let list = deny.get("bans").and_then(|bans| bans.get("skip")?.as_array());
    let crates = list.into_iter().flatten().filter_map(|entry| entry.get("crate")?.as_str());
    let pairs = crates.filter_map(|text| text.split_once('@'));
    pairs.map(|(name, version)| (name.to_string(), version.to_string())).collect()
}

/// Licences that single packages may have, by the name of the package.
fn exceptions(deny: &toml::Table) -> Vec<(String, Vec<String>)> {
    let list = deny.get("licenses").and_then(|licenses| licenses.get("exceptions")?.as_array());
    let pair = |entry: &toml::Value| {
        let allowed = entry.get("allow")?.as_array()?.iter().filter_map(toml::Value::as_str);
        Some((entry.get("crate")?.as_str()?.to_string(), allowed.map(str::to_string).collect()))
    };
    list.into_iter().flatten().filter_map(pair).collect()
}

fn strings(deny: &toml::Table, table: &str, key: &str) -> Vec<String> {
    let array = deny.get(table).and_then(|table| table.get(key)?.as_array());
    let texts = array.into_iter().flatten().filter_map(toml::Value::as_str);
    texts.map(str::to_string).collect()
}

/// An SPDX expression that allowed licences satisfy: `AND` needs both sides, `OR` one.
fn is_allowed(expression: &str, list: &[String]) -> bool {
    let text = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut at = 0;
    let allowed = alternatives(&words, &mut at, list);
    allowed && at == words.len()
}

fn alternatives(words: &[&str], at: &mut usize, list: &[String]) -> bool {
    let mut allowed = all_of(words, at, list);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        allowed |= all_of(words, at, list);
    }
    allowed
}

fn all_of(words: &[&str], at: &mut usize, list: &[String]) -> bool {
    let mut allowed = one(words, at, list);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        allowed &= one(words, at, list);
    }
    allowed
}

fn one(words: &[&str], at: &mut usize, list: &[String]) -> bool {
    *at += 1;
    let Some(word) = words.get(*at - 1) else { return false };
    if *word == "(" {
        let allowed = alternatives(words, at, list);
        *at += 1;
        return allowed;
    }
    let mut licence = word.to_string();
    if words.get(*at) == Some(&"WITH") {
        licence = words[*at - 1..(*at + 2).min(words.len())].join(" ");
        *at += 2;
    }
    list.contains(&licence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deny() -> toml::Table {
        "[licenses]\nallow = [\"MIT\", \"Unicode-3.0\", \"Apache-2.0 WITH LLVM-exception\"]\n\
         exceptions = [{ crate = \"tool\", allow = [\"MPL-2.0\"] }]\n\
         [sources]\nallow-registry = [\"https://index\"]\n\
         [bans]\nskip = [{ crate = \"syn@2\", reason = \"old\" }]"
            .parse()
            .unwrap()
    }

    #[test]
    fn expressions_are_understood() {
        let list = strings(&deny(), "licenses", "allow");
        for allowed in [
            "MIT",
            "MIT OR Apache-2.0",
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR BSD-2-Clause",
        ] {
            assert!(is_allowed(allowed, &list), "{allowed}");
        }
        for refused in ["none", "", "GPL-3.0", "MIT AND GPL-3.0", "MIT OR", "MIT Apache-2.0"] {
            assert!(!is_allowed(refused, &list), "{refused}");
        }
    }

    fn messages(packages: &[(&str, &str, &str, Option<&str>)]) -> Vec<String> {
        let packages: Vec<Value> = packages
            .iter()
            .map(|(name, version, license, source)| {
                serde_json::json!({ "name": name, "version": version, "license": license,
                                    "source": source })
            })
            .collect();
        let metadata = serde_json::json!({ "packages": packages });
        check_packages(&deny(), &metadata).into_iter().map(|v| v.message).collect()
    }

    const INDEX: Option<&str> = Some("registry+https://index");
    const SYN: [(&str, &str, &str, Option<&str>); 2] =
        [("syn", "2.0.1", "MIT", INDEX), ("syn", "3.0.0", "MIT", INDEX)];

    #[test]
    fn a_licence_that_one_package_may_have_is_no_licence_for_others() {
        let mpl = |name| (name, "1.0.0", "MPL-2.0", INDEX);
        let found = messages(&[SYN[0], SYN[1], mpl("tool"), mpl("other")]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("other 1.0.0 has the licence `MPL-2.0`"));
        let gpl = ("tool", "1.0.0", "GPL-3.0", INDEX);
        assert_eq!(messages(&[SYN[0], SYN[1], gpl]).len(), 1);
    }

    #[test]
    fn a_package_with_another_licence_or_source_is_found() {
        let found = messages(&[
            SYN[0],
            SYN[1],
            ("a", "1.0.0", "MIT", None),
            ("b", "2.0.0", "GPL-3.0", INDEX),
            ("c", "3.0.0", "MIT", Some("git+https://somewhere")),
        ]);
        assert_eq!(found.len(), 2);
        assert!(found[0].starts_with("b 2.0.0 has the licence `GPL-3.0`"));
        assert!(found[1].starts_with("c 3.0.0 comes from git+https://somewhere"));
    }

    #[test]
    fn a_second_version_needs_an_entry_and_an_entry_a_second_version() {
        assert_eq!(messages(&SYN), Vec::<String>::new());
        let three = [SYN[0], SYN[1], ("syn", "1.0.0", "MIT", INDEX)];
        assert!(messages(&three)[0].starts_with("syn has the versions 2.0.1 and 3.0.0 and 1.0.0"));
        assert!(messages(&SYN[..1])[0].contains("skips `syn@2`, which is no duplicate"));
    }
}
