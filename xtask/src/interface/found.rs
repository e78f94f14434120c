//! The exported items: from `lib.rs` through re-exports to the declarations and their `impl`s.

use super::declared::{
    PRIVATE, declaration, declared, derived, implemented, is_conditional, is_public, public_parts,
};
use crate::modules::{self, Module};
use crate::names::{Meaning, Names, Parts, imports, item_name};
use crate::package::Package;
use crate::repository::Repository;
use crate::uses::{parts, path_of};
use std::collections::{BTreeMap, BTreeSet};

const FACADE: &str = "shingle";

/// One exported item.
#[derive(Debug)]
pub struct Exported {
    /// Its path behind `shingle::`.
    pub path: String,
    /// The package that defines it.
    pub package: String,
    /// What it is: `struct`, `fn`, ..., with attributes that matter to a user.
    kind: String,
    /// What follows its name: parameters of a function, bounds of a trait.
    rest: String,
    /// Fields, variants and methods, then the traits that it implements.
    pub lines: Vec<String>,
}

impl Exported {
    /// Its first line in the listing.
    pub fn head(&self) -> String {
        let of = match self.package == FACADE {
            true => String::new(),
            false => format!(", of {}", self.package),
        };
        format!("{} {}{}{of}", self.kind, self.path, self.rest)
    }

    /// The names of its methods, public fields and variants.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        let is_enum = self.kind.ends_with("enum");
        self.lines.iter().filter_map(move |line| {
            let words = "pub fn const unsafe async";
            let rest = line.split(' ').find(|word| !words.split(' ').any(|w| w == *word))?;
            let is_part = is_enum || ["fn ", "pub ", "const "].iter().any(|w| line.starts_with(w));
            let is_trait = line.starts_with("impl") || line.starts_with("type ");
            let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
            (is_part && !is_trait && line != PRIVATE).then_some(name)
        })
    }

    /// What its signatures say, for the types that they name. Names of variants are left out.
    pub fn signatures(&self) -> impl Iterator<Item = &str> {
        let is_enum = self.kind.ends_with("enum");
        let lines = self.lines.iter().filter(|line| !line.starts_with("impl"));
        let signatures = lines.map(move |line| match is_enum {
            true => line.trim_start_matches(char::is_alphanumeric),
            false => line,
        });
        signatures.chain([self.rest.as_str()])
    }
}

/// The kind of an item that a macro makes.
const MADE: &str = "(made by a macro)";

/// A crate with the names in it.
struct Crate<'a> {
    repository: &'a Repository,
    package: &'a Package,
    modules: Vec<Module>,
    names: Names,
}

/// Crates by the names that they have in code.
type Crates<'a> = BTreeMap<&'a str, Crate<'a>>;

/// Where something is defined: the crate, the module, the name.
type Place<'a> = (&'a str, Parts, String);

/// Every item that the crate `shingle` exports, by path.
pub fn exported(repository: &Repository) -> Vec<Exported> {
    let mut crates = Crates::new();
    for package in repository.members() {
        let root = format!("{}/src/lib.rs", package.folder);
        if repository.sources.contains_key(&root) {
            let modules = modules::reach(&repository.sources, &root);
            let names = Names::of(repository, &modules);
            crates.insert(package.name(), Crate { repository, package, modules, names });
        }
    }
    let Some(facade) = crates.get(FACADE) else { return Vec::new() };
    let mut paths = Vec::new();
    let root = &repository.sources[&facade.modules[0].path];
    let items = root.file.as_ref().map_or(&[][..], |file| &file.items);
    exports(&crates, &[], items, &mut paths);
    let places: BTreeSet<Place> = paths.iter().map(|(_, place)| place.clone()).collect();
    let mut found: Vec<Exported> = Vec::new();
    let mut shown = BTreeSet::new();
    // The shortest path first: an item that has two names is listed under that one.
    paths.sort_by_key(|(path, _)| (path.matches("::").count(), path.clone()));
    for (path, place) in paths.into_iter().filter(|(_, place)| shown.insert(place.clone())) {
        let owner = &crates[place.0];
        found.push(owner.item(&path, &place, &places).unwrap_or_else(|| owner.made(path)));
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// The items that a module of the facade exports, with the places where they are defined.
fn exports<'a>(
    crates: &Crates<'a>,
    here: &[String],
    items: &[syn::Item],
    found: &mut Vec<(String, Place<'a>)>,
) {
    for item in items {
        let Some((attributes, visibility)) = declared(item) else { continue };
        if !is_public(visibility) || is_conditional(attributes) {
            continue;
        }
        let path = |name: &str| [here, &[name.to_string()]].concat().join("::");
        match item {
            syn::Item::Use(item) => {
                for import in imports(&item.tree) {
                    let Some(name) = import.name else { continue };
                    found.extend(place(crates, here, &import.path).map(|at| (path(&name), at)));
                }
            }
            syn::Item::Mod(module) => {
                let inner = [here, &[module.ident.to_string()]].concat();
                exports(crates, &inner, items_of(&crates[FACADE], &inner, module), found);
            }
            _ => {
                let name = item_name(item).map(ToString::to_string).unwrap_or_default();
                let defined = (crates[FACADE].package.name(), here.to_vec(), name.clone());
                found.push((path(&name), defined));
            }
        }
    }
}

/// The items of a module, in a file of its own or not.
fn items_of<'a>(owner: &'a Crate, names: &[String], module: &'a syn::ItemMod) -> &'a [syn::Item] {
    if let Some((_, items)) = &module.content {
        return items;
    }
    let file = owner.modules.iter().find(|module| module.names == names);
    let source = file.and_then(|module| owner.repository.sources.get(&module.path));
    source.and_then(|source| source.file.as_ref()).map_or(&[], |file| &file.items)
}

/// Where the item is defined that `path` means in a module of the facade.
fn place<'a>(crates: &Crates<'a>, here: &[String], path: &[String]) -> Option<Place<'a>> {
    let (first, rest) = path.split_first()?;
    let other = crates.get_key_value(first.as_str()).filter(|_| first != FACADE);
    let (name, meaning) = match other {
        Some((name, other)) => (*name, other.names.resolve(&[], rest)),
        None => {
            let (name, facade) = crates.get_key_value(FACADE)?;
            (*name, facade.names.resolve(here, path))
        }
    };
    match meaning {
        Some(Meaning::Item { module, name: item, .. }) => Some((name, module, item)),
        Some(Meaning::Module(_)) => None,
        // No declaration is in the source.
        None => Some((name, path.to_vec(), path.last()?.clone())),
    }
}

impl Crate<'_> {
    /// The item at `place`, listed under `path`.
    fn item(&self, path: &str, place: &Place, exported: &BTreeSet<Place>) -> Option<Exported> {
        let file = self.names.file(&place.1)?;
        let source = self.repository.sources.get(file)?;
        let items = &source.file.as_ref()?.items;
        let item = in_scope(items, &place.1, &self.modules, file).find(|item| {
            item_name(item).is_some_and(|name| *name == place.2) && declared(item).is_some()
        })?;
        let (kind, rest, mut lines) = declaration(source, item)?;
        if matches!(item, syn::Item::Struct(_) | syn::Item::Enum(_)) {
            let (attributes, _) = declared(item)?;
            let (methods, mut traits) = self.impls(place, exported);
            let derived = derived(attributes).into_iter();
            traits.extend(derived.map(|name| vec![format!("impl {name}")]));
            traits.sort();
            lines.extend(methods);
            lines.extend(traits.into_iter().flatten());
        }
        let (path, package) = (path.to_string(), self.package.cargo_name().to_string());
        Some(Exported { path, package, kind, rest, lines })
    }

    /// An item that a macro makes: its parts are not in the source.
    fn made(&self, path: String) -> Exported {
        let package = self.package.cargo_name().to_string();
        Exported { path, package, kind: MADE.into(), rest: String::new(), lines: Vec::new() }
    }

    /// The public methods of a type, and for each trait that it implements the header and the
    /// associated types.
    fn impls(&self, place: &Place, exported: &BTreeSet<Place>) -> (Vec<String>, Vec<Vec<String>>) {
        let (mut methods, mut traits) = (Vec::new(), Vec::new());
        let full = [place.1.clone(), vec![place.2.clone()]].concat();
        for module in self.modules.iter().filter(|module| !module.is_test) {
            let Some(source) = self.repository.sources.get(&module.path) else { continue };
            let Some(file) = &source.file else { continue };
            for item in &file.items {
                let syn::Item::Impl(block) = item else { continue };
                let of = |path: Parts| self.names.full_name(&module.names, &path);
                let is_own = path_of(&block.self_ty).and_then(of).as_ref() == Some(&full);
                if !is_own || is_conditional(&block.attrs) {
                    continue;
                }
                match &block.trait_ {
                    None => methods.extend(public_parts(source, &block.items)),
                    Some((_, path, _)) if is_told(path, of(parts(path)), place.0, exported) => {
                        traits.push(implemented(source, block));
                    }
                    Some(_) => {}
                }
            }
        }
        methods.sort();
        (methods, traits)
    }
}

/// A trait of another crate, or an exported one; not `Drop`.
fn is_told(path: &syn::Path, own: Option<Parts>, of: &str, exported: &BTreeSet<Place>) -> bool {
    match own.as_deref() {
        Some([module @ .., name]) => {
            exported.iter().any(|at| at.0 == of && at.1 == module && at.2 == *name)
        }
        _ => path.segments.last().is_some_and(|last| last.ident != "Drop"),
    }
}

/// The items of the inline modules around them, where `module` is not that of the file itself.
fn in_scope<'a>(
    items: &'a [syn::Item],
    module: &[String],
    modules: &[Module],
    file: &str,
) -> impl Iterator<Item = &'a syn::Item> + use<'a> {
    let outer = modules.iter().find(|other| other.path == file).map_or(0, |m| m.names.len());
    let mut items = items;
    for name in module.iter().skip(outer) {
        let inner = items.iter().find_map(|item| match item {
            syn::Item::Mod(inner) if inner.ident == name => inner.content.as_ref(),
            _ => None,
        });
        items = inner.map_or(&[][..], |(_, items)| items);
    }
    items.iter()
}
