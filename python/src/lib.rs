//! The Python binding: the module `shingle._shingle`, on which the package `shingle` builds.
//!
//! Invariants:
//! - The engine works without the interpreter's lock.
//! - A thing of a parent process is an error in its child ([`own`]).
//! - Keys and values are bytes. A text is its UTF-8, which `dbm` does too.

mod arguments;
mod batch;
mod database;
mod errors;
mod lab;
mod mapping;
mod own;
mod scan;
mod snapshot;
mod transaction;

use pyo3::prelude::*;

#[pyfunction]
fn note_fork() {
    own::note_fork();
}

#[pymodule]
fn _shingle(module: &Bound<'_, PyModule>) -> PyResult<()> {
    errors::add(module)?;
    module.add_class::<database::Store>()?;
    module.add_class::<database::Resources>()?;
    module.add_class::<mapping::Table>()?;
    module.add_class::<batch::Batch>()?;
    module.add_class::<scan::Scan>()?;
    module.add_class::<snapshot::Snapshot>()?;
    module.add_class::<transaction::Transaction>()?;
    module.add_function(wrap_pyfunction!(note_fork, module)?)?;
    module.add_function(wrap_pyfunction!(database::options, module)?)?;
    module.add_function(wrap_pyfunction!(database::destroy, module)?)?;
    module.add_function(wrap_pyfunction!(lab::schemes, module)?)?;
    module.add_function(wrap_pyfunction!(lab::simulate_schemes, module)?)?;
    module.add_function(wrap_pyfunction!(lab::answer_trace, module)?)?;
    module.add_function(wrap_pyfunction!(lab::experiments, module)?)?;
    module.add_function(wrap_pyfunction!(lab::run_experiments, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
