//! Answers `GET /metrics` for Prometheus, with the standard library alone:
//! `cargo run -p shingle-metrics --example serve -- fruit.db 127.0.0.1:9184 [REQUESTS]`
//!
//! A program would run this on a thread of its own. REQUESTS ends it after that many answers.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use shingle::{Db, Options};
use shingle_metrics::{families, text};
use std::io::{BufRead, BufReader, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// Headers longer than this are not of a scrape.
const HEADER_LINES_MAX: usize = 100;

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().unwrap_or_else(|| "fruit.db".into());
    let address = args.next().unwrap_or_else(|| "127.0.0.1:9184".into());
    let requests = args.next().map_or(Ok(usize::MAX), |number| number.parse())?;

    let db = Options::new().open(path)?;
    db.put("apple", "red")?;
    let listener = TcpListener::bind(address)?;
    println!("http://{}/metrics", listener.local_addr()?);
    for stream in listener.incoming().take(requests) {
        // A scraper that goes away is no reason to end.
        if let Err(error) = stream.and_then(|stream| answer(&db, stream)) {
            eprintln!("{error}");
        }
    }
    db.close()?;
    Ok(())
}

fn answer(db: &Db, mut stream: TcpStream) -> Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let (mut first, mut wants_openmetrics) = (String::new(), false);
    let lines = BufReader::new(&stream).lines().take(HEADER_LINES_MAX);
    for line in lines {
        let line = line?;
        if line.is_empty() {
            break;
        }
        let header = line.to_ascii_lowercase();
        wants_openmetrics |=
            header.starts_with("accept:") && header.contains("application/openmetrics-text");
        if first.is_empty() {
            first = line;
        }
    }
    if !first.starts_with("GET /metrics ") {
        return stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
    }
    let families = families(&db.stats());
    let (content_type, body) = match wants_openmetrics {
        true => (text::OPENMETRICS_CONTENT_TYPE, text::openmetrics(&families)),
        false => (text::PROMETHEUS_CONTENT_TYPE, text::prometheus(&families)),
    };
    let length = body.len();
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\n")?;
    write!(stream, "content-length: {length}\r\nconnection: close\r\n\r\n{body}")
}
