//! Keys and values of records that are JSON objects.
//!
//! Without a key field an object is `{"key": .., "value": ..}`; `key_base64` and `value_base64`
//! carry bytes that are not UTF-8, and a value that is no string is stored as its JSON text, as it
//! stands: numbers keep every digit. `expiry_ms` says when the value expires, in milliseconds since
//! 1970. With a key field, that member is the key; the value is the whole object as it stands, or
//! the member that a value field names.

use super::Record;
use crate::text::from_base64;
use serde_json::value::RawValue;
use shingle::Expiry;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The fields that the command line names.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    /// The member that is the key.
    pub key: Option<String>,
    /// The member that is the value.
    pub value: Option<String>,
}

/// A record that was read.
pub struct Owned {
    key: Vec<u8>,
    value: Vec<u8>,
    expiry: Option<Expiry>,
}

impl Owned {
    /// For those who store it.
    pub fn borrowed(&self) -> Record<'_> {
        Record { key: &self.key, value: &self.value, expiry: self.expiry }
    }
}

/// The members of an object, each value as the text that spells it: no number passes through a
/// type with fewer digits.
pub type Members<'a> = BTreeMap<String, &'a RawValue>;

/// The record that the object in `text` spells.
pub fn record_of(text: &[u8], fields: &Fields) -> Result<Owned, String> {
    let object: Members<'_> =
        serde_json::from_slice(text).map_err(|error| not_an_object(text, &error))?;
    let Some(key_field) = &fields.key else {
        if object.keys().any(|name| name.starts_with("operands")) {
            let message = "a record of operands: only a program that knows their operator can \
                           write them";
            return Err(message.into());
        }
        let (key, value) = (bytes_of(&object, "key")?, bytes_of(&object, "value")?);
        return Ok(Owned { key, value, expiry: expiry_of(&object)? });
    };
    let key = key_of(&object, key_field)?;
    let value = match &fields.value {
        None => text.to_vec(),
        Some(field) => text_of(field, object.get(field).ok_or_else(|| missing(&object, field))?)?,
    };
    Ok(Owned { key, value, expiry: None })
}

fn expiry_of(object: &Members<'_>) -> Result<Option<Expiry>, String> {
    let Some(value) = object.get("expiry_ms") else { return Ok(None) };
    let millis = serde_json::from_str(value.get());
    let millis = millis.map_err(|_| "`expiry_ms` is no number of milliseconds since 1970")?;
    Ok(Some(Expiry::from_millis(millis)))
}

/// The key of an object by its key field.
pub fn key_of(object: &Members<'_>, field: &str) -> Result<Vec<u8>, String> {
    let value = object.get(field).ok_or_else(|| missing(object, field))?;
    match value.get().as_bytes().first() {
        Some(b'"' | b'-' | b'0'..=b'9') => text_of(field, value),
        _ => Err(format!("`{field}` is neither text nor a number")),
    }
}

fn not_an_object(text: &[u8], error: &serde_json::Error) -> String {
    match text.trim_ascii_start().first() {
        Some(b'[') => "an array, not an object; a file that is one array is read with \
                       --format json"
            .into(),
        _ => error.to_string(),
    }
}

fn missing(object: &Members<'_>, field: &str) -> String {
    let names: Vec<&str> = object.keys().take(12).map(String::as_str).collect();
    format!("no field `{field}`; there are {}", names.join(", "))
}

/// The text of a string; of any other value its JSON text. `name` is for errors.
pub fn text_of(name: &str, value: &RawValue) -> Result<Vec<u8>, String> {
    let json = value.get();
    if !json.starts_with('"') {
        return Ok(json.into());
    }
    let text = serde_json::from_str::<String>(json);
    text.map(String::into_bytes).map_err(|error| format!("the string `{name}`: {error}"))
}

fn bytes_of(object: &Members<'_>, name: &str) -> Result<Vec<u8>, String> {
    let coded_name = format!("{name}_base64");
    match (object.get(name), object.get(&coded_name)) {
        (Some(_), Some(_)) => Err(format!("both `{name}` and `{coded_name}`")),
        (Some(value), None) => text_of(name, value),
        (None, Some(coded)) => serde_json::from_str::<Cow<'_, str>>(coded.get())
            .ok()
            .and_then(|text| from_base64(&text))
            .ok_or_else(|| format!("`{coded_name}` is not base64")),
        (None, None) => Err(format!(
            "neither `{name}` nor `{coded_name}`; --key-field names the field that is the key"
        )),
    }
}
