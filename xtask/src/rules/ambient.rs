//! Libraries have no ambient world: clock, waiting and threads come in through `base::env`.

use super::Violation;
use crate::paths;
use crate::repository::Repository;
use crate::source::Source;

pub const NAME: &str = "ambient";

/// The crates that run under a virtual clock too.
const LIBRARIES: [&str; 7] = [
    "crates/base/",
    "crates/media/",
    "crates/tree/",
    "crates/table/",
    "crates/values/",
    "crates/shingle/",
    "crates/workloads/",
];

/// Where the real world comes in: the waiting of events, the production runtime, and, for runs on
/// real devices, the wall clock of the lab and its two kinds of workload, which start client
/// threads as the users of a store do; and its advisor, which spreads simulations without a clock
/// over the cores.
const ALLOWED: [&str; 7] = [
    "crates/base/src/env.rs",
    "crates/shingle/src/runtime.rs",
    "crates/shingle/src/runtime/pool.rs",
    "crates/workloads/src/clock.rs",
    "crates/workloads/src/dbbench/mod.rs",
    "crates/workloads/src/trace/advise.rs",
    "crates/workloads/src/ycsb/mod.rs",
];

const BANNED: [(&[&str], &str); 10] = [
    (&["Instant", "::", "now"], "ask the runtime: `Runtime::now_ns`"),
    (&["SystemTime"], "take the time as an argument; no stored decision depends on the wall clock"),
    (&["thread", "::", "sleep"], "wait on an event: `Runtime::wait` with a deadline"),
    (&["thread", "::", "park"], "wait on an event: `Runtime::wait`"),
    (&["thread", "::", "park_timeout"], "wait on an event: `Runtime::wait` with a deadline"),
    (&["thread", "::", "spawn"], "make it a step of a `Worker` that the runtime starts"),
    (&["thread", "::", "scope"], "make it a step of a `Worker` that the runtime starts"),
    (&["thread", "::", "Builder"], "make it a step of a `Worker` that the runtime starts"),
    (&["spin_loop"], "wait on an event: `Runtime::wait`"),
    (&["yield_now"], "wait on an event: `Runtime::wait`"),
];

pub fn check(repository: &Repository) -> Vec<Violation> {
    let sources = repository.sources.values();
    let is_checked = |source: &&Source| {
        LIBRARIES.iter().any(|folder| source.path.starts_with(folder))
            && !ALLOWED.contains(&source.path.as_str())
    };
    sources.filter(is_checked).flat_map(check_source).collect()
}

fn check_source(source: &Source) -> Vec<Violation> {
    let mut found = Vec::new();
    for (words, instead) in BANNED {
        let mut say = |line: usize| {
            let message = format!("`{}` in a library: {instead}", words.concat());
            found.push(Violation::new(NAME, &source.path, line, message));
        };
        for at in source.find(words) {
            say(source.tokens[at].line);
        }
        if let [parent, _, name] = words {
            let imports = imported(source, parent, name);
            imports.into_iter().for_each(&mut say);
        }
    }
    found
}

/// Lines that import `parent::name` inside a group, where the two do not stand side by side.
fn imported(source: &Source, parent: &str, name: &str) -> Vec<usize> {
    let mut lines = Vec::new();
    for at in source.find(&["use"]) {
        for path in paths::expand(&source.tokens, at + 1) {
            let inside = path.parts.windows(2).any(|pair| pair == [parent, name]);
            let end = path.parts.len();
            let is_plain = (at..at + 2 * end + 1).any(|i| source.spells(i, &[parent, "::", name]));
            if inside && !is_plain {
                lines.push(path.line);
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Repository::of(&[(path, text)])).iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn clocks_sleeps_and_threads_are_found() {
        let text = "fn f() { let a = std::time::Instant::now(); }\nuse std::time::SystemTime;\n\
                    fn g() { std::thread::sleep(d); }\nuse std::thread::{spawn};\n\
                    fn h() { std::hint::spin_loop(); }\nuse std::thread::yield_now;";
        assert_eq!(lines("crates/tree/src/lib.rs", text), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn the_runtime_applications_and_tests_are_free() {
        let text = "fn f() { std::thread::spawn(g); }";
        assert!(lines("crates/shingle/src/runtime.rs", text).is_empty());
        assert!(lines("crates/shingle-cli/src/main.rs", text).is_empty());
        let test = format!("#[cfg(test)]\nmod tests {{ {text} }}");
        assert!(lines("crates/shingle/src/lib.rs", &test).is_empty());
    }
}
