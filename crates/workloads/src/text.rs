//! Bytes as a line of text and back, without loss: escaped, or as hex digits.

use data_encoding::{HEXUPPER, HEXUPPER_PERMISSIVE};

/// `0x` and two digits a byte.
pub fn hex(bytes: &[u8]) -> String {
    format!("0x{}", HEXUPPER.encode(bytes))
}

/// The bytes that hex digits spell.
pub fn from_hex(text: &[u8]) -> Option<Vec<u8>> {
    let digits = text.strip_prefix(b"0x").or(text.strip_prefix(b"0X")).unwrap_or(text);
    HEXUPPER_PERMISSIVE.decode(digits).ok()
}

/// One line of text that [`unescape`] turns back into `bytes`.
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 8);
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                '\t' => text.push_str("\\t"),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                c if c.is_control() => {
                    let mut utf8 = [0; 4];
                    push_escaped(&mut text, c.encode_utf8(&mut utf8).as_bytes());
                }
                c => text.push(c),
            }
        }
        push_escaped(&mut text, chunk.invalid());
    }
    text
}

fn push_escaped(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        text.push_str("\\x");
        HEXUPPER.encode_append(&[*byte], text);
    }
}

/// The byte that two hex digits spell.
fn from_digits(digits: &[u8]) -> Option<u8> {
    let bytes = HEXUPPER_PERMISSIVE.decode(digits).ok()?;
    bytes.first().copied()
}

/// The bytes that an escaped text stands for; says what is wrong with it otherwise.
pub fn unescape(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&b| b == b'\\') {
        bytes.extend_from_slice(&rest[..at]);
        let (byte, length) = match &rest[at + 1..] {
            [b'\\', ..] => (b'\\', 2),
            [b't', ..] => (b'\t', 2),
            [b'n', ..] => (b'\n', 2),
            [b'r', ..] => (b'\r', 2),
            [b'x', digits @ ..] => match digits.get(..2).and_then(from_digits) {
                Some(byte) => (byte, 4),
                None => return Err("`\\x` needs two hex digits".into()),
            },
            [other, ..] => {
                return Err(format!("`\\{}` is no escape", char::from(*other).escape_default()));
            }
            [] => return Err("a backslash at the end".into()),
        };
        bytes.push(byte);
        rest = &rest[at + length..];
    }
    bytes.extend_from_slice(rest);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_left_alone() {
        assert_eq!(escape("Grüße, Welt: 5 < 6".as_bytes()), "Grüße, Welt: 5 < 6");
    }

    #[test]
    fn what_would_break_a_line_is_escaped() {
        assert_eq!(escape(b"a\tb\nc\\d\x00\x1b\xff"), "a\\tb\\nc\\\\d\\x00\\x1B\\xFF");
    }

    #[test]
    fn wrong_escapes_are_refused() {
        for text in ["\\", "a\\q", "\\x", "\\x1", "\\xg0"] {
            assert!(unescape(text.as_bytes()).is_err(), "{text}");
        }
    }
}
