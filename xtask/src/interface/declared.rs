//! What a declaration says of itself: kind, signature, fields, variants, methods, derived traits.

use super::signature::{until_body, until_comma, until_end};
use crate::names::item_name;
use crate::source::Source;
use syn::punctuated::Punctuated;

/// Stands for the fields that programs cannot name.
pub const PRIVATE: &str = "private fields";

/// The attributes and the visibility of an item that an interface can have.
pub fn declared(item: &syn::Item) -> Option<(&[syn::Attribute], &syn::Visibility)> {
    Some(match item {
        syn::Item::Const(item) => (&item.attrs, &item.vis),
        syn::Item::Enum(item) => (&item.attrs, &item.vis),
        syn::Item::Fn(item) => (&item.attrs, &item.vis),
        syn::Item::Mod(item) => (&item.attrs, &item.vis),
        syn::Item::Static(item) => (&item.attrs, &item.vis),
        syn::Item::Struct(item) => (&item.attrs, &item.vis),
        syn::Item::Trait(item) => (&item.attrs, &item.vis),
        syn::Item::Type(item) => (&item.attrs, &item.vis),
        syn::Item::Use(item) => (&item.attrs, &item.vis),
        _ => return None,
    })
}

/// Programs can name it.
pub fn is_public(visibility: &syn::Visibility) -> bool {
    matches!(visibility, syn::Visibility::Public(_))
}

/// It is there for tests or with a feature only, or hidden.
pub fn is_conditional(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        let text = list.tokens.to_string();
        let is_off = !text.contains("not") && (text.contains("test") || text.contains("feature"));
        list.path.is_ident("cfg") && is_off || list.path.is_ident("doc") && text == "hidden"
    })
}

/// The kind of an item with the attributes that programs notice, what follows its name, and its
/// fields, variants or methods.
pub fn declaration(source: &Source, item: &syn::Item) -> Option<(String, String, Vec<String>)> {
    let ident = item_name(item)?;
    let (mut rest, kind, lines) = match item {
        syn::Item::Struct(item) => ("".into(), "struct", fields(source, &item.fields)),
        syn::Item::Enum(item) => {
            let line = |variant: &syn::Variant| until_comma(source, start(variant.ident.span()));
            ("".into(), "enum", item.variants.iter().map(line).collect())
        }
        syn::Item::Type(item) => {
            let value = until_end(source, item.eq_token.span.byte_range().end);
            (format!("{} = {value}", behind(source, ident)), "type", Vec::new())
        }
        syn::Item::Trait(item) => {
            let lines = item.items.iter().filter_map(|item| trait_part(source, item)).collect();
            (behind(source, ident), "trait", lines)
        }
        syn::Item::Fn(_) => (behind(source, ident), "fn", Vec::new()),
        syn::Item::Const(_) => (behind(source, ident), "const", Vec::new()),
        syn::Item::Static(_) => (behind(source, ident), "static", Vec::new()),
        _ => return None,
    };
    rest.truncate(rest.trim_end().len());
    let attributes = declared(item).map_or(&[][..], |(attributes, _)| attributes);
    let is_open = attributes.iter().any(|a| a.path().is_ident("non_exhaustive"));
    Some((format!("{}{kind}", if is_open { "#[non_exhaustive] " } else { "" }), rest, lines))
}

fn start(span: proc_macro2::Span) -> usize {
    span.byte_range().start
}

/// What a declaration says behind the name.
fn behind(source: &Source, name: &syn::Ident) -> String {
    until_body(source, name.span().byte_range().end)
}

fn fields(source: &Source, fields: &syn::Fields) -> Vec<String> {
    let mut lines = Vec::new();
    for field in fields {
        match (&field.vis, &field.ident) {
            (syn::Visibility::Public(_), Some(name)) => {
                lines.push(format!("pub {}", until_comma(source, start(name.span()))));
            }
            (syn::Visibility::Public(token), None) => {
                let ty = until_comma(source, token.span.byte_range().end);
                lines.push(format!("pub {}: {ty}", lines.len()));
            }
            _ => {}
        }
    }
    if lines.len() < fields.len() {
        lines.push(PRIVATE.into());
    }
    lines
}

fn trait_part(source: &Source, item: &syn::TraitItem) -> Option<String> {
    match item {
        syn::TraitItem::Fn(method) => {
            let text = until_body(source, start(method.sig.fn_token.span));
            let provided = if method.default.is_some() { " (provided)" } else { "" };
            Some(format!("{text}{provided}"))
        }
        syn::TraitItem::Type(item) => Some(until_body(source, start(item.type_token.span))),
        syn::TraitItem::Const(item) => Some(until_body(source, start(item.const_token.span))),
        _ => None,
    }
}

/// The public methods and constants of an `impl` block.
pub fn public_parts(source: &Source, items: &[syn::ImplItem]) -> Vec<String> {
    let mut lines = Vec::new();
    for item in items {
        let (attributes, visibility) = match item {
            syn::ImplItem::Fn(item) => (&item.attrs, &item.vis),
            syn::ImplItem::Const(item) => (&item.attrs, &item.vis),
            _ => continue,
        };
        if let syn::Visibility::Public(token) = visibility
            && !is_conditional(attributes)
        {
            lines.push(until_body(source, token.span.byte_range().end));
        }
    }
    lines
}

/// The header of a trait's `impl` without the type and the trait's module, and the associated
/// types.
pub fn implemented(source: &Source, block: &syn::ItemImpl) -> Vec<String> {
    let header = until_body(source, start(block.impl_token.span));
    let header = header.split(" for ").next().unwrap_or_default();
    let (before, path) = header.rsplit_once(' ').unwrap_or_default();
    let name = path.split('<').next().unwrap_or_default();
    let modules = name.rfind("::").map_or(0, |at| at + 2);
    let mut lines = vec![format!("{before} {}", &path[modules..])];
    for item in &block.items {
        if let syn::ImplItem::Type(item) = item {
            let name = &item.ident;
            let value = until_end(source, item.eq_token.span.byte_range().end);
            lines.push(format!("type {name} = {value}"));
        }
    }
    lines
}

/// The traits that attributes derive.
pub fn derived(attributes: &[syn::Attribute]) -> Vec<String> {
    let mut names = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("derive")) {
        let parse = Punctuated::<syn::Path, syn::Token![,]>::parse_terminated;
        for path in attribute.parse_args_with(parse).unwrap_or_default() {
            names.extend(path.segments.last().map(|last| last.ident.to_string()));
        }
    }
    names
}
