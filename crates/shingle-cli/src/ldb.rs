//! Invoked as `ldb`, the command understands the spelling of RocksDB's tool for the data commands:
//! `ldb --db=DIR get KEY`, `put KEY VALUE`, `delete KEY`, `deleterange A B`, `scan --from=A --to=B
//! --max_keys=N --no_value`. It opens Shingle databases only.

use crate::failure::Failure;
use std::ffi::OsString;
use std::path::Path;

const KNOWN: &str = "ldb here knows get, put, delete, deleterange and scan; \
                     for everything else call `shingle`";

/// The arguments as `shingle` would have been given them.
pub fn translate(arguments: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
    let name = arguments.first().and_then(|name| Path::new(name).file_stem());
    if name.is_none_or(|name| name != "ldb") {
        return Ok(arguments);
    }
    let mut translated: Vec<OsString> = vec!["ldb".into()];
    let mut command_seen = false;
    for argument in &arguments[1..] {
        match argument.to_str() {
            Some(text) if text.starts_with("--") => {
                if let Some(flag) = flag(text)? {
                    translated.push(flag.into());
                }
            }
            Some(text) if !command_seen => {
                translated.push(command(text)?.into());
                command_seen = true;
            }
            _ => translated.push(argument.clone()),
        }
    }
    if !command_seen {
        return Err(Failure::usage("ldb: no command", KNOWN));
    }
    Ok(translated)
}

fn command(name: &str) -> Result<&'static str, Failure> {
    match name {
        "get" => Ok("get"),
        "put" => Ok("put"),
        "delete" => Ok("delete"),
        "deleterange" => Ok("delete-range"),
        "scan" => Ok("scan"),
        _ => Err(Failure::usage(format!("ldb: unknown command {name}"), KNOWN)),
    }
}

/// `None`: the flag asks for what happens anyway.
fn flag(flag: &str) -> Result<Option<String>, Failure> {
    let (name, value) = flag.split_once('=').map_or((flag, None), |(n, v)| (n, Some(v)));
    let renamed = match name {
        "--db" | "--from" | "--to" | "--hex" | "--help" => name,
        "--column_family" => "--keyspace",
        "--max_keys" => "--limit",
        "--no_value" => "--keys-only",
        "--create_if_missing" | "--try_load_options" => return Ok(None),
        _ => return Err(Failure::usage(format!("ldb: unknown flag {name}"), KNOWN)),
    };
    Ok(Some(value.map_or(renamed.to_string(), |value| format!("{renamed}={value}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(line: &str) -> Result<String, Failure> {
        let words = translate(line.split(' ').map(OsString::from).collect())?;
        Ok(words.join(" ".as_ref()).into_string().expect("the test's words are text"))
    }

    #[test]
    fn other_names_are_left_alone() {
        assert_eq!(translated("shingle --max_keys=3").unwrap(), "shingle --max_keys=3");
    }

    #[test]
    fn flags_and_commands_are_renamed() {
        assert_eq!(
            translated("/usr/bin/ldb --db=x --create_if_missing scan --max_keys=3 --no_value")
                .unwrap(),
            "ldb --db=x scan --limit=3 --keys-only"
        );
        assert_eq!(
            translated("ldb --db=x deleterange a b").unwrap(),
            "ldb --db=x delete-range a b"
        );
    }

    #[test]
    fn what_is_unknown_is_wrong_usage() {
        assert!(matches!(translated("ldb manifest_dump"), Err(Failure::Usage { .. })));
        assert!(matches!(translated("ldb --ttl get a"), Err(Failure::Usage { .. })));
    }
}
