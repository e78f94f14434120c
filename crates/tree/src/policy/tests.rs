//! Conformance of every policy in the registry.
