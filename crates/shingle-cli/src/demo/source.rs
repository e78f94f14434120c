//! Finds real data on this machine: whatever can build this has Rust sources and documentation; a
//! Debian has its package index as well.

use crate::failure::{Failure, Outcome};
use crate::transfer::Stanzas;
use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use walkdir::WalkDir;

/// Files larger than this are passed over.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What became of a record since the import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// As imported.
    #[default]
    Original,
    /// With [`super::load::UPDATE`] at its end.
    Updated,
    /// Gone.
    Deleted,
}

/// A record that the demonstration keeps track of.
#[derive(Clone, Debug)]
pub struct Tracked {
    /// The key.
    pub key: Vec<u8>,
    /// Where its value comes from; empty for a package.
    pub path: PathBuf,
    /// Checksum of the value as imported.
    pub checksum: u64,
    /// What became of it.
    pub state: State,
}

/// A directory to take files from.
#[derive(Clone, Debug)]
pub struct Root {
    /// The first part of the keys.
    pub name: String,
    /// The directory.
    pub path: PathBuf,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    /// Files by origin, in the order of names.
    pub files: Vec<(Root, Vec<(Tracked, u64)>)>,
    /// The package index, if this machine has one.
    pub packages: Option<Packages>,
    /// Maximum bytes of stanzas.
    pub packages_bytes_max: u64,
}

impl Found {
    /// Bytes of the files.
    pub fn file_bytes(&self) -> u64 {
        self.files.iter().flat_map(|(_, files)| files).map(|(_, bytes)| bytes).sum()
    }
}

/// Looks for up to `bytes_max` bytes; `from`: only there.
pub fn find(bytes_max: u64, from: &[PathBuf]) -> Outcome<Found> {
    let packages = if from.is_empty() { Packages::find() } else { None };
    let packages_bytes_max = if packages.is_some() { bytes_max / 3 } else { 0 };
    let mut found = Found { files: Vec::new(), packages, packages_bytes_max };
    let roots = if from.is_empty() { usual_roots() } else { named_roots(from) };
    let mut left = bytes_max - packages_bytes_max;
    let count = roots.len() as u64;
    for (i, root) in roots.into_iter().enumerate() {
        let files = files_below(&root, left / (count - i as u64));
        left -= files.iter().map(|(_, bytes)| bytes).sum::<u64>();
        if !files.is_empty() {
            found.files.push((root, files));
        }
    }
    if found.files.is_empty() {
        return Err(Failure::said(
            "found no data for the demonstration on this machine",
            "name a directory with some files: `shingle demo --source DIR`",
        ));
    }
    Ok(found)
}

fn named_roots(from: &[PathBuf]) -> Vec<Root> {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let root =
        |path: &PathBuf| Root { name: name(path).unwrap_or("root".into()), path: path.clone() };
    from.iter().map(root).collect()
}

/// The directories that are here, smallest appetite first, so that what one leaves goes to the
/// next.
fn usual_roots() -> Vec<Root> {
    let mut roots = vec![
        Root { name: "python".into(), path: "/usr/lib/python3".into() },
        Root { name: "doc".into(), path: "/usr/share/doc".into() },
        Root { name: "include".into(), path: "/usr/include".into() },
    ];
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let cargo = std::env::var_os("CARGO_HOME").map_or(home.join(".cargo"), PathBuf::from);
    roots.push(Root { name: "cargo".into(), path: cargo.join("registry/src") });
    if let Some(sysroot) = sysroot() {
        roots.push(Root { name: "rust-src".into(), path: sysroot.join("lib/rustlib/src") });
        roots.push(Root { name: "rust-doc".into(), path: sysroot.join("share/doc/rust/html") });
    }
    roots.retain(|root| root.path.is_dir());
    roots
}

fn sysroot() -> Option<PathBuf> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| PathBuf::from(text.trim()))
}

fn files_below(root: &Root, bytes_max: u64) -> Vec<(Tracked, u64)> {
    let mut left = bytes_max;
    let mut files = Vec::new();
    for entry in WalkDir::new(&root.path).sort_by_file_name().into_iter().flatten() {
        let Ok(metadata) = entry.metadata() else { continue };
        let bytes = metadata.len();
        if !metadata.is_file() || bytes == 0 || bytes > FILE_BYTES_MAX.min(left) {
            continue;
        }
        let below = entry.path().strip_prefix(&root.path).unwrap_or(entry.path());
        let mut key = format!("{}/", root.name).into_bytes();
        key.extend_from_slice(below.as_os_str().as_encoded_bytes());
        if key.len() > base::key::KEY_BYTES_MAX {
            continue;
        }
        let path = entry.path().to_path_buf();
        files.push((Tracked { key, path, checksum: 0, state: State::Original }, bytes));
        left -= bytes;
        if left == 0 {
            break;
        }
    }
    files
}

/// The Debian package index.
#[derive(Clone, Debug)]
pub enum Packages {
    /// All available packages, by `apt-cache dumpavail`.
    Available,
    /// The installed packages, where there is no apt.
    Installed(PathBuf),
}

impl Packages {
    fn find() -> Option<Packages> {
        let has_index = || {
            let lists = std::fs::read_dir("/var/lib/apt/lists").ok()?;
            let is_index = |name: &str| name.contains("_Packages");
            lists.flatten().find(|file| is_index(&file.file_name().to_string_lossy()))
        };
        let has_tool = Command::new("apt-cache").arg("--version").output().is_ok();
        if has_tool && has_index().is_some() {
            return Some(Packages::Available);
        }
        let status = PathBuf::from("/var/lib/dpkg/status");
        status.is_file().then_some(Packages::Installed(status))
    }

    /// Calls `each` with name and stanza of every package, the first stanza of a name only, until
    /// `bytes_max` bytes were given.
    pub fn read(&self, bytes_max: u64, each: &mut dyn FnMut(&[u8], &[u8]) -> Outcome) -> Outcome {
        let failed = |error| Failure::io("read the package index", &error);
        let mut child = None;
        let mut input: Box<dyn BufRead> = match self {
            Packages::Available => {
                let mut apt = Command::new("apt-cache")
                    .arg("dumpavail")
                    .stdout(Stdio::piped())
                    .stderr(Stdio::null())
                    .spawn()
                    .map_err(failed)?;
                let output = apt.stdout.take().expect("stdout was asked for");
                child = Some(apt);
                Box::new(BufReader::with_capacity(1 << 18, output))
            }
            Packages::Installed(path) => {
                Box::new(BufReader::new(std::fs::File::open(path).map_err(failed)?))
            }
        };
        let outcome = each_package(&mut input, bytes_max, each);
        // A tool that still writes ends when its pipe closes.
        drop(input);
        if let Some(mut child) = child {
            let _ = child.wait();
        }
        outcome
    }
}

fn each_package(
    input: &mut dyn BufRead,
    bytes_max: u64,
    each: &mut dyn FnMut(&[u8], &[u8]) -> Outcome,
) -> Outcome {
    let mut names: HashSet<Vec<u8>> = HashSet::new();
    let mut stanzas = Stanzas::default();
    let mut bytes = 0;
    let mut line = Vec::new();
    while bytes < bytes_max {
        line.clear();
        let read = input.read_until(b'\n', &mut line);
        let end = read.map_err(|error| Failure::io("read the package index", &error))? == 0;
        let stanza = if end {
            stanzas.end()
        } else {
            stanzas.line(line.strip_suffix(b"\n").unwrap_or(&line))
        };
        if let Some(stanza) = stanza
            && let Some(name) = Stanzas::field(&stanza, "Package")
            && names.insert(name.to_vec())
        {
            bytes += stanza.len() as u64;
            each(name, &stanza)?;
        }
        if end {
            break;
        }
    }
    Ok(())
}
