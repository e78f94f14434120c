//! What the crate `shingle` exports: a listing of every public item with its signature.
//!
//! The listing is checked in ([`FILE`]), so that a change of the interface is a change that a
//! reviewer sees. `cargo xtask interface` writes it, and the rule `interface` compares. It is made
//! from the syntax alone: names are followed from `crates/shingle/src/lib.rs` through re-exports to
//! the crate that defines them. Code under `cfg(test)` and `cfg(feature)` is left out, because the
//! features are for tests.

mod compare;
mod declared;
mod found;
mod signature;

pub use compare::since;
pub use found::{Exported, exported};

use std::collections::BTreeSet;

/// The listing.
pub const FILE: &str = "crates/shingle/interface.txt";

/// For experiments, and for programs that bring their own files, clock or threads: the names are
/// stable, and what is in them is not.
pub const UNSTABLE: [&str; 7] = [
    "Expert",
    "FileStore",
    "Ledger",
    "OsStore",
    "Runtime",
    "options::SchemeParameters",
    "options::ValueParameters",
];

const HEAD: &str = "\
What the crate `shingle` exports. `cargo xtask interface` writes this page, and `cargo xtask tidy`
compares it with the code. A line that changes or goes is a breaking change; a new line is not
(docs/manual/stability.md).
";

/// The listing of `items`.
pub fn listing(items: &[Exported]) -> String {
    let mut text = HEAD.to_string();
    for item in items {
        let is_unstable = UNSTABLE.contains(&item.path.as_str());
        let (note, lines) = match is_unstable {
            true => (" (its parts are not covered by semantic versioning)", &[][..]),
            false => ("", &item.lines[..]),
        };
        text.push_str(&format!("\n{}{note}\n", item.head()));
        for line in lines {
            text.push_str(&format!("    {line}\n"));
        }
    }
    text
}

/// Every name that the interface has: types and functions, and `Type::part` for methods, fields and
/// variants.
pub fn names(items: &[Exported]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for item in items {
        names.insert(item.path.clone());
        names.extend(item.parts().map(|part| format!("{}::{part}", item.path)));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::Repository;

    const FILES: [(&str, &str); 4] = [
        ("crates/shingle/Cargo.toml", "[package]\nname = \"shingle\""),
        (
            "crates/shingle/src/lib.rs",
            "mod db;\npub use db::{Db, open as begin};\npub use base::{Kind, Made};\n\
             #[cfg(feature = \"testing\")]\npub mod doors;\n\
             pub mod names { pub const ONE: u8 = 1; }",
        ),
        (
            "crates/shingle/src/db.rs",
            "/// A database.\n#[derive(Clone, Debug)]\n\
             pub struct Db { secret: u8, pub open: bool }\nimpl Db {\n    /// Reads.\n\
             \x20   pub fn get<K: AsRef<[u8]>>(\n        &self,\n\
             \x20       key: K,\n    ) -> Option<Vec<u8>> { None }\n    fn own(&self) {}\n\
             \x20   #[cfg(feature = \"testing\")]\n    pub fn door(&self) {}\n}\n\
             impl Drop for Db { fn drop(&mut self) {} }\nimpl Iterator for Db {\n\
             \x20   type Item = u8;\n    fn next(&mut self) -> Option<u8> { None }\n}\n\
             pub fn open(path: &str) -> Db { todo() }\nstruct Other;",
        ),
        ("crates/base/src/lib.rs", "mod kind;\npub use kind::Kind;\nmade! { pub Made }"),
    ];
    const KIND: &str = "#[non_exhaustive]\npub enum Kind {\n    /// One.\n    One,\n\
                        \x20   Two {\n        /// Its size.\n        size: u8,\n    },\n\
                        \x20   Three(u8, u16),\n}\n\
                        impl Kind { pub fn name(self) -> &'static str { \"\" } }";

    fn repository() -> Repository {
        let base = ("crates/base/Cargo.toml", "[package]\nname = \"shingle-base\"");
        let files = [&FILES[..], &[base, ("crates/base/src/kind.rs", KIND)]].concat();
        Repository::of(&files)
    }

    #[test]
    fn the_listing_has_what_programs_can_use_and_nothing_else() {
        let text = listing(&exported(&repository()));
        let lines: Vec<&str> = text.lines().skip(HEAD.lines().count() + 1).collect();
        assert_eq!(
            lines,
            [
                "struct Db",
                "    pub open: bool",
                "    private fields",
                "    fn get<K: AsRef<[u8]>>(&self, key: K) -> Option<Vec<u8>>",
                "    impl Clone",
                "    impl Debug",
                "    impl Iterator",
                "    type Item = u8",
                "",
                "#[non_exhaustive] enum Kind, of shingle-base",
                "    One",
                "    Two { size: u8 }",
                "    Three(u8, u16)",
                "    fn name(self) -> &'static str",
                "",
                "(made by a macro) Made, of shingle-base",
                "",
                "fn begin(path: &str) -> Db",
                "",
                "const names::ONE: u8",
            ]
        );
    }

    #[test]
    fn names_have_methods_fields_and_variants() {
        let names: Vec<String> = names(&exported(&repository())).into_iter().collect();
        assert_eq!(
            names,
            [
                "Db",
                "Db::get",
                "Db::open",
                "Kind",
                "Kind::One",
                "Kind::Three",
                "Kind::Two",
                "Kind::name",
                "Made",
                "begin",
                "names::ONE"
            ]
        );
    }
}
