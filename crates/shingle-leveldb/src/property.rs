//! Properties by LevelDB's names, in the form that LevelDB's have.

use shingle::{Db, FileInfo, LevelStats, Stats};
use std::fmt::Write;

/// Levels that LevelDB has: programs ask for the files of each.
const LEVELS: usize = 7;

const MEGABYTE: f64 = 1048576.0;

/// The property of this name; `None` where LevelDB has none.
pub fn value(db: &Db, name: &str) -> Option<String> {
    let name = name.strip_prefix("leveldb.")?;
    if let Some(level) = name.strip_prefix("num-files-at-level") {
        let is_number = !level.is_empty() && level.bytes().all(|byte| byte.is_ascii_digit());
        let level = level.parse().ok().filter(|level| is_number && *level < LEVELS)?;
        return Some(files_at(&db.stats(), level).to_string());
    }
    match name {
        "stats" => Some(table(&db.stats())),
        "sstables" => Some(listing(&db.files())),
        "approximate-memory-usage" => {
            let stats = db.stats();
            Some((stats.memtable_bytes + stats.cache_bytes).to_string())
        }
        _ => None,
    }
}

/// Files of a level. The last of LevelDB's levels has those of all deeper ones too.
fn files_at(stats: &Stats, level: usize) -> u64 {
    let files = |level: &LevelStats| level.shape.files;
    match level + 1 {
        LEVELS => stats.levels.iter().skip(level).map(files).sum(),
        _ => stats.levels.get(level).map_or(0, files),
    }
}

fn table(stats: &Stats) -> String {
    let mut text = String::from(
        "                               Compactions\n\
         Level  Files Size(MB) Time(sec) Read(MB) Write(MB)\n\
         --------------------------------------------------\n",
    );
    let is_used = |level: &&LevelStats| level.shape.files > 0 || level.count > 0;
    for level in stats.levels.iter().filter(is_used) {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{:>3} {:>8} {:>8.0} {:>9.0} {:>8.0} {:>9.0}",
            level.shape.level,
            level.shape.files,
            level.shape.bytes as f64 / MEGABYTE,
            level.seconds,
            (level.read_bytes_upper + level.read_bytes_lower) as f64 / MEGABYTE,
            level.write_bytes as f64 / MEGABYTE,
        );
    }
    text
}

fn listing(files: &[FileInfo]) -> String {
    let mut text = String::new();
    let deepest = files.iter().map(|file| usize::from(file.level) + 1).max();
    for level in 0..deepest.unwrap_or(0).max(LEVELS) {
        let _ = writeln!(text, "--- level {level} ---");
        for file in files.iter().filter(|file| usize::from(file.level) == level) {
            let number = file.name.split('.').next().unwrap_or_default().trim_start_matches('0');
            let largest = file.largest.as_deref().map_or("(end)".into(), escaped);
            let smallest = escaped(&file.smallest);
            let _ = writeln!(text, " {number}:{}[{smallest} .. {largest}]", file.bytes);
        }
    }
    text
}

/// A key between quotes, with bytes that are not printed as numbers.
fn escaped(key: &[u8]) -> String {
    let mut text = String::from("'");
    for &byte in key {
        match byte {
            b' '..=b'~' => text.push(char::from(byte)),
            _ => {
                let _ = write!(text, "\\x{byte:02x}");
            }
        }
    }
    text.push('\'');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_have_the_form_of_leveldbs() {
        let folder = tempfile::tempdir().unwrap();
        let db = shingle::Options::new().open(folder.path()).unwrap();
        for n in 0..1000 {
            db.put(format!("key\u{1}{n:04}"), vec![7; 100]).unwrap();
        }
        let memory: u64 = value(&db, "leveldb.approximate-memory-usage").unwrap().parse().unwrap();
        assert!(memory > 100_000, "{memory}");
        db.flush().unwrap();
        let files = |level| value(&db, &format!("leveldb.num-files-at-level{level}")).unwrap();
        let all: u64 = (0..LEVELS).map(|level| files(level).parse::<u64>().unwrap()).sum();
        assert_eq!(all, 1);
        let stats = value(&db, "leveldb.stats").unwrap();
        let lines: Vec<&str> = stats.lines().collect();
        assert_eq!(lines[1], "Level  Files Size(MB) Time(sec) Read(MB) Write(MB)");
        assert_eq!(lines[3].split_whitespace().count(), 6, "{stats}");
        let tables = value(&db, "leveldb.sstables").unwrap();
        let begin = tables.find("['key\\x010000' .. '").unwrap();
        assert!(tables.starts_with("--- level 0 ---\n") && begin > 0, "{tables}");
        let others = ["leveldb.num-files-at-level7", "leveldb.num-files-at-level", "rocksdb.stats"];
        for name in others.into_iter().chain(["leveldb.num-files-at-level-1", "leveldb.", "stats"])
        {
            assert_eq!(value(&db, name), None, "{name}");
        }
    }
}
