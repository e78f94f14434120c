//! Every crate can go to the registry: its manifest says what a registry asks for, its readme and
//! its licences are in its folder, and it names exactly the release of ours that it was built with.
//!
//! `cargo publish --dry-run` finds the same and more, but builds everything again.

use super::Violation;
use super::arrows::dependencies;
use crate::package::Package;
use crate::repository::Repository;

pub const NAME: &str = "publishable";
const ROOT: &str = "Cargo.toml";
const TOOLCHAIN: &str = "rust-toolchain.toml";
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// What programs depend on. The others are parts of these, and say so.
const INTERFACES: [&str; 5] =
    ["shingle", "shingle-c", "shingle-leveldb", "shingle-cli", "shingle-metrics"];

/// What the registry takes.
const KEYWORDS_MAX: usize = 5;
const KEYWORD_CHARS_MAX: usize = 20;

pub fn check(repository: &Repository) -> Vec<Violation> {
    let Some(root) = repository.toml(ROOT) else { return Vec::new() };
    let mut found = toolchain(repository, &root);
    for package in repository.members().filter(|package| package.is_published()) {
        found.extend(metadata(repository, &root, package));
        found.extend(versions(repository, &root, package));
    }
    found
}

/// The published packages in the order in which they can be published, by what Cargo calls them.
pub fn order(repository: &Repository) -> Vec<String> {
    let mut left: Vec<&Package> = repository.members().filter(|p| p.is_published()).collect();
    let mut order: Vec<String> = Vec::new();
    while !left.is_empty() {
        let is_ready = |package: &Package| {
            let needed = dependencies(repository, package).into_iter().filter(|d| !d.is_dev);
            let mut names = needed.map(|dependency| dependency.name);
            names.all(|name| left.iter().all(|other| other.name() != name))
        };
        let (ready, rest): (Vec<&Package>, Vec<&Package>) =
            left.iter().copied().partition(|package| is_ready(package));
        if ready.is_empty() {
            break; // A cycle, which Cargo refuses.
        }
        order.extend(ready.iter().map(|package| package.cargo_name().to_string()));
        left = rest;
    }
    order
}

/// A value of `[workspace.package]`.
fn shared<'a>(root: &'a toml::Table, key: &str) -> Option<&'a toml::Value> {
    root.get("workspace")?.get("package")?.get(key)
}

/// A value of `[package]`, inherited or not.
fn value<'a>(root: &'a toml::Table, package: &'a Package, key: &str) -> Option<&'a toml::Value> {
    let value = package.manifest.get("package")?.get(key)?;
    let is_inherited = value.get("workspace").is_some();
    if is_inherited { shared(root, key) } else { Some(value) }
}

/// The oldest compiler that the package states.
pub fn rust_version<'a>(root: &'a toml::Table, package: &'a Package) -> Option<&'a str> {
    value(root, package, "rust-version")?.as_str()
}

fn metadata(repository: &Repository, root: &toml::Table, package: &Package) -> Vec<Violation> {
    let path = package.manifest_path();
    let mut found = Vec::new();
    let mut say = |key: &str, message: String| {
        found.push(Violation::new(NAME, &path, repository.line_of(&path, key), message));
    };
    let text = |key: &str| value(root, package, key).and_then(toml::Value::as_str);
    for key in ["version", "edition", "rust-version", "license", "description"] {
        if text(key).is_none_or(str::is_empty) {
            say("[package]", format!("`{key}` is missing"));
        }
    }
    if text("version") != shared(root, "version").and_then(toml::Value::as_str) {
        say("version", "not the version of the workspace: write `version.workspace = true`".into());
    }
    for key in ["repository", "homepage", "documentation"] {
        let is_placeholder = |url: &str| url.contains(".invalid") || url.contains("example.");
        if text(key).is_some_and(is_placeholder) {
            say(key, format!("`{key}` leads nowhere: leave it out until there is one"));
        }
    }
    let list = |key| value(root, package, key).and_then(toml::Value::as_array);
    let keywords = list("keywords").map_or(&[][..], Vec::as_slice);
    let is_short = |k: &toml::Value| k.as_str().is_some_and(|k| k.len() <= KEYWORD_CHARS_MAX);
    if keywords.is_empty() || keywords.len() > KEYWORDS_MAX || !keywords.iter().all(is_short) {
        let limits = format!("1 to {KEYWORDS_MAX} of at most {KEYWORD_CHARS_MAX} characters");
        say("keywords", format!("the registry takes `keywords`: {limits}"));
    }
    if list("categories").is_none_or(Vec::is_empty) {
        say("categories", "`categories` are missing".into());
    }
    let docs =
        value(root, package, "metadata").and_then(|metadata| metadata.get("docs")?.get("rs"));
    if docs.is_none_or(|docs| docs.get("targets").is_none()) {
        say("[package", "[package.metadata.docs.rs] with `targets` is missing".into());
    }
    // Cargo finds it there. Inherited, it would be that of the workspace.
    let readme = format!("{}/README.md", package.folder);
    for file in LICENCES.map(|name| format!("{}/{name}", package.folder)).iter().chain([&readme]) {
        if !repository.files.contains(file) {
            say("[package]", format!("the package needs the file {file}"));
        }
    }
    if !INTERFACES.contains(&package.cargo_name()) {
        let described =
            text("description").is_some_and(|d| d.contains("without a stable interface"));
        let told = repository.text(&readme).is_some_and(|t| t.contains("no stable interface"));
        if !described || !told {
            let message = "an internal crate says so: description `... without a stable \
                           interface: ...`, readme `no stable interface`";
            say("description", message.into());
        }
    }
    found
}

/// What the package says about the other packages of the workspace.
fn versions(repository: &Repository, root: &toml::Table, package: &Package) -> Vec<Violation> {
    let path = package.manifest_path();
    let version = shared(root, "version").and_then(toml::Value::as_str).unwrap_or_default();
    let exact = format!("={version}");
    let table = root.get("workspace").and_then(|workspace| workspace.get("dependencies"));
    let inherited = |key: &str| table?.get(key)?.get("version")?.as_str();
    let order = order(repository);
    let place = |name: &str| order.iter().position(|other| other == name);
    let mut found = Vec::new();
    for dependency in dependencies(repository, package) {
        let is_inherited = dependency.value.get("workspace").is_some();
        let own = dependency.value.get("version").and_then(toml::Value::as_str);
        let named = if is_inherited { inherited(&dependency.key) } else { own };
        let other = repository.members().find(|other| other.name() == dependency.name);
        let Some(other) = other.map(Package::cargo_name) else { continue };
        let is_above = dependency.is_dev && place(other) >= place(package.cargo_name());
        let message = match named {
            Some(_) if is_above => format!(
                "tests use `{other}`, which is published later: give its path, and no version"
            ),
            None if !is_above => format!("`{other}` needs the version \"{exact}\""),
            Some(named) if named != exact => {
                format!("`{other}` has the version \"{named}\", but this release is \"{exact}\"")
            }
            _ if !dependency.is_dev && place(other).is_none() => {
                format!("`{other}` is not published, so nothing that needs it can be")
            }
            _ => continue,
        };
        let line = repository.line_of(&path, &dependency.key);
        found.push(Violation::new(NAME, &path, line, message));
    }
    found
}

/// The compiler that the workspace is built with is not older than the one it promises to accept.
fn toolchain(repository: &Repository, root: &toml::Table) -> Vec<Violation> {
    let promised = shared(root, "rust-version").and_then(toml::Value::as_str);
    let pinned = repository.toml(TOOLCHAIN);
    let channel = pinned.as_ref().and_then(|file| file.get("toolchain")?.get("channel")?.as_str());
    let (Some(promised), Some(channel)) = (promised, channel) else { return Vec::new() };
    let numbers = |text: &str| -> Vec<u32> {
        text.split('.').filter_map(|number| number.parse().ok()).collect()
    };
    if numbers(promised) <= numbers(channel) {
        return Vec::new();
    }
    let message = format!("`rust-version` {promised} is newer than the toolchain {channel}");
    let line = repository.line_of(ROOT, "rust-version");
    vec![Violation::new(NAME, ROOT, line, message)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKSPACE: &str = "[workspace.package]\nversion = \"0.2.0\"\nedition = \"2024\"\n\
        rust-version = \"1.89\"\nlicense = \"MIT\"\nkeywords = [\"db\"]\n\
        categories = [\"database-implementations\"]\n[workspace.dependencies]\n\
        base = { package = \"shingle-base\", path = \"crates/base\", version = \"=0.2.0\" }";
    const INHERITED: &str = "version.workspace = true\nedition.workspace = true\n\
        rust-version.workspace = true\nlicense.workspace = true\n\
        keywords.workspace = true\ncategories.workspace = true\n";
    const DOCS: &str = "[package.metadata.docs.rs]\ntargets = [\"x\"]\n";

    /// `base`, an internal crate, and `shingle`, which depends on it.
    fn messages(workspace: &str, base: &str, shingle: &str) -> Vec<String> {
        let head = |name: &str| format!("[package]\nname = \"{name}\"\n{INHERITED}");
        let base = format!("{}{base}\n{DOCS}", head("shingle-base"));
        let shingle = format!("{}description = \"A store\"\n{DOCS}{shingle}", head("shingle"));
        let repository = Repository::of(&[
            ("Cargo.toml", workspace),
            ("rust-toolchain.toml", "[toolchain]\nchannel = \"1.95.0\""),
            ("crates/base/Cargo.toml", &base),
            ("crates/base/README.md", "It has no stable interface."),
            ("crates/base/LICENSE-MIT", ""),
            ("crates/base/LICENSE-APACHE", ""),
            ("crates/shingle/Cargo.toml", &shingle),
            ("crates/shingle/README.md", ""),
            ("crates/shingle/LICENSE-MIT", ""),
            ("crates/shingle/LICENSE-APACHE", ""),
        ]);
        let order = order(&repository);
        assert_eq!(order, ["shingle-base", "shingle"]);
        check(&repository).iter().map(ToString::to_string).collect()
    }

    const INTERNAL: &str = "description = \"Keys, without a stable interface: yes\"";
    const NEEDS_BASE: &str = "[dependencies]\nbase.workspace = true";

    #[test]
    fn a_complete_workspace_has_nothing_to_say() {
        assert_eq!(messages(WORKSPACE, INTERNAL, NEEDS_BASE), Vec::<String>::new());
    }

    #[test]
    fn missing_metadata_and_placeholders_are_found() {
        let workspace = WORKSPACE.replace("license = \"MIT\"\n", "");
        let base = "description = \"Keys\"\nrepository = \"https://example.invalid/x\"";
        let found = messages(&workspace, base, NEEDS_BASE).join("\n");
        for part in
            ["`license` is missing", "`repository` leads nowhere", "an internal crate says so"]
        {
            assert!(found.contains(part), "{part}: {found}");
        }
        let keywords = WORKSPACE.replace("[\"db\"]", "[\"a-keyword-that-is-too-long\"]");
        assert!(messages(&keywords, INTERNAL, NEEDS_BASE)[0].contains("at most 20 characters"));
    }

    #[test]
    fn versions_are_those_of_this_release() {
        let old = WORKSPACE.replace("\"=0.2.0\"", "\"=0.1.0\"");
        assert!(messages(&old, INTERNAL, NEEDS_BASE)[0].contains("but this release is \"=0.2.0\""));
        let without = "[dependencies]\nbase = { package = \"shingle-base\", path = \"../base\" }";
        assert!(messages(WORKSPACE, INTERNAL, without)[0].contains("needs the version"));
    }

    #[test]
    fn tests_name_crates_above_by_path_alone() {
        let base = |entry: &str| format!("{INTERNAL}\n[dev-dependencies]\nshingle = {entry}");
        let with = |entry: &str| messages(WORKSPACE, &base(entry), NEEDS_BASE);
        let found = with("{ path = \"../shingle\", version = \"=0.2.0\" }");
        assert!(found[0].contains("published later: give its path"), "{found:?}");
        assert_eq!(with("{ path = \"../shingle\" }"), Vec::<String>::new());
    }

    #[test]
    fn an_older_toolchain_than_promised_is_found() {
        let newer = WORKSPACE.replace("1.89", "1.96");
        assert!(messages(&newer, INTERNAL, NEEDS_BASE)[0].contains("newer than the toolchain"));
    }
}
