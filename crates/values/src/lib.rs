//! Value layouts: where values go. See ARCHITECTURE.md, `crates/values`.
//!
//! A layout decides for each value whether it stays in the runs or goes to a store of its own.
//! Every layout is a line in [`registry`].

mod inline;

use base::{Error, Result};

pub use inline::INLINE;

/// Where a value is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placed {
    /// In the runs, beside its key.
    Inline,
    /// In the value store; the bytes are what the tree keeps in its place.
    Pointer(Vec<u8>),
}

/// Decides where values go.
pub trait ValueLayout: Send + Sync {
    /// Where the value of `key` goes. Called once for a value, before it is committed.
    fn place(&self, key: &[u8], value: &[u8]) -> Result<Placed>;
}

/// What there is to know about a layout before using it.
#[derive(Clone, Copy)]
pub struct Descriptor {
    /// Its name in options and reports.
    pub name: &'static str,
    /// One line of help.
    pub summary: &'static str,
    /// Makes one.
    pub make: fn() -> Box<dyn ValueLayout>,
}

/// Every layout there is.
pub fn registry() -> &'static [Descriptor] {
    &[INLINE]
}

/// The layout of this name; an error that lists the names otherwise.
pub fn by_name(name: &str) -> Result<&'static Descriptor> {
    registry().iter().find(|descriptor| descriptor.name == name).ok_or_else(|| {
        let names: Vec<&str> = registry().iter().map(|descriptor| descriptor.name).collect();
        Error::invalid(format!("no value layout is called {name}; there are {}", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_found() {
        for descriptor in registry() {
            assert_eq!(by_name(descriptor.name).unwrap().name, descriptor.name);
        }
        assert!(by_name("nowhere").err().unwrap().message().contains("inline"));
    }

    #[test]
    fn inline_keeps_every_value_in_the_runs() {
        let layout = (by_name("inline").unwrap().make)();
        for value in [&b""[..], &[0; 100_000]] {
            assert_eq!(layout.place(b"key", value).unwrap(), Placed::Inline);
        }
    }
}
