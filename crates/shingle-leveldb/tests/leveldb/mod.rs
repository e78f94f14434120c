//! LevelDB's headers and library: those of the system, or else Debian's, which `fetch` puts beside
//! the tests without installing them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Where they are: none where the compiler finds them by itself.
struct Found(Option<PathBuf>);

fn found() -> Option<&'static Found> {
    static FOUND: OnceLock<Option<Found>> = OnceLock::new();
    let find = || {
        let has_headers = |command: &mut Command| {
            let command = command.args(["-fsyntax-only", "-include", "leveldb/db.h", "-x", "c++"]);
            command.arg("/dev/null").output().is_ok_and(|output| output.status.success())
        };
        if has_headers(&mut Command::new("g++")) {
            return Some(Found(None));
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("leveldb");
        if !folder.join("lib").exists() {
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/leveldb/fetch");
            // Tests of two files may fetch at once: each takes a folder of its own first.
            let new = folder.with_extension(std::process::id().to_string());
            let fetched = Command::new(script).arg(&new).output();
            if !fetched.as_ref().is_ok_and(|output| output.status.success()) {
                println!("{fetched:?}");
                return None;
            }
            let _ = std::fs::rename(&new, &folder);
        }
        let found = Found(Some(folder));
        has_headers(&mut at(&found, "g++")).then_some(found)
    };
    FOUND.get_or_init(find).as_ref()
}

fn at(found: &Found, program: &str) -> Command {
    let mut command = Command::new(program);
    if let Some(folder) = &found.0 {
        let library = folder.join("lib");
        command.env("CPATH", folder.join("include"));
        command.env("LIBRARY_PATH", &library).env("LD_LIBRARY_PATH", &library);
    }
    command
}

/// Whether programs can be compiled against LevelDB's headers. Says so where they cannot.
pub fn is_there() -> bool {
    let is_there = found().is_some();
    if !is_there {
        println!(
            "notice: without g++ and LevelDB's headers (apt-get install g++ libleveldb-dev) its \
             interface was not tested"
        );
    }
    is_there
}

/// A command that finds LevelDB's headers, to compile, and its library, to run.
pub fn command(program: impl AsRef<Path>) -> Command {
    let program = program.as_ref().to_string_lossy();
    found().map_or_else(|| Command::new(&*program), |found| at(found, &program))
}

/// The file `leveldb/c.h`.
#[allow(dead_code, reason = "not every file of tests reads it")]
pub fn header_of_c() -> String {
    let folder = found().and_then(|found| found.0.as_ref().map(|folder| folder.join("include")));
    let folder = folder.unwrap_or_else(|| "/usr/include".into());
    std::fs::read_to_string(folder.join("leveldb/c.h")).unwrap()
}
