//! The example answers a scrape as Prometheus sends it. Cargo builds examples before it runs tests.

use crate::parser::parse;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

fn get(address: &str, path: &str, accept: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: {accept}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_string(), body.to_string())
}

#[test]
fn the_example_answers_scrapes() {
    let dir = tempfile::tempdir().unwrap();
    let test = std::env::current_exe().unwrap();
    let program = test.parent().unwrap().parent().unwrap().join("examples/serve");
    assert!(program.exists(), "build it: cargo build -p shingle-metrics --example serve");
    let path = dir.path().join("fruit.db");
    let mut child = Command::new(program)
        .args([path.to_str().unwrap(), "127.0.0.1:0", "3"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("http://").unwrap().strip_suffix("/metrics").unwrap();

    let (head, body) = get(address, "/metrics", "text/plain");
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("version=0.0.4"), "{head}");
    let parsed = parse(&body, false);
    assert_eq!(parsed.sum("shingle_user_written_bytes_total"), Some(8.0));
    let (head, body) = get(address, "/metrics", "application/openmetrics-text; version=1.0.0");
    assert!(head.contains("application/openmetrics-text"), "{head}");
    parse(&body, true);
    let (head, _) = get(address, "/", "*/*");
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
    assert!(child.wait().unwrap().success());
}
