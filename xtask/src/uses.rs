//! What the production code of a file uses: paths, imports, and methods with what is known of the
//! type that they are called on.

use crate::modules::Module;
use crate::names::{self, Names, Parts, line};
use crate::source::Source;
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};

/// Methods that give what they are called on, or what it holds.
const TRANSPARENT: &str = " as_mut as_ref borrow borrow_mut clone expect get iter lock read \
    to_owned unwrap unwrap_or_else upgrade write ";

/// One use.
#[derive(Debug)]
pub struct Use {
    /// The module whose code it is.
    pub here: Parts,
    /// Its line.
    pub line: usize,
    /// What is used.
    pub what: What,
}

/// What is used.
#[derive(Debug)]
pub enum What {
    /// A path in code.
    Path(Parts),
    /// An import; a re-export is one that others may use.
    Import {
        /// The path.
        path: Parts,
        /// It is a re-export.
        is_public: bool,
    },
    /// A method.
    Method(String, Receiver),
}

/// What is known of the type of the value that a method is called on.
#[derive(Clone, Debug)]
pub enum Receiver {
    /// It is the type of the `impl` block, called by this path.
    Own(Parts),
    /// Its type contains these types of the crate.
    Typed(BTreeSet<Parts>),
    /// It is a field of this name.
    Field(String),
    /// A function of this name returned it.
    Returned(String),
    /// Nothing.
    Unknown,
}

/// The uses of a module's file, inline modules with it.
pub fn of(source: &Source, module: &Module, names: &Names) -> Vec<Use> {
    let here = module.names.clone();
    let mut reader = Reader { names, here, own: None, locals: BTreeMap::new(), found: Vec::new() };
    if let Some(file) = &source.file {
        reader.visit_file(file);
    }
    reader.found.retain(|found| !source.is_test(found.line));
    reader.found
}

/// The types of the crate in a type, by their modules and names; `own` is what `Self` means.
pub fn types_in(
    names: &Names,
    here: &[String],
    own: Option<&Parts>,
    ty: &syn::Type,
) -> BTreeSet<Parts> {
    struct Collector<'a>(&'a Names, &'a [String], Option<&'a Parts>, BTreeSet<Parts>);
    impl<'ast> Visit<'ast> for Collector<'_> {
        fn visit_path(&mut self, path: &'ast syn::Path) {
            let path_parts = match (&parts(path)[..], self.2) {
                ([name], Some(own)) if name == "Self" => own.clone(),
                (path, _) => path.to_vec(),
            };
            self.3.extend(self.0.full_name(self.1, &path_parts));
            visit::visit_path(self, path);
        }
    }
    let mut collector = Collector(names, here, own, BTreeSet::new());
    collector.visit_type(ty);
    collector.3
}

/// The path of a type that is one; nothing for references, tuples and the like.
pub fn path_of(ty: &syn::Type) -> Option<Parts> {
    let syn::Type::Path(path) = ty else { return None };
    Some(parts(&path.path))
}

/// The names of a path.
pub fn parts(path: &syn::Path) -> Parts {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

struct Reader<'a> {
    names: &'a Names,
    here: Parts,
    /// The type of the `impl` block around.
    own: Option<Parts>,
    /// Types that the function around gives to its variables.
    locals: BTreeMap<String, BTreeSet<Parts>>,
    found: Vec<Use>,
}

impl Reader<'_> {
    fn say(&mut self, line: usize, what: What) {
        self.found.push(Use { here: self.here.clone(), line, what });
    }

    fn say_path(&mut self, line: usize, mut path: Parts) {
        if path.first().is_some_and(|first| first == "Self") {
            let Some(own) = &self.own else { return };
            path.splice(..1, own.iter().cloned());
        }
        self.say(line, What::Path(path));
    }

    fn receiver(&self, of: &syn::Expr) -> Receiver {
        match of {
            syn::Expr::Reference(of) => self.receiver(&of.expr),
            syn::Expr::Paren(of) => self.receiver(&of.expr),
            syn::Expr::Try(of) => self.receiver(&of.expr),
            syn::Expr::Unary(of) => self.receiver(&of.expr),
            syn::Expr::Index(of) => self.receiver(&of.expr),
            syn::Expr::Path(of) => self.variable(&parts(&of.path)),
            syn::Expr::Field(of) => match &of.member {
                syn::Member::Named(name) => Receiver::Field(name.to_string()),
                syn::Member::Unnamed(_) => Receiver::Unknown,
            },
            syn::Expr::MethodCall(of) => {
                let method = of.method.to_string();
                match TRANSPARENT.contains(&format!(" {method} ")) {
                    true => self.receiver(&of.receiver),
                    false => Receiver::Returned(method),
                }
            }
            syn::Expr::Call(of) => match &*of.func {
                syn::Expr::Path(function) => self.returned(&parts(&function.path)),
                _ => Receiver::Unknown,
            },
            _ => Receiver::Unknown,
        }
    }

    /// What `path(...)` returns: `new` gives its own type.
    fn returned(&self, path: &[String]) -> Receiver {
        match path {
            [ty @ .., last] if last == "new" => self
                .names
                .full_name(&self.here, ty)
                .map_or(Receiver::Unknown, |ty| Receiver::Typed([ty].into())),
            [.., last] => Receiver::Returned(last.clone()),
            [] => Receiver::Unknown,
        }
    }

    fn variable(&self, path: &[String]) -> Receiver {
        match (path, &self.own) {
            ([name], Some(own)) if name == "self" => Receiver::Own(own.clone()),
            ([name], _) => self
                .locals
                .get(name)
                .map_or(Receiver::Unknown, |names| Receiver::Typed(names.clone())),
            _ => Receiver::Unknown,
        }
    }

    /// Reads paths and methods of a macro whose arguments are no list of expressions.
    fn read_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let before = at.checked_sub(1).and_then(|before| tokens.get(before));
            let is_method = is_sign(before, '.');
            at += 1;
            let TokenTree::Ident(name) = token else {
                if let TokenTree::Group(group) = token {
                    self.read_tokens(group.stream());
                }
                continue;
            };
            let mut path = vec![name.to_string()];
            while is_sign(tokens.get(at), ':') && is_sign(tokens.get(at + 1), ':') {
                let Some(TokenTree::Ident(next)) = tokens.get(at + 2) else { break };
                path.push(next.to_string());
                at += 3;
            }
            if !is_method {
                self.say_path(line(name.span()), path);
            } else if matches!(tokens.get(at), Some(TokenTree::Group(_))) {
                self.say(line(name.span()), What::Method(name.to_string(), Receiver::Unknown));
            }
        }
    }

    /// Visits a function with variables of its own.
    fn in_function(&mut self, visit: impl FnOnce(&mut Self)) {
        let locals = std::mem::take(&mut self.locals);
        visit(self);
        self.locals = locals;
    }
}

fn is_sign(token: Option<&TokenTree>, sign: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == sign)
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if module.content.is_some() {
            self.here.push(module.ident.to_string());
            visit::visit_item_mod(self, module);
            self.here.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let is_public = !matches!(item.vis, syn::Visibility::Inherited);
        for import in names::imports(&item.tree) {
            let path = import.path;
            self.say(line(item.use_token.span), What::Import { path, is_public });
        }
    }

    fn visit_item_impl(&mut self, block: &'ast syn::ItemImpl) {
        let outer = std::mem::replace(&mut self.own, path_of(&block.self_ty));
        visit::visit_item_impl(self, block);
        self.own = outer;
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.in_function(|this| visit::visit_item_fn(this, function));
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.in_function(|this| visit::visit_impl_item_fn(this, function));
    }

    fn visit_pat_type(&mut self, typed: &'ast syn::PatType) {
        if let syn::Pat::Ident(name) = &*typed.pat {
            let types = types_in(self.names, &self.here, self.own.as_ref(), &typed.ty);
            self.locals.insert(name.ident.to_string(), types);
        }
        visit::visit_pat_type(self, typed);
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        visit::visit_local(self, local);
        if let syn::Pat::Ident(name) = &local.pat {
            self.locals.remove(&name.ident.to_string());
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if let Some(first) = path.segments.first() {
            self.say_path(line(first.ident.span()), parts(path));
        }
        visit::visit_path(self, path);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let receiver = self.receiver(&call.receiver);
        let method = call.method.to_string();
        self.say(line(call.method.span()), What::Method(method, receiver));
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        let list = Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated;
        match call.parse_body_with(list) {
            Ok(list) => {
                // The tree of a macro is its own: what it finds is owned.
                let mut reader = Reader {
                    names: self.names,
                    here: self.here.clone(),
                    own: self.own.clone(),
                    locals: self.locals.clone(),
                    found: Vec::new(),
                };
                list.iter().for_each(|expression| reader.visit_expr(expression));
                self.found.append(&mut reader.found);
            }
            Err(_) => self.read_tokens(call.tokens.clone()),
        }
    }
}
