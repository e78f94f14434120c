//! What Redis's `MONITOR` prints: seconds, `[database client]`, and the command in quoted words.
//!
//! Strings and hashes are read; a field of a hash is a key of its own, behind the hash's name.
//! Other commands are counted as lines that hold nothing: lists, sets and sorted sets are no
//! key-value pairs. What a read found does not stand in the output, and databases are one.

use super::{Line, Parsed, Visit, number, seconds};
use crate::trace::operation::{Kind, Operation};

/// What stands between the name of a hash and that of its field.
const FIELD_MARK: u8 = 0;
/// Bytes of a counter, where the command names none.
const COUNTER_BYTES: u64 = 8;
const NO_CLIENT: &str = "no [database client] after the time";
const ARGUMENTS: &str = "the command has too few arguments";

pub(super) fn parse(line: &[u8], visit: &mut Visit<'_>) -> Parsed {
    if line == b"OK" {
        return Ok(Line::Other);
    }
    let space = line.iter().position(|&byte| byte == b' ').ok_or("no time in front")?;
    let (time, rest) = line.split_at(space);
    let time_ns = seconds(time).ok_or("no time in seconds in front")?;
    let rest = rest.strip_prefix(b" [").ok_or(NO_CLIENT)?;
    let end = rest.windows(2).position(|pair| pair == b"] ").ok_or(NO_CLIENT)?;
    let words = words(rest.get(end + 2..).unwrap_or_default())?;
    let (name, arguments) = words.split_first().ok_or("no command")?;
    Command { time_ns, arguments, visit }.run(&name.to_ascii_lowercase())
}

struct Command<'a, 'b> {
    time_ns: u64,
    arguments: &'a [Vec<u8>],
    visit: &'a mut Visit<'b>,
}

impl Command<'_, '_> {
    fn run(&mut self, name: &[u8]) -> Parsed {
        match name {
            b"get" | b"exists" | b"strlen" | b"getrange" | b"ttl" | b"type" => self.one(Kind::Get),
            b"mget" => self.each(Kind::Get),
            b"del" | b"unlink" => self.each(Kind::Delete),
            b"getdel" => self.one(Kind::Get).and_then(|_| self.one(Kind::Delete)),
            b"set" | b"setnx" | b"getset" | b"append" => self.write(Kind::Put, 1),
            b"setex" | b"psetex" => self.write(Kind::Put, 2),
            b"mset" | b"msetnx" => self.pairs(false),
            b"incr" | b"decr" | b"incrby" | b"decrby" | b"incrbyfloat" => {
                self.emit(Kind::Put, None, Some(COUNTER_BYTES))
            }
            b"hget" | b"hexists" | b"hstrlen" | b"hmget" => self.fields(Kind::Get),
            b"hdel" => self.fields(Kind::Delete),
            b"hset" | b"hmset" | b"hsetnx" => self.pairs(true),
            b"hincrby" | b"hincrbyfloat" => {
                let field = self.arguments.get(1).ok_or(ARGUMENTS)?;
                self.emit(Kind::Put, Some(field), Some(COUNTER_BYTES))
            }
            b"hgetall" | b"hkeys" | b"hvals" => self.scan(1, b""),
            b"scan" => self.scan(number_after(self.arguments, b"count").unwrap_or(10), b""),
            _ => Ok(Line::Other),
        }
    }

    /// An operation on the first argument, or on a field of it.
    fn emit(&mut self, kind: Kind, field: Option<&[u8]>, value_bytes: Option<u64>) -> Parsed {
        let key = self.arguments.first().ok_or(ARGUMENTS)?;
        let joined = field.map(|field| [&key[..], &[FIELD_MARK], field].concat());
        let operation = Operation::new(Some(self.time_ns), kind, joined.as_deref().unwrap_or(key));
        (self.visit)(&Operation { value_bytes, ..operation });
        Ok(Line::Operations)
    }

    fn one(&mut self, kind: Kind) -> Parsed {
        self.emit(kind, None, None)
    }

    /// The value is the argument with this number.
    fn write(&mut self, kind: Kind, value: usize) -> Parsed {
        let bytes = self.arguments.get(value).ok_or(ARGUMENTS)?.len() as u64;
        self.emit(kind, None, Some(bytes))
    }

    /// Each argument is a key.
    fn each(&mut self, kind: Kind) -> Parsed {
        if self.arguments.is_empty() {
            return Err(ARGUMENTS);
        }
        for key in self.arguments {
            (self.visit)(&Operation::new(Some(self.time_ns), kind, key));
        }
        Ok(Line::Operations)
    }

    /// Each argument after the first is a field.
    fn fields(&mut self, kind: Kind) -> Parsed {
        let fields = self.arguments.get(1..).filter(|fields| !fields.is_empty());
        for field in fields.ok_or(ARGUMENTS)? {
            self.emit(kind, Some(field), None)?;
        }
        Ok(Line::Operations)
    }

    /// Keys and values in turn; of a hash, fields and values after its name.
    fn pairs(&mut self, is_hash: bool) -> Parsed {
        let all = self.arguments;
        let pairs = if is_hash { all.get(1..) } else { Some(all) };
        let pairs = pairs.filter(|pairs| !pairs.is_empty() && pairs.len().is_multiple_of(2));
        for pair in pairs.ok_or("keys and values do not come in pairs")?.chunks_exact(2) {
            let [key, value] = pair else { continue };
            let bytes = value.len() as u64;
            if is_hash {
                self.emit(Kind::Put, Some(key), Some(bytes))?;
            } else {
                (self.visit)(&Operation::new(Some(self.time_ns), Kind::Put, key).value(bytes));
            }
        }
        Ok(Line::Operations)
    }

    /// Reads in order, from the first argument on.
    fn scan(&mut self, records: u64, field: &[u8]) -> Parsed {
        let key = self.arguments.first().ok_or(ARGUMENTS)?;
        let from = [&key[..], &[FIELD_MARK], field].concat();
        (self.visit)(&Operation::new(Some(self.time_ns), Kind::Scan, &from).over(records));
        Ok(Line::Operations)
    }
}

/// The number behind a word.
fn number_after(arguments: &[Vec<u8>], word: &[u8]) -> Option<u64> {
    let at = arguments.iter().position(|argument| argument.eq_ignore_ascii_case(word))?;
    number(arguments.get(at + 1)?)
}

/// The words between quotes, without their escapes.
fn words(text: &[u8]) -> Result<Vec<Vec<u8>>, &'static str> {
    let mut words = Vec::new();
    let mut bytes = text.iter().copied();
    loop {
        match bytes.next() {
            None => return Ok(words),
            Some(b' ') => {}
            Some(b'"') => words.push(word(&mut bytes)?),
            Some(_) => return Err("a word without quotes"),
        }
    }
}

/// The rest of a word whose first quote was read, and its last quote.
fn word(bytes: &mut impl Iterator<Item = u8>) -> Result<Vec<u8>, &'static str> {
    const OPEN: &str = "a word without its closing quote";
    const HEX: &str = "`\\x` needs two hex digits";
    let mut word = Vec::new();
    loop {
        let byte = bytes.next().ok_or(OPEN)?;
        if byte == b'"' {
            return Ok(word);
        }
        if byte != b'\\' {
            word.push(byte);
            continue;
        }
        let digit = |bytes: &mut dyn Iterator<Item = u8>| {
            let digit = bytes.next().and_then(|byte| char::from(byte).to_digit(16));
            digit.map(|digit| digit as u8).ok_or(HEX)
        };
        word.push(match bytes.next().ok_or(OPEN)? {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'a' => 7,
            b'b' => 8,
            b'x' => digit(bytes)? << 4 | digit(bytes)?,
            byte => byte,
        });
    }
}
