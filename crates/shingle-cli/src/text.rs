//! Bytes as text and back, without loss.
//!
//! - **escaped**: text stays as it is; backslash, control characters and bytes that are not UTF-8
//!   become `\\`, `\t`, `\n`, `\r` or `\xHH`. One record is always one line.
//! - **hex**: two digits a byte, with or without `0x` in front.
//! - **base64**: RFC 4648 with padding, where JSON or CSV must carry bytes that are not text.

use data_encoding::BASE64;
use serde_json::{Map, Value};
use shingle::{Expiry, Unmerged};
use std::borrow::Cow;
pub use workloads::text::{escape, from_hex, hex, unescape};

/// The widest line of a sentence in output.
pub const COLUMNS: usize = 80;

/// How bytes are spelled on the command line and in lines of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// As they are going in, escaped coming out.
    Text,
    /// Hex digits, `0x` in front coming out.
    Hex,
}

impl Notation {
    /// Reads an argument of the command line.
    pub fn read(self, argument: &std::ffi::OsStr) -> Result<Vec<u8>, String> {
        let bytes = argument.as_encoded_bytes();
        match self {
            Notation::Text => Ok(bytes.to_vec()),
            Notation::Hex => from_hex(bytes).ok_or_else(|| {
                format!("`{}` is not hex: an even number of hex digits", argument.display())
            }),
        }
    }

    /// Spells `bytes` for a line of output.
    pub fn show(self, bytes: &[u8]) -> String {
        match self {
            Notation::Text => escape(bytes),
            Notation::Hex => hex(bytes),
        }
    }
}

/// A record as a JSON object: `key` or, where it is not UTF-8, `key_base64`; the value likewise.
pub fn record(key: &[u8], value: Option<&[u8]>) -> Map<String, Value> {
    let mut object = Map::new();
    add(&mut object, "key", key);
    if let Some(value) = value {
        add(&mut object, "value", value);
    }
    object
}

/// [`record`] with `expiry_ms`, when the value expires, in milliseconds since 1970.
pub fn expiring_record(
    key: &[u8],
    value: Option<&[u8]>,
    expiry: Option<Expiry>,
) -> Map<String, Value> {
    let mut object = record(key, value);
    add_expiry(&mut object, expiry);
    object
}

fn add_expiry(object: &mut Map<String, Value>, expiry: Option<Expiry>) {
    if let Some(expiry) = expiry {
        object.insert("expiry_ms".into(), expiry.as_millis().into());
    }
}

/// A key whose operands are not merged: `operands`, oldest first, or `operands_base64` where one is
/// not UTF-8. If there is a value below them, also `base`, and `expiry_ms` when that value expires.
pub fn unmerged_record(
    key: &[u8],
    held: &Unmerged,
    base_expiry: Option<Expiry>,
) -> Map<String, Value> {
    let mut object = Map::new();
    add(&mut object, "key", key);
    if let Some(base) = &held.base {
        add(&mut object, "base", base);
    }
    add_expiry(&mut object, base_expiry);
    let texts = held.operands.iter().map(|operand| std::str::from_utf8(operand));
    match texts.collect::<Result<Vec<&str>, _>>() {
        Ok(texts) => object.insert("operands".into(), texts.into()),
        Err(_) => {
            let coded: Vec<String> = held.operands.iter().map(|o| base64(o)).collect();
            object.insert("operands_base64".into(), coded.into())
        }
    };
    object
}

/// Adds `name` to an object; or `name_base64`, where the bytes are not UTF-8.
pub fn add(object: &mut Map<String, Value>, name: &str, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => object.insert(name.into(), text.into()),
        Err(_) => object.insert(format!("{name}_base64"), base64(bytes).into()),
    };
}

/// Keys of a scan or an export whose operands are not merged.
#[derive(Default)]
pub struct NotMerged {
    /// How many.
    pub keys: u64,
    /// Why the first is not.
    first: String,
}

impl NotMerged {
    /// One more.
    pub fn add(&mut self, held: &Unmerged) {
        if self.keys == 0 {
            self.first = held.error.message().into();
        }
        self.keys += 1;
    }

    /// In a sentence.
    pub fn sentence(&self, what_of_them: &str) -> String {
        format!("{} keys {what_of_them}; the first: {}", self.keys, self.first)
    }
}

/// RFC 4648 base64 with padding.
pub fn base64(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// The bytes that base64 spells; `None` when it is not base64 or has bits that mean nothing.
pub fn from_base64(text: &str) -> Option<Vec<u8>> {
    // The crate would also join texts that each end with padding.
    let is_one_text = !text.trim_end_matches('=').contains('=');
    if is_one_text { BASE64.decode(text.as_bytes()).ok() } else { None }
}

/// `line` folded between words to at most `columns`; what goes on is indented.
pub fn fold(line: &str, columns: usize) -> String {
    let mut text = String::new();
    let mut width = 0;
    for word in line.split(' ') {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > columns {
            text.push_str("\n  ");
            width = 2;
        } else if width > 0 {
            text.push(' ');
            width += 1;
        }
        text.push_str(word);
        width += length;
    }
    text
}

/// A key in a sentence: escaped, and cut where it is long.
pub fn brief(key: &[u8]) -> Cow<'static, str> {
    const CHARS_MAX: usize = 80;
    if key.is_empty() {
        return "(the empty key)".into();
    }
    let text = escape(key);
    match text.char_indices().nth(CHARS_MAX) {
        Some((at, _)) => format!("{}...", &text[..at]).into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn base64_of_the_standard() {
        let pairs =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (plain, coded) in pairs {
            assert_eq!(base64(plain.as_bytes()), coded);
            assert_eq!(from_base64(coded).as_deref(), Some(plain.as_bytes()));
        }
        for wrong in ["Z", "Zg=", "Zh==", "Z===", "====", "Zm 9", "Zg==Zg==", "Zg==Zm9v"] {
            assert_eq!(from_base64(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn lines_are_folded_between_words() {
        assert_eq!(fold("one two three", 80), "one two three");
        assert_eq!(fold("one two three", 8), "one two\n  three");
        assert_eq!(fold("unbreakable", 4), "unbreakable");
    }

    #[test]
    fn long_keys_are_cut_between_characters() {
        assert!(brief("ü".repeat(200).as_bytes()).ends_with("ü..."));
    }

    proptest! {
        #[test]
        fn every_notation_returns_the_bytes(
            bytes in proptest::collection::vec(any::<u8>(), 0..200)
        ) {
            let line = escape(&bytes);
            prop_assert!(!line.contains(['\n', '\t', '\r']));
            prop_assert_eq!(unescape(line.as_bytes()), Ok(bytes.clone()));
            prop_assert_eq!(from_hex(hex(&bytes).as_bytes()), Some(bytes.clone()));
            prop_assert_eq!(from_base64(&base64(&bytes)), Some(bytes));
        }

        #[test]
        fn hostile_text_never_panics(text in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = unescape(&text);
            let _ = from_hex(&text);
            let _ = from_base64(&String::from_utf8_lossy(&text));
        }
    }
}
