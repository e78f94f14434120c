//! Which files of a crate use which others, and by what names.
//!
//! A file uses another if a path of its code or of its imports names an item defined there, or if
//! it calls a method whose `impl` block stands there. Re-exports are no use: what they give on is
//! the file that defines it.

use crate::methods::Methods;
use crate::modules::{self, Module};
use crate::names::{Meaning, Names, Parts};
use crate::repository::Repository;
use crate::uses::{self, Use, What};
use std::collections::{BTreeMap, BTreeSet};

/// From one to another, and the names that lead there, each with its first line.
pub type Edges = BTreeMap<String, BTreeMap<String, BTreeMap<String, usize>>>;

/// What uses what in a crate.
#[derive(Default)]
pub struct Graph {
    /// Between files.
    pub files: Edges,
    /// Between top-level modules, and the file of each line.
    pub modules: BTreeMap<String, BTreeMap<String, (String, usize)>>,
}

/// Files that all reach each other.
#[derive(Debug, PartialEq, Eq)]
pub struct Component {
    /// In order.
    pub files: Vec<String>,
    /// A shortest way from one of them back to itself.
    pub cycle: Vec<String>,
}

impl Graph {
    /// The graph of the crate with this root.
    pub fn of(repository: &Repository, root: &str) -> Graph {
        let modules = modules::reach(&repository.sources, root);
        let names = Names::of(repository, &modules);
        let methods = Methods::of(repository, &modules, &names);
        let mut graph = Graph::default();
        let production = modules.iter().filter(|module| !module.is_test);
        let uses = production.flat_map(|module| {
            let uses = uses::of(&repository.sources[&module.path], module, &names);
            uses.into_iter().map(move |found| (module, found))
        });
        let uses: Vec<(&Module, Use)> = uses.collect();
        for (module, found) in &uses {
            graph.add_path(module, &names, &methods, found);
            graph.add_module(module, &names, found);
        }
        graph.add_methods(&names, &methods, &uses);
        graph
    }

    fn add(&mut self, from: &str, to: Option<&str>, name: String, line: usize) {
        if let Some(to) = to.filter(|to| *to != from) {
            let edges = self.files.entry(from.to_string()).or_default();
            edges.entry(to.to_string()).or_default().entry(name).or_insert(line);
        }
    }

    fn add_path(&mut self, from: &Module, names: &Names, methods: &Methods, found: &Use) {
        let from = from.path.as_str();
        let (What::Import { path, is_public: false } | What::Path(path)) = &found.what else {
            return;
        };
        match names.resolve(&found.here, path) {
            Some(Meaning::Item { module, name, rest }) => {
                if let Some(method) = rest.first() {
                    let ty = [&module[..], std::slice::from_ref(&name)].concat();
                    let file = methods.of_type(&ty, method);
                    self.add(from, file, format!("{name}::{method}()"), found.line);
                }
                self.add(from, names.file(&module), name, found.line);
            }
            Some(Meaning::Module(_)) => {}
            None => {
                if let Some(module) = around(names, &found.here, path) {
                    self.add(from, names.file(&module), path.join("::"), found.line);
                }
            }
        }
    }

    /// Adds what methods lead to. A type that only the method's name tells must be one that the
    /// paths of the file lead to, or it could not have a value of it.
    fn add_methods(&mut self, names: &Names, methods: &Methods, uses: &[(&Module, Use)]) {
        let files: Vec<String> = self.files.keys().cloned().collect();
        let reach: BTreeMap<String, BTreeSet<String>> = files
            .into_iter()
            .map(|file| (file.clone(), self.reach(&file).iter().map(ToString::to_string).collect()))
            .collect();
        for (from, found) in uses {
            let What::Method(name, receiver) = &found.what else { continue };
            let called = methods.called(names, &found.here, (name, receiver));
            let Some(called) = called else { continue };
            let guessed = called.guessed.and_then(|ty| names.file(&ty[..ty.len() - 1]));
            let is_known = guessed.is_none_or(|file| {
                file == from.path || reach.get(&from.path).is_some_and(|set| set.contains(file))
            });
            if is_known {
                self.add(&from.path, Some(called.file), format!(".{name}()"), found.line);
            }
        }
    }

    /// The arrow between top-level modules; the root of a crate is none.
    fn add_module(&mut self, from: &Module, names: &Names, found: &Use) {
        let (What::Import { path, .. } | What::Path(path)) = &found.what else { return };
        let meaning = names.resolve(&found.here, path);
        let module = match meaning {
            Some(Meaning::Item { module, .. } | Meaning::Module(module)) => Some(module),
            None => around(names, &found.here, path),
        };
        let (from_name, to) =
            (from.names.first(), module.as_ref().and_then(|module| module.first()));
        if let (Some(name), Some(to)) = (from_name, to)
            && name != to
        {
            let arrows = self.modules.entry(name.clone()).or_default();
            arrows.entry(to.clone()).or_insert((from.path.clone(), found.line));
        }
    }

    /// Groups of more than two files that all reach each other, the largest first.
    pub fn components(&self) -> Vec<Component> {
        let reach: BTreeMap<&str, BTreeSet<&str>> =
            self.files.keys().map(|file| (file.as_str(), self.reach(file))).collect();
        let reaches = |from: &str, to: &str| reach.get(from).is_some_and(|set| set.contains(to));
        let mut found: Vec<Component> = Vec::new();
        for file in self.files.keys() {
            let members = reach[file.as_str()].iter().filter(|other| reaches(other, file));
            let files: Vec<String> = members.map(|other| other.to_string()).collect();
            if files.len() > 2 && found.iter().all(|other| other.files != files) {
                found.push(Component { cycle: self.shortest_cycle(&files), files });
            }
        }
        found.sort_by_key(|component| std::cmp::Reverse(component.files.len()));
        found
    }

    /// The edges inside a component.
    pub fn edges_in<'a>(
        &'a self,
        component: &'a Component,
    ) -> impl Iterator<Item = (&'a str, &'a str, &'a BTreeMap<String, usize>)> {
        let is_inside = |file: &String| component.files.contains(file);
        self.files.iter().filter(move |(from, _)| is_inside(from)).flat_map(move |(from, to)| {
            let to = to.iter().filter(move |(to, _)| is_inside(to));
            to.map(move |(to, names)| (from.as_str(), to.as_str(), names))
        })
    }

    /// How many files of a component stay in circles when some of its edges are cut.
    pub fn left_without(
        &self,
        component: &Component,
        is_cut: impl Fn(&str, &str) -> bool,
    ) -> usize {
        let mut rest = Graph::default();
        for (from, to, names) in self.edges_in(component).filter(|(from, to, _)| !is_cut(from, to))
        {
            let edges = rest.files.entry(from.to_string()).or_default();
            edges.insert(to.to_string(), names.clone());
        }
        rest.components().iter().map(|component| component.files.len()).sum()
    }

    fn next(&self, file: &str) -> impl Iterator<Item = &str> {
        self.files.get(file).into_iter().flat_map(BTreeMap::keys).map(String::as_str)
    }

    fn reach<'a>(&'a self, from: &'a str) -> BTreeSet<&'a str> {
        let mut reached = BTreeSet::new();
        let mut next = vec![from];
        while let Some(file) = next.pop() {
            next.extend(self.next(file).filter(|other| reached.insert(*other)));
        }
        reached
    }

    fn shortest_cycle(&self, files: &[String]) -> Vec<String> {
        let cycles = files.iter().map(|file| self.way_back(file));
        cycles.min_by_key(Vec::len).unwrap_or_default()
    }

    /// A shortest way from a file of a component to itself, both ends included.
    fn way_back(&self, start: &str) -> Vec<String> {
        let mut ways = vec![vec![start]];
        let mut seen = BTreeSet::new();
        let mut at = 0;
        while let Some(way) = ways.get(at).cloned() {
            at += 1;
            for next in self.next(way[way.len() - 1]) {
                let longer = [&way[..], &[next]].concat();
                if next == start {
                    return longer.iter().map(ToString::to_string).collect();
                }
                if seen.insert(next) {
                    ways.push(longer);
                }
            }
        }
        Vec::new()
    }
}

/// The module that a path into the crate leads to whose end is not known, such as an item that a
/// macro makes.
fn around(names: &Names, here: &[String], path: &[String]) -> Option<Parts> {
    if !["crate", "self", "super"].contains(&path.first()?.as_str()) {
        return None;
    }
    let shorter = (1..path.len()).rev().map(|end| names.resolve(here, &path[..end]));
    shorter.flatten().find_map(|meaning| match meaning {
        Meaning::Module(module) => Some(module),
        Meaning::Item { .. } => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "mod a;\nmod b;\nmod c;\npub use c::Thing;";

    fn graph(a: &str, b: &str, c: &str) -> Graph {
        let repository = Repository::of(&[
            ("x/Cargo.toml", "[package]\nname = \"x\""),
            ("x/src/lib.rs", ROOT),
            ("x/src/a.rs", a),
            ("x/src/b.rs", b),
            ("x/src/c.rs", c),
        ]);
        Graph::of(&repository, "x/src/lib.rs")
    }

    /// Edges as `a -> b: names`.
    fn edges(a: &str, b: &str, c: &str) -> Vec<String> {
        let stem = |path: &str| path["x/src/".len()..].trim_end_matches(".rs").to_string();
        let graph = graph(a, b, c);
        let mut found = Vec::new();
        for (from, to) in &graph.files {
            for (to, names) in to {
                let names: Vec<&str> = names.keys().map(String::as_str).collect();
                found.push(format!("{} -> {}: {}", stem(from), stem(to), names.join(" ")));
            }
        }
        found
    }

    #[test]
    fn paths_lead_to_the_file_that_defines_the_item() {
        let thing = "pub struct Thing;";
        assert_eq!(edges("use crate::Thing;", "", thing), ["a -> c: Thing"]);
        assert_eq!(edges("fn f() { crate::c::Thing; }", "", thing), ["a -> c: Thing"]);
        assert_eq!(edges("use super::c;\nfn f() { c::Thing; }", "", thing), ["a -> c: Thing"]);
        assert_eq!(
            edges("fn f() { vec![m!(crate::c::Thing => 1)] }", "", thing),
            ["a -> c: Thing"]
        );
        assert_eq!(
            edges("pub use crate::c::Thing;", "use crate::a::Thing;", thing),
            ["b -> c: Thing"]
        );
        let test = "#[cfg(test)]\nmod tests { use crate::c::Thing; }";
        assert_eq!(edges(test, "pub(in crate::c) fn f() {}", thing), [""; 0]);
        assert_eq!(edges("use crate::c::made;", "", "make!(made);"), ["a -> c: crate::c::made"]);
    }

    #[test]
    fn a_method_leads_to_its_impl_block() {
        let a = "pub struct Thing { pub parts: Vec<crate::b::Part> }\nimpl Thing {\n\
                 pub fn begin(&self) { self.end(); Self::make(); } }";
        let b = "use crate::a::Thing;\npub struct Part;\n\
                 impl Thing { pub fn end(&self) {} fn make() {} pub fn len(&self) {} }";
        let found = edges(a, b, "");
        assert_eq!(found, ["a -> b: .end() Part Thing::make()", "b -> a: Thing"]);
        let caller = "fn f(x: &T) { x.y(1).end(); x.len(); z().parts.end() }";
        assert_eq!(edges(a, b, caller).len(), 2, "a file that cannot have a `Thing`");
        let caller = format!("use crate::a::Thing as Other;\n{caller}");
        assert_eq!(edges(a, b, &caller)[3], "c -> b: .end()");
        assert_eq!(edges(a, b, "fn f(x: &T) { x.len(); }").len(), 2, "a common name");
        assert_eq!(edges(a, b, "fn f(x: &crate::a::Thing) { x.len(); }")[3], "c -> b: .len()");
        assert_eq!(edges(a, b, "fn f(x: &Other) { x.end(); }").len(), 2, "another type");
        assert_eq!(edges(a, b, "trait T { fn end(&self); }\nfn f() { z().end(); }").len(), 2);
        let in_macro = "use crate::b::Part;\nfn f() { p!(x => y.end()); }";
        assert_eq!(edges(a, b, in_macro)[2], "c -> b: .end() Part");
        let deref = "use crate::a::Thing;\nstruct W;\nimpl Deref for W { type Target = Thing; }\n\
                     impl W { fn f(&self) { self.end() } }";
        assert!(edges(a, b, deref).contains(&"c -> b: .end()".to_string()), "by Deref");
        let private = b.replace("pub fn end", "fn end");
        assert_eq!(edges(a, &private, &caller).len(), 3, "a private method");
    }

    #[test]
    fn files_that_reach_each_other_are_a_component() {
        let use_of = |path: &str| format!("use crate::{path};\npub struct A;\npub struct Thing;");
        let circle = graph(&use_of("b::A"), &use_of("c::A"), &use_of("a::A"));
        let found = circle.components();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].files, ["x/src/a.rs", "x/src/b.rs", "x/src/c.rs"]);
        assert_eq!(found[0].cycle.len(), 4);
        assert_eq!(circle.edges_in(&found[0]).count(), 3);
        assert_eq!(circle.left_without(&found[0], |_, _| false), 3);
        assert_eq!(circle.left_without(&found[0], |from, _| from == "x/src/b.rs"), 0);
        let pair = graph(&use_of("b::A"), &use_of("a::A"), &use_of("a::A"));
        assert_eq!(pair.components(), []);
    }
}
