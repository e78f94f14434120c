//! Keeps the library in memory when Java collects the class loader that loaded it: threads of the
//! engine, which end some time after their database was closed, run code of the library.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
