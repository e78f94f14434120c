//! `cargo xtask leveldb FOLDER`: builds the libraries that have LevelDB's interface, for the C++
//! strings of today and of before GCC 5, and puts them and the script `with-shingle` into FOLDER.

use crate::c_library::build;
use crate::repository::Repository;
use std::path::Path;
use std::process::Command;

/// The name that LevelDB's own library has in distributions, and that programs ask for.
const SONAME: &str = "libleveldb.so.1d";

/// Folders below `lib/shingle`, and the type of strings of the library in each.
const LIBRARIES: [(&str, &str); 2] = [("leveldb", "1"), ("leveldb-old-abi", "0")];

/// Installs into `prefix`, which may exist.
pub fn install(repository: &Repository, prefix: &Path) -> Result<(), String> {
    let root = repository.root.as_deref().ok_or("the repository is in no folder")?;
    let archive = build(root, "shingle-leveldb")?.join("libshingle_leveldb.a");
    let failed = |what: &Path, error: std::io::Error| format!("{}: {error}", what.display());
    let prefix = std::path::absolute(prefix).map_err(|error| failed(prefix, error))?;
    let sources = root.join("crates/shingle-leveldb");
    for (name, strings) in LIBRARIES {
        let folder = prefix.join("lib/shingle").join(name);
        std::fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
        let script = sources.join("cxx/build");
        let status = Command::new(&script)
            .arg(&archive)
            .arg(folder.join(SONAME))
            .args([strings, "-s"])
            .status()
            .map_err(|error| failed(&script, error))?;
        if !status.success() {
            return Err(format!("{name}: the build of the C++ part failed"));
        }
    }
    let bin = prefix.join("bin");
    std::fs::create_dir_all(&bin).map_err(|error| failed(&bin, error))?;
    let script = bin.join("with-shingle");
    // Copying keeps the right to run it.
    std::fs::copy(sources.join("with-shingle"), &script).map_err(|error| failed(&script, error))?;
    println!("installed in {}", prefix.display());
    Ok(())
}
