//! What is written is read back, and hostile input is refused in words.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

fn place(format: Format) -> Place {
    Place {
        path: "-".into(),
        format,
        fields: Fields::default(),
        is_raw: false,
        has_no_header: false,
        is_compressed: false,
        is_without_expiry: false,
        family: None,
    }
}

fn write(format: Format, records: &Records) -> Vec<u8> {
    let mut out = Vec::new();
    let mut sink = place(format).sink(&mut out).unwrap();
    for (key, value) in records {
        sink.put(Record::new(key, value)).unwrap();
    }
    sink.finish().unwrap();
    drop(sink);
    out
}

fn read(format: Format, text: &[u8]) -> Outcome<Records> {
    read_with(format, text, &Fields::default(), false)
}

fn read_with(format: Format, text: &[u8], fields: &Fields, is_raw: bool) -> Outcome<Records> {
    let mut records = Records::new();
    let mut input = text;
    let mut each = |record: Record<'_>| {
        records.insert(record.key.to_vec(), record.value.to_vec());
        Ok(())
    };
    match format {
        Format::Tsv => tsv::read("test", &mut input, is_raw, &mut each)?,
        Format::Csv => csv::read("test", &mut input, fields, false, &mut each)?,
        Format::Jsonl => jsonl::read("test", &mut input, fields, &mut each)?,
        Format::Json => json::read("test", &mut input, fields, &mut each)?,
        Format::Deb822 => deb822::read("test", &mut input, None, &mut each)?,
        Format::Dir | Format::Leveldb | Format::Rocksdb => {
            unreachable!("directories are tested through the command")
        }
    }
    Ok(records)
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..40),
        proptest::collection::vec(
            proptest::sample::select(b" \t\r\n\\\",;:x0\xff\x00k".to_vec()),
            0..12
        ),
        ".{0,20}".prop_map(String::into_bytes),
    ]
}

proptest! {
    #[test]
    fn records_come_back(records in proptest::collection::btree_map(bytes(), bytes(), 0..8)) {
        for format in [Format::Tsv, Format::Csv, Format::Jsonl, Format::Json] {
            let text = write(format, &records);
            prop_assert_eq!(&read(format, &text).unwrap(), &records);
        }
    }

    #[test]
    fn hostile_text_never_panics(text in bytes()) {
        for format in [Format::Tsv, Format::Csv, Format::Jsonl, Format::Json, Format::Deb822] {
            let _ = read(format, &text);
        }
    }

    #[test]
    fn a_stanza_comes_back_or_is_refused(key in bytes(), value in bytes()) {
        let mut out = Vec::new();
        let mut sink = deb822::Writer::new(&mut out, None);
        let value = [b"Package: ", &key[..], b"\n", &value[..]].concat();
        if sink.put(Record::new(&key, &value)).is_ok() {
            let expected = Records::from([(key, value)]);
            prop_assert_eq!(read(Format::Deb822, &out).unwrap(), expected);
        }
    }
}

#[test]
fn a_header_named_like_a_record_is_not_lost() {
    let records = Records::from([(b"key".to_vec(), b"value".to_vec())]);
    assert_eq!(read(Format::Csv, &write(Format::Csv, &records)).unwrap(), records);
}

#[test]
fn a_wrong_line_is_named() {
    let error = read(Format::Tsv, b"a\tb\nno tab\n").unwrap_err();
    let Failure::Said { message, .. } = error else { panic!("{error:?}") };
    assert_eq!(message, "test, line 2: no tab between key and value");
}

#[test]
fn values_of_jsonl_that_are_no_strings_are_kept_as_json() {
    let records = read(Format::Jsonl, br#"{"key":"a","value":{"n":[1,2]}}"#).unwrap();
    assert_eq!(records[&b"a"[..]], br#"{"n":[1,2]}"#);
}

#[test]
fn numbers_keep_every_digit() {
    let numbers = ["9007199254740993", "-18446744073709551617", "0.10000000000000000555", "1.50"];
    for number in numbers.into_iter().chain(["1e2", "1E400", r#"{"b":[ 1.0 ],"a":-0}"#]) {
        let line = format!(r#"{{"key":"a","value": {number} }}"#);
        let array = format!("[{line}]");
        for (format, text) in [(Format::Jsonl, &line), (Format::Json, &array)] {
            let stored = read(format, text.as_bytes()).unwrap();
            assert_eq!(stored[&b"a"[..]], number.as_bytes(), "{format:?}");
            let named = read_with(format, text.as_bytes(), &fields("key", Some("value")), false);
            assert_eq!(named.unwrap()[&b"a"[..]], number.as_bytes(), "{format:?}");
        }
    }
    for number in &numbers {
        let line = format!(r#"{{"id":{number}}}"#);
        let stored = read_with(Format::Jsonl, line.as_bytes(), &fields("id", None), false).unwrap();
        assert_eq!(stored[number.as_bytes()], line.as_bytes());
    }
}

#[test]
fn a_string_that_is_no_text_is_refused_in_every_place() {
    for (format, text) in [
        (Format::Json, &br#"{"a": "\ud800"}"#[..]),
        (Format::Jsonl, br#"{"key": "a", "value": "\ud800"}"#),
        (Format::Jsonl, br#"{"key": "\ud800", "value": "a"}"#),
    ] {
        assert!(said(read(format, text).unwrap_err()).contains("the string `"));
    }
}

#[test]
fn stanzas_are_cut_at_blank_lines() {
    let text = b"Package: a\nDescription: x\n .\n y\n\n\npackage:b\r\nVersion: 1";
    let records = read(Format::Deb822, text).unwrap();
    assert_eq!(records[&b"a"[..]], b"Package: a\nDescription: x\n .\n y\n");
    assert_eq!(records[&b"b"[..]], b"package:b\nVersion: 1\n");
}

#[test]
fn formats_are_guessed_from_names() {
    let guesses = ["a.tsv", "b.CSV.gz", "c.ndjson", "x_Packages", "d/", "e.json.GZ"];
    let formats = guesses.map(|name| guess(Path::new(name)).ok());
    let expected =
        [Format::Tsv, Format::Csv, Format::Jsonl, Format::Deb822, Format::Dir, Format::Json];
    assert_eq!(formats, expected.map(Some));
    assert!(matches!(guess(Path::new("what")), Err(Failure::Usage { .. })));
}

fn fields(key: &str, value: Option<&str>) -> Fields {
    Fields { key: Some(key.into()), value: value.map(str::to_string) }
}

fn said(error: Failure) -> String {
    match error {
        Failure::Said { message, help } => format!("{message}; {help}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_csv_header_names_the_key_and_is_no_record() {
    let text = b"id,name,age\n7,\"Ann, B.\",41\n8,Bo,\n";
    let records = read_with(Format::Csv, text, &fields("id", None), false).unwrap();
    assert_eq!(records[&b"7"[..]], br#"{"id":"7","name":"Ann, B.","age":"41"}"#);
    assert_eq!(records.len(), 2);
    let names = read_with(Format::Csv, text, &fields("id", Some("name")), false).unwrap();
    assert_eq!(names[&b"8"[..]], b"Bo");
    let error = read_with(Format::Csv, text, &fields("ID", None), false).unwrap_err();
    assert!(said(error).contains("no column `ID`; there are id, name, age"));
    let error = read(Format::Csv, text).unwrap_err();
    assert!(said(error).contains("--key-field id"));
}

#[test]
fn a_csv_quote_that_does_not_close_is_an_error_at_its_line() {
    let open = b"key,value\na,1\nb,\"2\nc,3\nd,4\n";
    let words = said(read(Format::Csv, open).unwrap_err());
    assert!(words.starts_with("test, line 3: the quote that opens here is not closed"), "{words}");
    let rows = b"id,name\n7,\"Ann\n8,Bo\n";
    let words = said(read_with(Format::Csv, rows, &fields("id", None), false).unwrap_err());
    assert!(words.starts_with("test, line 2: the quote"), "{words}");
    let closed_later = b"key,value\na,\"1\nb,\"2\"\nc,3\n";
    let words = said(read(Format::Csv, closed_later).unwrap_err());
    assert!(words.starts_with("test, line 2: the field that is quoted"), "{words}");
    let sound = b"\xef\xbb\xbf\"key\",\"value\"\r\n\"a\",\"1\"\"\n,2\"\r\nb,3\"\nc,\"\"";
    let records = read(Format::Csv, sound).unwrap();
    let expected = [("a", "1\"\n,2"), ("b", "3\""), ("c", "")];
    assert_eq!(records, expected.map(|(k, v)| (k.into(), v.into())).into());
}

#[test]
fn a_backslash_of_raw_tsv_is_a_backslash() {
    let text = b"C:\\dir\tD:\\\n";
    let records = read_with(Format::Tsv, text, &Fields::default(), true).unwrap();
    assert_eq!(records[&b"C:\\dir"[..]], b"D:\\");
    assert!(said(read(Format::Tsv, text).unwrap_err()).contains("--raw"));
}

#[test]
fn a_json_document_is_an_array_or_an_object() {
    let array = br#" [ {"id": 1, "n": [1, 2]}, {"id": "x"} ] "#;
    let records = read_with(Format::Json, array, &fields("id", None), false).unwrap();
    assert_eq!(records[&b"1"[..]], br#"{"id": 1, "n": [1, 2]}"#);
    assert_eq!(records[&b"x"[..]], br#"{"id": "x"}"#);
    let records = read(Format::Json, br#"{"a": "text", "b": [1]}"#).unwrap();
    assert_eq!((&records[&b"a"[..]][..], &records[&b"b"[..]][..]), (&b"text"[..], &b"[1]"[..]));
    let error = read_with(Format::Json, br#"[{"id":1},{"no":2}]"#, &fields("id", None), false);
    assert!(said(error.unwrap_err()).contains("object 2: no field `id`; there are no"));
    let error = read(Format::Jsonl, b"[{\"key\":1}]\n").unwrap_err();
    assert!(said(error).contains("--format json"));
}
