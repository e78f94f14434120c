//! A line of a shell as words.
//!
//! Spaces and tabs separate words. Single quotes take everything as it stands. Elsewhere, also in
//! double quotes, a backslash escapes as in the output of `scan`, so that a key from there can be
//! given back; it also takes a space or a quote for what it is.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// The words of a line; none of an empty line or a comment.
pub fn split(line: &[u8]) -> Result<Vec<OsString>, String> {
    let line = line.trim_ascii();
    let mut words = Vec::new();
    if line.starts_with(b"#") {
        return Ok(words);
    }
    let mut rest = line;
    while !rest.is_empty() {
        words.push(OsString::from_vec(word(&mut rest)?));
        rest = rest.trim_ascii_start();
    }
    Ok(words)
}

/// Takes one word off the line.
fn word(rest: &mut &[u8]) -> Result<Vec<u8>, String> {
    let mut word = Vec::new();
    let mut quote = None;
    while let [first, after @ ..] = *rest {
        *rest = after;
        match (quote, *first) {
            (None, b' ' | b'\t') => return Ok(word),
            (None, b'\'' | b'"') => quote = Some(*first),
            (Some(open), byte) if open == byte => quote = None,
            (None | Some(b'"'), b'\\') => word.push(escaped(rest)?),
            (_, byte) => word.push(byte),
        }
    }
    match quote {
        None => Ok(word),
        Some(open) => Err(format!("a {} without its end", char::from(open))),
    }
}

/// Takes what stands behind a backslash off the line.
fn escaped(rest: &mut &[u8]) -> Result<u8, String> {
    let (byte, length) = match *rest {
        [byte @ (b'\\' | b'\'' | b'"' | b' '), ..] => (*byte, 1),
        [b't', ..] => (b'\t', 1),
        [b'n', ..] => (b'\n', 1),
        [b'r', ..] => (b'\r', 1),
        [b'x', high, low, ..] => match crate::text::from_hex(&[*high, *low]) {
            Some(bytes) => (bytes[0], 3),
            None => return Err("`\\x` needs two hex digits".into()),
        },
        [b'x', ..] => return Err("`\\x` needs two hex digits".into()),
        [other, ..] => {
            return Err(format!("`\\{}` is no escape", char::from(*other).escape_default()));
        }
        [] => return Err("a backslash at the end".into()),
    };
    *rest = &rest[length..];
    Ok(byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::escape;
    use proptest::prelude::*;
    use std::os::unix::ffi::OsStrExt;

    fn words(line: &str) -> Vec<String> {
        let words = split(line.as_bytes()).unwrap();
        words.iter().map(|word| escape(word.as_bytes())).collect()
    }

    #[test]
    fn quotes_keep_spaces_and_backslashes_escape() {
        assert_eq!(words("  put a\t b  "), ["put", "a", "b"]);
        assert_eq!(
            words(r#"put "two words" 'it''s \n' x"y z"w"#),
            ["put", "two words", r"its \\n", "xy zw"]
        );
        assert_eq!(
            words(r#"get two\nlines \xFF\\ a\ b "q\"q" '' """#),
            ["get", r"two\nlines", r"\xFF\\", "a b", r#"q"q"#, "", ""]
        );
    }

    #[test]
    fn comments_and_empty_lines_have_no_words() {
        for line in ["", "  \t", "# put a b", "  #"] {
            assert_eq!(split(line.as_bytes()), Ok(Vec::new()), "{line}");
        }
        assert_eq!(words("put #1 a#b"), ["put", "#1", "a#b"]);
    }

    #[test]
    fn what_has_no_meaning_is_refused() {
        for line in ["'a", "\"a", "a\\", "\\q", "\\x1", "\\xg0", "it's"] {
            assert!(split(line.as_bytes()).is_err(), "{line}");
        }
    }

    proptest! {
        #[test]
        fn what_scan_prints_is_read_back(
            keys in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..5)
        ) {
            let quoted = |key: &Vec<u8>| format!("\"{}\"", escape(key).replace('"', "\\\""));
            let line = keys.iter().map(quoted).collect::<Vec<_>>().join(" ");
            let words = split(line.as_bytes()).unwrap().into_iter();
            prop_assert_eq!(words.map(OsString::into_vec).collect::<Vec<_>>(), keys);
        }

        #[test]
        fn hostile_lines_never_panic(line in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = split(&line);
        }
    }
}
