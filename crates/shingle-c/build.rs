//! Gives the shared library its name for programs that are linked to it, and keeps it in memory
//! after a `dlclose`: threads that have called the engine run code of the library when they end,
//! and so do its own, which end some time after their database was closed.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libshingle.so.0");
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
