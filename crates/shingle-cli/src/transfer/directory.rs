//! A directory tree: the key is the path below the directory, with `/` between its parts; the value
//! is the file's content. Links, devices and empty directories are not records.

use super::{Each, Record, Sink};
use crate::failure::{Failure, Outcome};
use crate::progress::Bar;
use crate::text::brief;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// Reads every file of the tree, in the order of names.
pub fn read(root: &Path, bar: &Bar, each: Each) -> Outcome {
    for entry in WalkDir::new(root).sort_by_file_name() {
        let entry = entry.map_err(|error| {
            Failure::said(format!("read {}: {error}", root.display()), "look at the permissions")
        })?;
        if !entry.file_type().is_file() {
            continue;
        }
        let path = entry.path();
        let failed = |error| Failure::io(format!("read {}", path.display()), &error);
        let bytes = entry.metadata().map_err(|error| failed(error.into()))?.len();
        if bytes > base::key::VALUE_BYTES_MAX as u64 {
            return Err(Failure::said(
                format!("{}: {bytes} bytes, longer than a value may be", path.display()),
                "move it out of the directory",
            ));
        }
        let value = fs::read(path).map_err(failed)?;
        let key = path.strip_prefix(root).unwrap_or(path).as_os_str().as_bytes();
        each(Record::new(key, &value))?;
        bar.add(value.len() as u64);
    }
    Ok(())
}

/// Refuses a directory that has something in it; one that does not exist is fine.
pub fn check_empty(root: &Path) -> Outcome {
    match fs::read_dir(root).map(|mut entries| entries.next().is_none()) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Failure::io(format!("read {}", root.display()), &error)),
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::said(
            format!("{} is not empty", root.display()),
            "export to a new or empty directory",
        )),
    }
}

/// Removes all that is in a directory.
pub fn clear(root: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}

/// Writes a tree into a new or empty directory.
pub struct Writer {
    root: PathBuf,
}

impl Writer {
    /// Into `root`.
    pub fn new(root: &Path) -> Outcome<Writer> {
        check_empty(root)?;
        let failed = |error| Failure::io(format!("create {}", root.display()), &error);
        fs::create_dir_all(root).map_err(failed)?;
        Ok(Writer { root: root.to_path_buf() })
    }
}

/// The key as a path below the root. `None` where it is none, or leads out of the root, or would be
/// read back as another key.
fn relative(key: &[u8]) -> Option<&Path> {
    let plain = |part: &[u8]| !matches!(part, b"" | b"." | b"..") && !part.contains(&0);
    key.split(|&byte| byte == b'/').all(plain).then(|| Path::new(OsStr::from_bytes(key)))
}

impl Sink for Writer {
    fn put(&mut self, Record { key, value, .. }: Record<'_>) -> Outcome {
        let refuse = |why: &str| {
            Failure::said(
                format!("{}: {why}", brief(key)),
                "keys that are not paths can be exported as tsv, csv or jsonl",
            )
        };
        let path = relative(key).ok_or_else(|| refuse("the key is no relative path"))?;
        let path = self.root.join(path);
        let write = || {
            fs::create_dir_all(path.parent().unwrap_or(&self.root))?;
            File::create_new(&path)?.write_all(value)
        };
        write().map_err(|error| refuse(&format!("cannot be a file: {error}")))
    }

    fn finish(&mut self) -> Outcome {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::relative;

    #[test]
    fn keys_that_lead_out_of_the_root_are_refused() {
        for key in ["", "/etc/passwd", "a//b", "a/", "../x", "a/../../x", "./a", "a\0b"] {
            assert_eq!(relative(key.as_bytes()), None, "{key:?}");
        }
        assert!(relative(b"a/b.c/...").is_some());
    }
}
