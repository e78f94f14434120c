//! Files are touched in few places: everything else goes through the file store.

use super::Violation;
use crate::paths;
use crate::repository::Repository;
use crate::source::Source;

pub const NAME: &str = "file-access";

/// Where files may be touched. Tests, examples and benchmarks are free anyway.
const ALLOWED: [&str; 10] = [
    "crates/foreign/", // files of other programs
    "crates/media/src/os.rs",
    "crates/media/src/os/",
    "crates/shingle-cli/",
    "crates/shingle-leveldb/", // removes and renames whole databases
    "crates/workloads/",
    "python/",
    "xtask/",
    "peers/",
    "fuzz/",
];

/// Modules that reach files.
const MODULES: [&[&str]; 4] =
    [&["std", "fs"], &["rustix", "fs"], &["std", "os", "unix", "fs"], &["std", "os", "fd"]];

/// Methods of paths that reach files.
const METHODS: [&str; 5] =
    ["canonicalize", "read_dir", "read_link", "symlink_metadata", "try_exists"];

/// Types that reach files, by whatever path they came.
const TYPES: [&str; 1] = ["OpenOptions"];

pub fn check(repository: &Repository) -> Vec<Violation> {
    let sources = repository.sources.values();
    let checked = sources.filter(|s| !ALLOWED.iter().any(|prefix| s.path.starts_with(prefix)));
    checked.flat_map(check_source).collect()
}

fn check_source(source: &Source) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut say = |line: usize, what: &str| {
        let message = format!(
            "`{what}` outside the stores: use `media::FileStore`, or move it to crates/media/src/os"
        );
        let violation = Violation::new(NAME, &source.path, line, message);
        if !found.contains(&violation) {
            found.push(violation);
        }
    };
    for crate_name in ["std", "rustix", "core"] {
        let starts = source.find(std::slice::from_ref(&crate_name)).collect::<Vec<_>>();
        for at in starts.into_iter().filter(|&at| paths::begins_path(&source.tokens, at)) {
            for path in paths::expand(&source.tokens, at) {
                if let Some(module) = MODULES.iter().find(|module| path.starts_with(module)) {
                    say(path.line, &module.join("::"));
                }
            }
        }
    }
    for name in TYPES {
        source.find(&[name]).for_each(|at| say(source.tokens[at].line, name));
    }
    for name in METHODS {
        let call = [".", name, "("];
        source.find(&call).for_each(|at| say(source.tokens[at].line, name));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Repository::of(&[(path, text)])).iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn every_door_to_files_is_found() {
        let text = "use std::{\n    fs::File, io};\nfn f() { std::fs::read(x); }\nuse rustix::fs;\n\
                    fn g(p: &Path) { p.canonicalize(); }\nuse std::os::unix::fs::FileExt;";
        assert_eq!(lines("crates/table/src/lib.rs", text), [2, 3, 6, 4, 5]);
    }

    #[test]
    fn stores_tests_and_mentions_are_free() {
        let text = "use std::fs;";
        assert!(lines("crates/media/src/os/mod.rs", text).is_empty());
        assert!(lines("crates/table/tests/it.rs", text).is_empty());
        let mention = "// std::fs\nchange.file(\"std::fs\");";
        assert!(lines("crates/table/src/lib.rs", mention).is_empty());
    }
}
