//! Which file of a crate defines a method that is called.
//!
//! Nothing here knows types as the compiler does. A method of `self` is looked up by the type of
//! its `impl` block; another one by its name, which must belong to one inherent `impl` of the
//! crate, and by what the types of fields, variables and results say in their own words. Names of
//! the standard library's common methods count only where such a type is known.

use crate::modules::Module;
use crate::names::{Names, Parts};
use crate::repository::Repository;
use crate::source::Source;
use crate::uses::{Receiver, path_of, types_in};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};

/// Methods that values of the standard library have too.
const COMMON: &str = " abs add all and any append as_bytes as_deref as_mut as_ref as_slice \
    as_str bytes ceil chain chars checked_add checked_sub chunks clear clone cloned cmp collect \
    compare contains contains_key copied count dedup default display div drain drop ends_with \
    entry enumerate eq err exists expect extend fill filter filter_map find find_map finish \
    first flat_map flatten floor flush fold for_each front get get_mut get_or_insert_with hash \
    id index insert into into_inner into_iter is_empty is_err is_none is_ok is_some is_some_and \
    iter iter_mut join keys last len lines ln load lock map map_err map_or matches max \
    max_by_key min min_by_key modified name next next_back notify_all notify_one nth or \
    or_default or_else or_insert parent parse partition_point path peek pop pop_back pop_front \
    position pow push push_back push_front push_str range read read_exact recv remove repeat \
    replace reserve resize retain rev rsplit seek send set_len skip sort sort_by split split_at \
    split_off starts_with step_by store sub sum swap sync_all take take_while then to_owned \
    to_string to_vec trim truncate try_from try_into try_lock unwrap unwrap_or upgrade values \
    values_mut wait windows with with_capacity wrapping_add write write_all zip ";

/// Types, by the name of a field, a function or a type.
type Types = BTreeMap<String, BTreeSet<Parts>>;

/// What is known of the methods of a crate.
#[derive(Default)]
pub struct Methods {
    /// Files with an inherent `impl` that defines the method, by type and name.
    of_types: BTreeMap<(Parts, String), BTreeSet<String>>,
    /// Types with such an `impl` by the method's name, and the module that sees the method.
    types: BTreeMap<String, BTreeSet<(Parts, Parts)>>,
    /// Methods of traits, whose `impl` depends on the type.
    of_traits: BTreeSet<String>,
    /// Types in the types of fields and results.
    fields: Types,
    results: Types,
    /// Types that stand for others: aliases, and what dereferences to others.
    aliases: BTreeMap<Parts, BTreeSet<Parts>>,
}

/// A method that is called.
pub struct Called<'a> {
    /// The file that defines it.
    pub file: &'a str,
    /// The type where only the method's name tells it.
    pub guessed: Option<&'a Parts>,
}

impl Methods {
    /// The methods that the production code of `modules` defines.
    pub fn of(repository: &Repository, modules: &[Module], names: &Names) -> Methods {
        let mut methods = Methods::default();
        for module in modules.iter().filter(|module| !module.is_test) {
            let source = &repository.sources[&module.path];
            let here = module.names.clone();
            let Some(file) = &source.file else { continue };
            let mut collector = Collector { source, here, names, own: None, methods: &mut methods };
            collector.visit_file(file);
        }
        methods
    }

    /// The file that defines the method `name` of a type.
    pub fn of_type(&self, ty: &[String], name: &str) -> Option<&str> {
        let files = self.of_types.get(&(ty.to_vec(), name.to_string()))?;
        files.first().filter(|_| files.len() == 1).map(String::as_str)
    }

    /// The method `name` called on `receiver` in the module `here`.
    pub fn called(
        &self,
        names: &Names,
        here: &[String],
        (name, receiver): (&str, &Receiver),
    ) -> Option<Called<'_>> {
        let hint = match receiver {
            Receiver::Own(path) => {
                let own = [names.full_name(here, path)?].into();
                let types = self.with_aliases(&own);
                let file = types.iter().find_map(|ty| self.of_type(ty, name))?;
                return Some(Called { file, guessed: None });
            }
            Receiver::Typed(types) => Some(types),
            Receiver::Field(field) => self.fields.get(field),
            Receiver::Returned(function) => self.results.get(function),
            Receiver::Unknown => None,
        };
        let is_common = hint.is_none() && COMMON.contains(&format!(" {name} "));
        if is_common || self.of_traits.contains(name) {
            return None;
        }
        let types = hint.map(|hint| self.with_aliases(hint));
        let mut found = self.types.get(name)?.iter().filter(|(ty, seen_in)| {
            here.starts_with(seen_in) && types.as_ref().is_none_or(|types| types.contains(ty))
        });
        let (Some((ty, _)), None) = (found.next(), found.next()) else { return None };
        let guessed = Some(ty).filter(|_| hint.is_none());
        Some(Called { file: self.of_type(ty, name)?, guessed })
    }

    fn with_aliases(&self, types: &BTreeSet<Parts>) -> BTreeSet<Parts> {
        let mut all = types.clone();
        let mut next: Vec<&Parts> = types.iter().collect();
        while let Some(ty) = next.pop() {
            let others = self.aliases.get(ty).into_iter().flatten();
            next.extend(others.filter(|other| all.insert((*other).clone())));
        }
        all
    }
}

struct Collector<'a> {
    source: &'a Source,
    here: Parts,
    names: &'a Names,
    /// The type of the `impl` block around, as it is written.
    own: Option<Parts>,
    methods: &'a mut Methods,
}

impl Collector<'_> {
    fn is_test(&self, span: proc_macro2::Span) -> bool {
        self.source.is_test(crate::names::line(span))
    }

    fn types_in(&self, ty: &syn::Type) -> BTreeSet<Parts> {
        types_in(self.names, &self.here, self.own.as_ref(), ty)
    }

    /// The module whose code sees a method of this visibility.
    fn seen_in(&self, visibility: &syn::Visibility) -> Parts {
        match visibility {
            syn::Visibility::Inherited => self.here.clone(),
            syn::Visibility::Restricted(only) if only.path.is_ident("super") => {
                self.here[..self.here.len().saturating_sub(1)].to_vec()
            }
            _ => Vec::new(),
        }
    }

    fn inherent(&mut self, ty: Parts, block: &syn::ItemImpl) {
        for item in &block.items {
            let syn::ImplItem::Fn(function) = item else { continue };
            let name = function.sig.ident.to_string();
            let seen = (ty.clone(), self.seen_in(&function.vis));
            self.methods.types.entry(name.clone()).or_default().insert(seen);
            let files = self.methods.of_types.entry((ty.clone(), name)).or_default();
            files.insert(self.source.path.clone());
        }
    }

    fn of_trait(&mut self, ty: Option<Parts>, block: &syn::ItemImpl) {
        for item in &block.items {
            match (item, &ty) {
                (syn::ImplItem::Fn(function), _) => {
                    self.methods.of_traits.insert(function.sig.ident.to_string());
                }
                (syn::ImplItem::Type(target), Some(ty)) if target.ident == "Target" => {
                    let types = self.types_in(&target.ty);
                    self.methods.aliases.entry(ty.clone()).or_default().extend(types);
                }
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Collector<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if module.content.is_some() && !self.is_test(module.ident.span()) {
            self.here.push(module.ident.to_string());
            visit::visit_item_mod(self, module);
            self.here.pop();
        }
    }

    fn visit_item_impl(&mut self, block: &'ast syn::ItemImpl) {
        if self.is_test(block.impl_token.span) {
            return;
        }
        let path = path_of(&block.self_ty);
        let ty = path.as_ref().and_then(|path| self.names.full_name(&self.here, path));
        let outer = std::mem::replace(&mut self.own, path);
        match (&block.trait_, ty) {
            (None, Some(ty)) => self.inherent(ty, block),
            (None, None) => {}
            (Some(_), ty) => self.of_trait(ty, block),
        }
        visit::visit_item_impl(self, block);
        self.own = outer;
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        self.methods.of_traits.insert(function.sig.ident.to_string());
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        if let syn::ReturnType::Type(_, ty) = &signature.output {
            let name = signature.ident.to_string();
            let types = self.types_in(ty);
            self.methods.results.entry(name).or_default().extend(types);
        }
        visit::visit_signature(self, signature);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        let ty = [&self.here[..], &[item.ident.to_string()]].concat();
        let types = self.types_in(&item.ty);
        self.methods.aliases.entry(ty).or_default().extend(types);
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if let Some(name) = &field.ident {
            let types = self.types_in(&field.ty);
            self.methods.fields.entry(name.to_string()).or_default().extend(types);
        }
    }
}
