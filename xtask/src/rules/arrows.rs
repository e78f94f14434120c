//! Dependencies between our crates go only along the arrows of `layers.toml`.
//!
//! `[order]` lists the crates lowest first, `[arrows]` what each may depend on, which is always
//! lower, and `[dev-arrows]` what its tests may use besides what lies below it and `media`.

use super::Violation;
use crate::package::Package;
use crate::repository::Repository;
use std::collections::{BTreeMap, BTreeSet};

pub const NAME: &str = "arrows";
const LAYERS: &str = "layers.toml";

/// Every crate's tests may write to a file store.
const DEV_EVERYWHERE: &str = "media";

type Arrows = BTreeMap<String, Vec<String>>;

pub fn check(repository: &Repository) -> Vec<Violation> {
    let Some(layers) = repository.toml(LAYERS) else { return Vec::new() };
    let order = names(layers.get("order").and_then(|order| order.get("crates")));
    let arrows = arrows_of(&layers, "arrows");
    let dev_arrows = arrows_of(&layers, "dev-arrows");
    let mut found = check_layers(repository, &order, &arrows);
    for package in repository.members() {
        let Some(allowed) = arrows.get(package.name()) else { continue };
        for dependency in dependencies(repository, package) {
            let below = below(&arrows, package.name());
            let is_allowed = allowed.contains(&dependency.name)
                || dependency.is_dev
                    && (below.contains(&dependency.name)
                        || dependency.name == DEV_EVERYWHERE
                        || dependency.name == package.name()
                        || dev_arrows
                            .get(package.name())
                            .is_some_and(|names| names.contains(&dependency.name)));
            if !is_allowed {
                found.push(forbidden(repository, package, &dependency));
            }
        }
    }
    found
}

fn forbidden(repository: &Repository, package: &Package, to: &Dependency) -> Violation {
    let path = package.manifest_path();
    let line = repository.line_of(&path, &to.key);
    let from = package.name();
    let message = format!(
        "`{from}` must not depend on `{}`: no such arrow in {LAYERS}. Move what both need to a \
         lower crate, or pass it in through a trait; a new arrow is a decision record",
        to.name
    );
    Violation::new(NAME, &path, line, message)
}

/// The table itself: every member has a line, every line a member, every arrow goes down.
fn check_layers(repository: &Repository, order: &[String], arrows: &Arrows) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut say = |name: &str, message: String| {
        found.push(Violation::new(NAME, LAYERS, repository.line_of(LAYERS, name), message));
    };
    let members: BTreeSet<&str> = repository.members().map(Package::name).collect();
    for member in &members {
        if !arrows.contains_key(*member) {
            say(member, format!("crate `{member}` has no line in [arrows]: list what it may use"));
        }
    }
    for (from, targets) in arrows {
        if !members.contains(from.as_str()) {
            say(from, format!("there is no crate `{from}`: remove its line"));
        }
        let rank = |name: &String| order.iter().position(|other| other == name);
        if rank(from).is_none() {
            say(from, format!("crate `{from}` has no place in [order]"));
        }
        for to in targets {
            if rank(to).is_none() || rank(to) >= rank(from) {
                say(from, format!("the arrow `{from}` to `{to}` does not go down in [order]"));
            }
        }
    }
    found
}

/// A dependency on a package of the workspace.
pub(super) struct Dependency {
    /// The name in the manifest.
    pub key: String,
    /// What the project calls the package.
    pub name: String,
    /// For tests and examples only.
    pub is_dev: bool,
    /// What the manifest says about it.
    pub value: toml::Value,
}

/// The dependencies of a package on packages of the workspace.
pub(super) fn dependencies(repository: &Repository, package: &Package) -> Vec<Dependency> {
    let manifest = &package.manifest;
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    let tables = targets.into_iter().flatten().filter_map(|(_, table)| table.as_table());
    let mut found = Vec::new();
    for table in tables.chain([manifest]) {
        for kind in ["dependencies", "build-dependencies", "dev-dependencies"] {
            let entries = table.get(kind).and_then(toml::Value::as_table);
            for (key, value) in entries.into_iter().flatten() {
                let cargo_name = cargo_name(repository, key, value);
                let ours = repository.members().find(|other| other.cargo_name() == cargo_name);
                if let Some(ours) = ours {
                    let name = ours.name().to_string();
                    let is_dev = kind == "dev-dependencies";
                    let (key, value) = (key.clone(), value.clone());
                    found.push(Dependency { key, name, is_dev, value });
                }
            }
        }
    }
    found
}

/// The package that a dependency means: its `package`, here or in the workspace, or its key.
fn cargo_name(repository: &Repository, key: &str, value: &toml::Value) -> String {
    let package = |value: &toml::Value| Some(value.get("package")?.as_str()?.to_string());
    let inherited = || {
        let root = repository.toml("Cargo.toml")?;
        package(root.get("workspace")?.get("dependencies")?.get(key)?)
    };
    package(value).or_else(inherited).unwrap_or_else(|| key.to_string())
}

/// Everything that `name` reaches along arrows.
fn below(arrows: &Arrows, name: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut next = vec![name.to_string()];
    while let Some(from) = next.pop() {
        for to in arrows.get(&from).into_iter().flatten() {
            if reached.insert(to.clone()) {
                next.push(to.clone());
            }
        }
    }
    reached
}

fn arrows_of(layers: &toml::Table, key: &str) -> Arrows {
    let table = layers.get(key).and_then(toml::Value::as_table);
    table.into_iter().flatten().map(|(from, to)| (from.clone(), names(Some(to)))).collect()
}

fn names(value: Option<&toml::Value>) -> Vec<String> {
    let array = value.and_then(toml::Value::as_array);
    array.into_iter().flatten().filter_map(|name| Some(name.as_str()?.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "[workspace.dependencies]\nbase = { package = \"shingle-base\" }\n\
                        media = { package = \"shingle-media\" }\ntree = { package = \"t\" }";
    const LAYERS_OK: &str = "[order]\ncrates = [\"base\", \"media\", \"tree\"]\n[arrows]\n\
                             base = []\nmedia = [\"base\"]\ntree = [\"base\"]";

    fn messages(layers: &str, tree: &str) -> Vec<String> {
        let repository = Repository::of(&[
            ("Cargo.toml", ROOT),
            (LAYERS, layers),
            ("crates/base/Cargo.toml", "[package]\nname = \"shingle-base\""),
            ("crates/media/Cargo.toml", "[package]\nname = \"shingle-media\""),
            ("crates/tree/Cargo.toml", &format!("[package]\nname = \"t\"\n{tree}")),
        ]);
        check(&repository).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_arrow_that_is_not_listed_is_found_with_its_line() {
        let found = messages(LAYERS_OK, "[dependencies]\nmedia.workspace = true");
        assert!(found[0].starts_with("crates/tree/Cargo.toml:4: "), "{found:?}");
        assert!(found[0].contains("`tree` must not depend on `media`"));
        let target = "[target.'cfg(unix)'.dependencies]\nmedia = { workspace = true }";
        let found = messages(LAYERS_OK, target);
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn listed_arrows_and_test_stores_are_allowed() {
        let manifest =
            "[dependencies]\nbase.workspace = true\n[dev-dependencies]\nmedia.workspace = true";
        assert_eq!(messages(LAYERS_OK, manifest), Vec::<String>::new());
    }

    #[test]
    fn an_arrow_upwards_a_missing_and_a_superfluous_line_are_found() {
        let layers = "[order]\ncrates = [\"base\", \"media\", \"old\"]\n[arrows]\n\
                      base = [\"media\"]\nmedia = []\nold = []";
        let found = messages(layers, "").join("\n");
        assert!(found.contains("`base` to `media` does not go down"));
        assert!(found.contains("crate `tree` has no line"));
        assert!(found.contains("there is no crate `old`"));
    }
}
