//! LevelDB's C and C++ interfaces, as programs use them.
//!
//! Programs are compiled here against LevelDB's own headers, once, and run on LevelDB's own library
//! and on ours: their output must be the same. They also run on ours under valgrind, where it is
//! installed.

#![allow(clippy::unwrap_used, clippy::print_stdout)]
#![cfg(target_os = "linux")]

mod leveldb;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The name of the library, LevelDB's and ours.
const LIBRARY: &str = "libleveldb.so.1d";

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{text}{errors}", output.status);
    text
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Our library for both types of strings, built once for all tests.
struct Ours {
    folder: tempfile::TempDir,
}

impl Ours {
    /// The folder with the library for strings as C++ has them since 2011, or before.
    fn of(&self, abi: &str) -> PathBuf {
        self.folder.path().join(abi)
    }
}

/// The archive that cargo built for this test. It stands beside the test, perhaps with older ones.
fn archive() -> PathBuf {
    let folder = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap());
    let is_archive = |entry: &std::fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        name.starts_with("libshingle_leveldb") && name.ends_with(".a")
    };
    let newest =
        files.filter(is_archive).max_by_key(|entry| entry.metadata().unwrap().modified().unwrap());
    newest.unwrap_or_else(|| panic!("no archive in {}", folder.display())).path()
}

fn ours() -> &'static Ours {
    static OURS: OnceLock<Ours> = OnceLock::new();
    OURS.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let archive = archive();
        for abi in ["1", "0"] {
            std::fs::create_dir(folder.path().join(abi)).unwrap();
            let library = folder.path().join(abi).join(LIBRARY);
            let mut build = leveldb::command(root().join("cxx/build"));
            run(build.arg(&archive).arg(library).arg(abi).arg("-s"));
        }
        Ours { folder }
    })
}

/// Compiles a program of `tests`, to run with whichever library it finds.
fn compiled(folder: &Path, source: &str, abi: &str) -> PathBuf {
    let (compiler, standard) = match source.ends_with(".cc") {
        true => ("g++", "-std=c++17"),
        false => ("gcc", "-std=c99"),
    };
    let program = folder.join(source.replace(['/', '.'], "-"));
    run(leveldb::command(compiler)
        .args([standard, "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g", "-O1"])
        .arg(format!("-D_GLIBCXX_USE_CXX11_ABI={abi}"))
        .arg(root().join("tests").join(source))
        .arg("-o")
        .arg(&program)
        .arg(ours().of(abi).join(LIBRARY))
        .arg("-lpthread"));
    program
}

/// A command that has our library, or LevelDB's.
fn with(library: Option<&str>, program: &Path) -> Command {
    let mut command = leveldb::command(program);
    command.env("TEST_TMPDIR", std::env::temp_dir());
    if let Some(abi) = library {
        command.env("LD_LIBRARY_PATH", ours().of(abi));
    }
    command
}

/// A new folder for the data of a program.
fn data(folder: &Path, name: &str) -> PathBuf {
    let made = folder.join(name);
    std::fs::create_dir(&made).unwrap();
    made
}

fn under_valgrind(program: &Path, arguments: &[&Path]) {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("notice: there is no valgrind, so leaks were not looked for");
        return;
    }
    let text = run(with(Some("1"), Path::new("valgrind"))
        .args(["--quiet", "--error-exitcode=9", "--leak-check=full"])
        .args(["--errors-for-leak-kinds=definite,indirect", "--fair-sched=try"])
        .arg(program)
        .args(arguments));
    assert!(text.ends_with("done\n"), "{text}");
}

/// The program says the same on both libraries, and does not leak.
fn is_the_same_on_both(source: &str) {
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(folder.path(), source, "1");
    // C programs make a database of the name, those of C++ put several into the folder.
    let inside =
        |name| data(folder.path(), name).join(if source.ends_with(".c") { "db" } else { "" });
    let theirs = run(with(None, &program).arg(inside("theirs")));
    let ours = run(with(Some("1"), &program).arg(inside("ours")));
    assert!(ours.ends_with("done\n"), "{ours}");
    assert!(theirs == ours, "on LevelDB:\n{theirs}\non Shingle:\n{ours}");
    // Valgrind is slow: it watches fewer keys.
    under_valgrind(&program, &[&inside("watched"), Path::new("500")]);
}

#[test]
fn all_functions_of_c_do_the_same_as_leveldbs() {
    if !leveldb::is_there() {
        return;
    }
    is_the_same_on_both("c/whole.c");
}

#[test]
fn classes_of_databases_do_the_same_as_leveldbs() {
    if !leveldb::is_there() {
        return;
    }
    is_the_same_on_both("cxx/whole.cc");
}

#[test]
fn classes_beside_databases_do_the_same_as_leveldbs() {
    if !leveldb::is_there() {
        return;
    }
    is_the_same_on_both("cxx/parts.cc");
}

#[test]
fn programs_with_old_strings_run_too() {
    if !leveldb::is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for source in ["cxx/whole.cc", "cxx/parts.cc"] {
        let (old, new) = (data(folder.path(), &source[4..6]), data(folder.path(), &source[4..7]));
        let old_program = compiled(&old, source, "0");
        let old_text = run(with(Some("0"), &old_program).arg(data(&old, "data")));
        let new_program = compiled(&new, source, "1");
        let new_text = run(with(Some("1"), &new_program).arg(data(&new, "data")));
        assert_eq!(old_text, new_text);
    }
}

#[test]
fn errors_say_what_is_wrong_and_files_of_leveldb_stay_as_they_are() {
    if !leveldb::is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(folder.path(), "c/errors.c", "1");
    let foreign = folder.path().join("foreign");
    leveldb_database(folder.path(), &foreign);
    let before = contents(&foreign);
    assert!(before.iter().any(|(name, _)| name == "CURRENT"), "{before:?}");
    let text = run(with(Some("1"), &program).arg(folder.path().join("db")).arg(&foreign));
    assert!(text.ends_with("done\n"), "{text}");
    under_valgrind(&program, &[&folder.path().join("watched"), &foreign]);
    assert!(contents(&foreign) == before, "files of LevelDB changed");
    let refused = compiled(folder.path(), "cxx/refused.cc", "1");
    let path = folder.path().join("refused");
    assert!(run(with(Some("1"), &refused).arg(&path)).ends_with("done\n"));
    under_valgrind(&refused, &[&path]);
    assert!(!path.exists());
}

/// Makes a database with LevelDB's own library.
fn leveldb_database(folder: &Path, path: &Path) {
    let program = compiled(folder, "c/threads.c", "1");
    assert!(run(with(None, &program).arg(path).arg("10")).ends_with("done\n"));
}

fn contents(folder: &Path) -> BTreeSet<(String, Vec<u8>)> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let named = |entry: std::fs::DirEntry| {
        (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())
    };
    files.map(named).collect()
}

#[test]
fn threads_share_a_database() {
    if !leveldb::is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(folder.path(), "c/threads.c", "1");
    let text = run(with(Some("1"), &program).arg(folder.path().join("db")).arg("5000"));
    assert!(text.ends_with("done\n"), "{text}");
    under_valgrind(&program, &[&folder.path().join("watched"), Path::new("200")]);
}

#[test]
fn a_thousand_lives_keep_memory_and_open_files_as_they_are() {
    if !leveldb::is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(folder.path(), "c/lives.c", "1");
    let text = run(with(Some("1"), &program).arg(folder.path().join("db")).arg("1000"));
    assert!(text.ends_with("done\n"), "{text}");
}

#[test]
fn damage_is_an_error_and_repair_saves_the_rest() {
    if !leveldb::is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (path, program) = (folder.path().join("db"), compiled(folder.path(), "c/damage.c", "1"));
    let db = shingle::Options::new().open(&path).unwrap();
    for n in 0..1000u32 {
        // What does not compress makes several blocks.
        let value: Vec<u8> = (0..100)
            .map(|at| ((n + 7).wrapping_mul(at + 31).wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        db.put(format!("key{n:04}"), value).unwrap();
    }
    db.flush().unwrap();
    let table = db.files().into_iter().find(|file| file.name.ends_with(".table")).unwrap().name;
    db.close().unwrap();
    let mut bytes = std::fs::read(path.join(&table)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(path.join(&table), bytes).unwrap();
    let text = run(with(Some("1"), &program).arg(&path));
    assert!(text.ends_with("done\n"), "{text}");
    assert!(folder.path().join("db.damaged").join(table).exists());
}

#[test]
fn writes_without_a_sync_survive_the_end_of_the_process() {
    if !leveldb::is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(folder.path(), "c/killed.c", "1");
    for library in [None, Some("1")] {
        let path = folder.path().join(library.unwrap_or("theirs"));
        let killed = with(library, &program).arg(&path).arg("write").output().unwrap();
        assert_eq!(killed.status.code(), None, "{killed:?}");
        assert_eq!(run(with(library, &program).arg(&path).arg("read")), "1000 keys\n");
    }
}

#[test]
fn a_build_without_compiler_or_headers_says_what_to_install() {
    if !leveldb::is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let bare = folder.path().join("bare");
    std::fs::write(&bare, "#!/bin/sh\nexec g++ -nostdinc \"$@\"\n").unwrap();
    run(Command::new("chmod").arg("+x").arg(&bare));
    for (compiler, package) in [(Path::new("/no/such/compiler"), "g++"), (&bare, "libleveldb-dev")]
    {
        let mut build = Command::new(root().join("cxx/build"));
        let build = build.args(["archive.a", "library.so", "1"]).env("CXX", compiler);
        let output = build.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1));
        assert!(text.ends_with(&format!("apt-get install {package}\n")), "{text}");
    }
}

#[test]
fn the_program_with_all_functions_has_them_all() {
    if !leveldb::is_there() {
        return;
    }
    let header = leveldb::header_of_c();
    let declared: BTreeSet<&str> = header
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("leveldb_") && header.contains(&format!("{word}(")))
        .collect();
    assert_eq!(declared.len(), 68, "{declared:?}");
    let program = include_str!("c/whole.c");
    for function in declared {
        assert!(program.contains(&format!("{function}(")), "whole.c does not call {function}");
    }
}

/// What a library defines, as C++ names it. Both types of strings have the same name.
fn symbols(library: &Path) -> BTreeSet<String> {
    let text = run(Command::new("nm").args(["-D", "-C", "--defined-only"]).arg(library));
    let name = |line: &str| {
        let name = line.splitn(3, ' ').nth(2)?;
        let string =
            "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
        let name = name.replace(string, "std::string").replace("[abi:cxx11]", "");
        Some(name.replace(' ', ""))
    };
    text.lines().filter_map(name).collect()
}

/// Where the system has LevelDB's library.
fn theirs() -> PathBuf {
    let found = run(leveldb::command("g++").arg(format!("-print-file-name={LIBRARY}")));
    let path = PathBuf::from(found.trim());
    assert!(path.is_absolute(), "there is no {LIBRARY} beside LevelDB's headers");
    path
}

/// Whether no program that stores keys and values needs the symbol.
fn is_left_out(symbol: &str) -> bool {
    // Files of LevelDB's tables, which programs read and write without a database: Shingle's tables
    // have a form of their own.
    let of_tables = ["leveldb::Table::", "leveldb::TableBuilder::"];
    // Copies of the standard library's templates, which each program has itself.
    let is_of_std = !symbol.contains("leveldb::") && symbol.contains("std::")
        || symbol.contains("std::vector<leveldb::");
    // Classes inside of LevelDB's C functions, which no header declares.
    let inside = ["leveldb_writebatch_iterate::H", "leveldb_filterpolicy_create_bloom::Wrapper"];
    is_of_std
        || of_tables.iter().any(|begin| symbol.starts_with(begin))
        || inside.iter().any(|end| symbol.ends_with(end))
}

#[test]
fn every_symbol_that_users_of_keys_and_values_need_is_there_and_no_other() {
    if !leveldb::is_there() {
        return;
    }
    let theirs = symbols(&theirs());
    let functions = theirs.iter().filter(|symbol| symbol.starts_with("leveldb_")).count();
    assert_eq!(functions, 68);
    let needed = || theirs.iter().filter(|symbol| !is_left_out(symbol));
    let classes = needed().filter(|symbol| symbol.starts_with("vtableforleveldb::")).count();
    assert_eq!(classes, 14);
    for abi in ["1", "0"] {
        let ours = symbols(&ours().of(abi).join(LIBRARY));
        let missing: Vec<&String> = needed().filter(|symbol| !ours.contains(*symbol)).collect();
        assert!(missing.is_empty(), "{abi}: {missing:#?}");
        let foreign: Vec<&String> =
            ours.iter().filter(|symbol| !symbol.contains("leveldb")).collect();
        assert!(foreign.is_empty(), "{foreign:#?}");
    }
}
