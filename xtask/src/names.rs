//! What the paths of a crate name: its modules with their items, imports and re-exports.
//!
//! Modules are told apart by their names from the crate root down. A module written between braces
//! has a scope of its own, and the file of the module around it. Tests are left out.

use crate::modules::Module;
use crate::repository::Repository;
use crate::source::Source;
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};

/// An import that follows this many others leads nowhere.
const IMPORTS_MAX: usize = 16;

/// A path, part by part.
pub type Parts = Vec<String>;

/// The scopes of a crate, by the names of their modules.
#[derive(Default)]
pub struct Names {
    scopes: BTreeMap<Parts, Scope>,
}

/// What a module knows by name.
#[derive(Default)]
struct Scope {
    file: String,
    items: BTreeSet<String>,
    imports: BTreeMap<String, Parts>,
    globs: Vec<Parts>,
}

/// What a path means.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Meaning {
    /// A module.
    Module(Parts),
    /// An item of a module, and what follows it in the path, such as a method.
    Item {
        /// The module that defines it.
        module: Parts,
        /// Its name.
        name: String,
        /// The rest of the path.
        rest: Parts,
    },
}

impl Names {
    /// The names that the production code of `modules` defines.
    pub fn of(repository: &Repository, modules: &[Module]) -> Names {
        let mut names = Names::default();
        for module in modules.iter().filter(|module| !module.is_test) {
            let source = &repository.sources[&module.path];
            let Some(file) = &source.file else { continue };
            let mut collector = Collector { source, here: module.names.clone(), names: &mut names };
            collector.enter();
            collector.visit_file(file);
        }
        names
    }

    /// The file of a module.
    pub fn file(&self, module: &[String]) -> Option<&str> {
        self.scopes.get(module).map(|scope| scope.file.as_str())
    }

    /// What `path` means in the module `here`; `None` if it leads out of the crate.
    pub fn resolve(&self, here: &[String], path: &[String]) -> Option<Meaning> {
        self.follow(here, path, 0)
    }

    /// The module and the name of the item that `path` means.
    pub fn full_name(&self, here: &[String], path: &[String]) -> Option<Parts> {
        match self.resolve(here, path)? {
            Meaning::Item { module, name, .. } => Some([module, vec![name]].concat()),
            Meaning::Module(_) => None,
        }
    }

    fn follow(&self, here: &[String], path: &[String], depth: usize) -> Option<Meaning> {
        let ups = path.iter().take_while(|part| *part == "super").count();
        match path.first()?.as_str() {
            _ if depth > IMPORTS_MAX => None,
            "crate" => self.walk(&[], &path[1..], depth),
            "self" => self.walk(here, &path[1..], depth),
            "super" => self.walk(&here[..here.len().checked_sub(ups)?], &path[ups..], depth),
            _ => self.walk(here, path, depth),
        }
    }

    fn walk(&self, module: &[String], path: &[String], depth: usize) -> Option<Meaning> {
        let Some((first, rest)) = path.split_first() else {
            return Some(Meaning::Module(module.to_vec()));
        };
        let child = [module, std::slice::from_ref(first)].concat();
        if self.scopes.contains_key(&child) {
            return self.walk(&child, rest, depth);
        }
        let scope = self.scopes.get(module)?;
        if scope.items.contains(first) {
            let (name, rest) = (first.clone(), rest.to_vec());
            return Some(Meaning::Item { module: module.to_vec(), name, rest });
        }
        if let Some(import) = scope.imports.get(first) {
            return self.follow(module, &[import, rest].concat(), depth + 1);
        }
        scope.globs.iter().find_map(|glob| match self.follow(module, glob, depth + 1)? {
            Meaning::Module(other) if other != module => self.walk(&other, path, depth + 1),
            _ => None,
        })
    }
}

struct Collector<'a> {
    source: &'a Source,
    here: Parts,
    names: &'a mut Names,
}

impl Collector<'_> {
    /// Begins a scope, which stays even if it is empty.
    fn enter(&mut self) -> &mut Scope {
        let scope = self.names.scopes.entry(self.here.clone()).or_default();
        scope.file.clone_from(&self.source.path);
        scope
    }
}

impl<'ast> Visit<'ast> for Collector<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if let Some(name) = item_name(item).filter(|name| !self.source.is_test(line(name.span()))) {
            self.enter().items.insert(name.to_string());
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if module.content.is_some() && !self.source.is_test(line(module.ident.span())) {
            self.here.push(module.ident.to_string());
            self.enter();
            visit::visit_item_mod(self, module);
            self.here.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if self.source.is_test(line(item.use_token.span)) {
            return;
        }
        let scope = self.enter();
        for import in imports(&item.tree) {
            match import.name {
                Some(name) => drop(scope.imports.insert(name, import.path)),
                None => scope.globs.push(import.path),
            }
        }
    }
}

/// The line where something begins.
pub fn line(span: proc_macro2::Span) -> usize {
    span.start().line
}

/// The name that an item declares.
pub fn item_name(item: &syn::Item) -> Option<&syn::Ident> {
    match item {
        syn::Item::Const(item) => Some(&item.ident),
        syn::Item::Enum(item) => Some(&item.ident),
        syn::Item::Fn(item) => Some(&item.sig.ident),
        syn::Item::Macro(item) => item.ident.as_ref(),
        syn::Item::Static(item) => Some(&item.ident),
        syn::Item::Struct(item) => Some(&item.ident),
        syn::Item::Trait(item) => Some(&item.ident),
        syn::Item::Type(item) => Some(&item.ident),
        syn::Item::Union(item) => Some(&item.ident),
        _ => None,
    }
}

/// One path of a `use`.
pub struct Import {
    /// The path, without the star of a glob and without a `self` at its end.
    pub path: Parts,
    /// The name by which it is known; `None` for a glob.
    pub name: Option<String>,
}

/// The paths of a `use`, written out.
pub fn imports(tree: &syn::UseTree) -> Vec<Import> {
    let mut found = Vec::new();
    write_out(tree, Vec::new(), &mut found);
    found
}

fn write_out(tree: &syn::UseTree, mut path: Parts, found: &mut Vec<Import>) {
    let (last, name) = match tree {
        syn::UseTree::Path(part) => {
            path.push(part.ident.to_string());
            return write_out(&part.tree, path, found);
        }
        syn::UseTree::Group(group) => {
            return group.items.iter().for_each(|tree| write_out(tree, path.clone(), found));
        }
        syn::UseTree::Glob(_) => return found.push(Import { path, name: None }),
        syn::UseTree::Name(name) => (name.ident.to_string(), None),
        syn::UseTree::Rename(name) => (name.ident.to_string(), Some(name.rename.to_string())),
    };
    if last != "self" {
        path.push(last);
    }
    let name = name.or_else(|| path.last().cloned());
    found.push(Import { path, name });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules;

    /// What `path` means in `here`, as file and name.
    fn meaning(here: &str, path: &str) -> Option<String> {
        let repository = Repository::of(&[
            ("crates/x/Cargo.toml", "[package]\nname = \"x\""),
            (
                "crates/x/src/lib.rs",
                "mod a;\nmod b;\npub use b::{Item as Thing, c};\nmacro_rules! m {}",
            ),
            (
                "crates/x/src/a.rs",
                "use crate::b::*;\nuse super::c::{self, Deep};\nfn a() {}\nuse std::fmt;",
            ),
            (
                "crates/x/src/b/mod.rs",
                "pub mod c;\npub struct Item;\nmod inner { pub fn f() {} }\n\
                                   #[cfg(test)]\nmod tests { fn t() {} }",
            ),
            (
                "crates/x/src/b/c.rs",
                "pub enum Deep { One }\nuse super::super::a;\nuse crate::c::gone as gone;",
            ),
        ]);
        let modules = modules::reach(&repository.sources, "crates/x/src/lib.rs");
        let names = Names::of(&repository, &modules);
        let parts = |text: &str| -> Parts { text.split("::").map(str::to_string).collect() };
        let here = if here.is_empty() { Vec::new() } else { parts(here) };
        Some(match names.resolve(&here, &parts(path))? {
            Meaning::Module(module) => format!("mod {}", module.join("::")),
            Meaning::Item { module, name, rest } => {
                let file = names.file(&module).unwrap_or_default();
                format!("{} {name} {}", &file["crates/x/src/".len()..], rest.join("::"))
            }
        })
    }

    #[test]
    fn paths_are_followed_through_imports_and_re_exports() {
        let is = |here: &str, path: &str, expected: &str| {
            assert_eq!(meaning(here, path).as_deref(), Some(expected), "{path} in {here}");
        };
        is("a", "crate::Thing::new", "b/mod.rs Item new");
        is("a", "Item", "b/mod.rs Item ");
        is("a", "Deep::One", "b/c.rs Deep One");
        is("a", "c::Deep", "b/c.rs Deep ");
        is("b::c", "a::a", "a.rs a ");
        is("b", "inner::f", "b/mod.rs f ");
        is("b::inner", "super::Item", "b/mod.rs Item ");
        is("b::c", "super", "mod b");
        is("", "m", "lib.rs m ");
    }

    #[test]
    fn what_is_elsewhere_or_nowhere_has_no_meaning() {
        for (here, path) in
            [("a", "fmt::Write"), ("a", "Vec"), ("b", "tests::t"), ("b::c", "gone"), ("", "super")]
        {
            assert_eq!(meaning(here, path), None, "{path} in {here}");
        }
    }
}
