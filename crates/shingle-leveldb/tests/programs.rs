//! LevelDB's C and C++ interfaces, as programs use them.
//!
//! Programs are compiled here against LevelDB's own headers, once, and run on LevelDB's own library
//! and on ours: their output must be the same. They also run on ours under valgrind, where it is
//! installed.

#![allow(clippy::unwrap_used, clippy::print_stdout)]
#![cfg(target_os = "linux")]

mod leveldb;

use std::collections::{BTreeMap, BTreeSet};
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
    compiled_with(folder, source, abi, &[])
}

fn compiled_with(folder: &Path, source: &str, abi: &str, flags: &[&str]) -> PathBuf {
    let (compiler, standard) = match source.ends_with(".cc") {
        true => ("g++", "-std=c++17"),
        false => ("gcc", "-std=c99"),
    };
    let program = folder.join(source.replace(['/', '.'], "-"));
    run(leveldb::command(compiler)
        .args([standard, "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g", "-O1"])
        .arg(format!("-D_GLIBCXX_USE_CXX11_ABI={abi}"))
        .args(flags)
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
    assert!(before.contains_key(&foreign.join("CURRENT")), "{before:?}");
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

/// Everything below a folder, with the bytes of files.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        }
        found.insert(path.clone(), std::fs::read(&path).ok());
    }
    found
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

/// Makes a database of 1,000 keys whose table is damaged, and gives the table's name.
fn damaged(path: &Path) -> String {
    let db = shingle::Options::new().open(path).unwrap();
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
    table
}

#[test]
fn damage_is_an_error_and_repair_saves_the_rest() {
    if !leveldb::is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (path, program) = (folder.path().join("db"), compiled(folder.path(), "c/damage.c", "1"));
    let table = damaged(&path);
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

/// Runs `tests/c/raced.c` on our library.
fn raced(what: &str, rounds: u32, prepare: impl Fn(&Path)) {
    if !leveldb::is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(folder.path(), "c/raced.c", "1");
    for round in 0..if what == "repair" { rounds } else { 1 } {
        let path = folder.path().join(format!("db{round}"));
        prepare(&path);
        let mut race = with(Some("1"), &program);
        let text = run(race.arg(what).arg(&path).arg(rounds.to_string()));
        assert!(text.ends_with("done\n"), "{text}");
    }
}

#[test]
fn no_two_processes_have_a_database_that_a_third_one_removes() {
    raced("destroy", 25, |_| {});
}

#[test]
fn a_process_beside_a_repair_writes_before_it_or_into_what_was_saved() {
    raced("repair", 20, |path| drop(damaged(path)));
}

#[test]
fn of_processes_that_create_a_database_at_once_one_does() {
    raced("new", 50, |_| {});
}

#[test]
fn a_child_of_a_dead_owner_keeps_no_database_locked() {
    if !leveldb::is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(folder.path(), "c/forked.c", "1");
    assert_eq!(run(with(Some("1"), &program).arg(folder.path().join("db"))), "done\n");
}

#[test]
fn programs_without_type_information_hand_in_classes_of_their_own() {
    if !leveldb::is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for abi in ["1", "0"] {
        let (inside, flags) = (data(folder.path(), abi), ["-fno-rtti"]);
        let program = compiled_with(&inside, "cxx/untyped.cc", abi, &flags);
        let text = run(with(Some(abi), &program).arg(data(&inside, "ours")));
        assert!(text.ends_with("done\n"), "{text}");
        if abi == "1" {
            assert_eq!(run(with(None, &program).arg(data(&inside, "theirs"))), text);
        }
    }
}

/// What `tests/c/tool.c` says on our library.
fn tool(folder: &Path, action: &str, path: &Path, as_nobody: bool) -> String {
    let program = folder.join("c-tool-c");
    if !program.exists() {
        compiled(folder, "c/tool.c", "1");
    }
    let mut tool = with(Some("1"), &program);
    tool.arg(action).arg(path).args(as_nobody.then_some("as-nobody"));
    run(&mut tool).trim_end().to_string()
}

#[test]
fn a_removal_takes_every_file_of_shingle_and_no_other() {
    if !leveldb::is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    for foreign in [None, Some("notes.txt"), Some("000012.ldb"), Some("LOG.mine")] {
        let options = shingle::Options::new().values("log").value_threshold_bytes(100);
        let db = options.write_buffer_bytes(16 << 10).open(&path).unwrap();
        for n in 0..200 {
            db.put(format!("key{n}"), vec![n as u8; 1000]).unwrap();
        }
        db.keep_value_threshold(500).unwrap();
        db.compact().unwrap();
        db.close().unwrap();
        assert!(path.join("THRESHOLD").exists() && path.join("LOG").exists());
        if let Some(foreign) = foreign {
            std::fs::write(path.join(foreign), "mine").unwrap();
        }
        assert_eq!(tool(folder.path(), "destroy", &path, false), "OK");
        match foreign {
            None => assert!(!path.exists()),
            Some(foreign) => {
                let left = BTreeMap::from([(path.join(foreign), Some(b"mine".to_vec()))]);
                assert_eq!(contents(&path), left);
                std::fs::remove_dir_all(&path).unwrap();
            }
        }
    }
}

#[test]
fn a_place_for_no_database_is_refused_and_stays_as_it_is() {
    if !leveldb::is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let home = data(folder.path(), "home");
    let path = |name: &str| home.join(name);
    std::fs::write(path("file"), "mine").unwrap();
    data(&home, "empty");
    data(&home, "documents");
    std::fs::write(path("documents/letter"), "mine").unwrap();
    data(&home, "rocksdb");
    std::fs::write(path("rocksdb/CURRENT"), "MANIFEST-000004\n").unwrap();
    std::fs::write(path("rocksdb/000008.sst"), "a table").unwrap();
    data(&home, "other");
    std::fs::write(path("other/CURRENT"), [0; 300]).unwrap();
    let before = contents(&home);
    let (none, ok) = ("does not exist (create_if_missing is false)", "OK");
    let empty = "Invalid argument: the name of the database is empty";
    let no_directory = "IO error: ";
    let (leveldb, foreign) = ("import --format leveldb", "which is not Shingle's");
    let place = |name: &str| if name.is_empty() { PathBuf::new() } else { path(name) };
    for (name, of_open, of_create, of_destroy, of_repair) in [
        ("", empty, empty, empty, empty),
        ("file", no_directory, no_directory, no_directory, no_directory),
        ("file/db", no_directory, no_directory, no_directory, no_directory),
        ("missing", none, "", ok, "IO error: "),
        ("empty", none, "", ok, "no database in"),
        ("documents", none, foreign, ok, "no database in"),
        ("rocksdb", leveldb, leveldb, leveldb, leveldb),
        ("other", "Corruption: ", "Corruption: ", "", ""),
    ] {
        for (action, expected) in [
            ("open", of_open),
            ("create", of_create),
            ("new", of_create),
            ("destroy", of_destroy),
            ("repair", of_repair),
        ] {
            if expected.is_empty() {
                continue;
            }
            let said = tool(folder.path(), action, &place(name), false);
            assert!(said.contains(expected), "{action} {name}: {said}");
            assert!(contents(&home) == before, "{action} {name} changed something");
        }
    }
}

#[test]
fn a_place_without_rights_is_refused_and_stays_as_it_is() {
    use std::os::unix::fs::PermissionsExt;
    if !leveldb::is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let rights = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    rights(folder.path(), 0o755);
    let home = data(folder.path(), "home");
    let path = home.join("db");
    // Compiled, and once used, by who has the rights.
    assert_eq!(tool(folder.path(), "create", &path, false), "OK");
    let before = contents(&home);
    for (of_home, of_database) in [(0o755, 0o500), (0o000, 0o700)] {
        rights(&path, of_database);
        rights(&home, of_home);
        for action in ["open", "create", "new", "destroy", "repair"] {
            let said = tool(folder.path(), action, &path, true);
            assert!(said.starts_with("IO error: "), "{action}: {said}");
            assert!(said.contains("Permission denied"), "{action}: {said}");
        }
        rights(&home, 0o755);
        rights(&path, 0o700);
        assert!(contents(&home) == before);
    }
}

#[test]
fn an_existing_database_is_refused_where_a_new_one_is_wanted() {
    if !leveldb::is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    assert_eq!(tool(folder.path(), "new", &path, false), "OK");
    let before = contents(&path);
    let said = tool(folder.path(), "new", &path, false);
    assert!(said.starts_with("Invalid argument: "), "{said}");
    assert!(said.ends_with("exists (error_if_exists is true)"), "{said}");
    assert!(contents(&path) == before);
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
