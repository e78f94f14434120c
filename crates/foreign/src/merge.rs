//! The merge of tables and logs: each key once, with its newest version.
//!
//! A table is opened when the walk over the keys reaches its smallest key, and closed behind its
//! last one. So as many are open as overlap.

use crate::coding::shown;
use crate::entry::{Entry, Kind, RangeDelete, WITHOUT_BLOBS};
use crate::ranges::Ranges;
use base::{Error, ErrorKind, Result};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::btree_map::{BTreeMap, IntoIter};
use std::iter::Peekable;

/// Receives a key and its value.
pub type Each<'a, E> = &'a mut dyn FnMut(&[u8], &[u8]) -> std::result::Result<(), E>;

/// A table that is read from its begin to its end.
pub trait Cursor {
    /// Goes to the next entry; `false` at the end.
    fn next(&mut self) -> Result<bool>;
    /// The entry that it is at.
    fn entry(&self) -> Result<Entry<'_>>;
    /// The deleted ranges of the table, once.
    fn take_ranges(&mut self) -> Vec<RangeDelete> {
        Vec::new()
    }
    /// An error at the entry that it is at.
    fn damage(&self, message: &str) -> Error;
}

/// A table that is not open yet.
pub struct Closed<'a> {
    /// No key of the table is smaller.
    pub smallest: Vec<u8>,
    pub open: Box<dyn Fn() -> Result<Box<dyn Cursor>> + 'a>,
}

/// What logs have that no table has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    entries: BTreeMap<Vec<u8>, Version>,
    ranges: Vec<RangeDelete>,
}

/// The newest version of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Version {
    sequence: u64,
    kind: Kind,
    value: Vec<u8>,
}

/// Tables, and what logs have.
#[derive(Default)]
pub struct Merge<'a> {
    memory: Memory,
    tables: Vec<Place<'a>>,
    /// Where each table is, the smallest key on top.
    heads: BinaryHeap<Reverse<Head>>,
    ranges: Ranges,
}

enum Place<'a> {
    Closed(Closed<'a>),
    Open(Box<dyn Cursor>),
    Read,
}

/// By key, and the newest version first; then the number of the table.
type Head = (Vec<u8>, Reverse<u64>, usize);

/// The head of a closed table, before those of versions of the same key.
const CLOSED: Reverse<u64> = Reverse(u64::MAX);

impl Memory {
    pub fn add(&mut self, entry: Entry<'_>) {
        let Entry { sequence, kind, value, .. } = entry;
        let version = Version { sequence, kind, value: value.to_vec() };
        match self.entries.get_mut(entry.key) {
            Some(newest) if sequence < newest.sequence => {}
            Some(newest) => *newest = version,
            None => drop(self.entries.insert(entry.key.to_vec(), version)),
        }
    }

    pub fn add_range(&mut self, range: RangeDelete) {
        self.ranges.push(range);
    }
}

impl<'a> Merge<'a> {
    pub fn new(memory: Memory) -> Merge<'a> {
        Merge { memory, ..Merge::default() }
    }

    /// Adds a table. Of two versions with the same number that of the table counts which was added
    /// first.
    pub fn add_table(&mut self, table: Closed<'a>) {
        self.heads.push(Reverse((table.smallest.clone(), CLOSED, self.tables.len())));
        self.tables.push(Place::Closed(table));
    }

    /// Hands on each key that has a value.
    pub fn run<E: From<Error>>(mut self, each: Each<'_, E>) -> std::result::Result<(), E> {
        let memory = std::mem::take(&mut self.memory);
        memory.ranges.into_iter().for_each(|range| self.ranges.add(range));
        let mut memory = memory.entries.into_iter().peekable();
        let mut value = Vec::new();
        while let Some(key) = self.next_key(&mut memory)? {
            let mut newest: Option<(u64, Kind)> = None;
            if let Some((_, version)) = memory.next_if(|(other, _)| *other == key) {
                newest = Some((version.sequence, version.kind));
                value = version.value;
            }
            while self.heads.peek().is_some_and(|Reverse(head)| head.0 == key) {
                let Some(Reverse(head)) = self.heads.pop() else { break };
                let (sequence, table) = (head.1.0, head.2);
                if newest.is_none_or(|(newer, _)| sequence > newer)
                    && let Place::Open(cursor) = &self.tables[table]
                {
                    let entry = cursor.entry()?;
                    newest = Some((sequence, entry.kind));
                    value.clear();
                    value.extend_from_slice(entry.value);
                }
                self.push_head(table, Some(&head))?;
            }
            let deleted = self.ranges.newest(&key);
            match newest {
                Some((sequence, _)) if deleted.is_some_and(|deleted| deleted > sequence) => {}
                Some((_, Kind::Put)) => each(&key, &value)?,
                Some((_, Kind::Delete)) | None => {}
                Some((_, kind)) => return Err(refused(kind, &key).into()),
            }
        }
        Ok(())
    }

    /// The smallest key that is left; every table that has it is open then.
    fn next_key(
        &mut self,
        memory: &mut Peekable<IntoIter<Vec<u8>, Version>>,
    ) -> Result<Option<Vec<u8>>> {
        loop {
            let of_memory = memory.peek().map(|(key, _)| key);
            let Some(Reverse((key, sequence, table))) = self.heads.peek() else {
                return Ok(of_memory.cloned());
            };
            if of_memory.is_some_and(|of_memory| of_memory < key) {
                return Ok(of_memory.cloned());
            }
            if *sequence != CLOSED {
                return Ok(Some(key.clone()));
            }
            let table = *table;
            self.heads.pop();
            self.open(table)?;
        }
    }

    fn open(&mut self, table: usize) -> Result<()> {
        let Place::Closed(closed) = &self.tables[table] else { return Ok(()) };
        let mut cursor = (closed.open)()?;
        let begin: Head = (closed.smallest.clone(), CLOSED, table);
        cursor.take_ranges().into_iter().for_each(|range| self.ranges.add(range));
        self.tables[table] = Place::Open(cursor);
        self.push_head(table, Some(&begin))
    }

    /// Goes to the next entry of a table, which comes behind `last`.
    fn push_head(&mut self, table: usize, last: Option<&Head>) -> Result<()> {
        let Place::Open(cursor) = &mut self.tables[table] else { return Ok(()) };
        if !cursor.next()? {
            self.tables[table] = Place::Read;
            return Ok(());
        }
        let entry = cursor.entry()?;
        let head = (entry.key.to_vec(), Reverse(entry.sequence), table);
        if last.is_some_and(|last| *last >= head) {
            return Err(cursor.damage("its keys are not in their order"));
        }
        self.heads.push(Reverse(head));
        Ok(())
    }
}

/// The newest version of a key has no value that could be handed on.
fn refused(kind: Kind, key: &[u8]) -> Error {
    let (what, remedy) = match kind {
        Kind::Merge => (
            "operands of a merge operator, which only the program has that wrote them",
            "write the key's value with that program, or compact the database with it",
        ),
        Kind::Columns => (
            "several columns (PutEntity), for which Shingle has no place",
            "write the columns as values of keys of their own with the program that uses them",
        ),
        _ => ("its value in a blob file, and blob files are not read", WITHOUT_BLOBS),
    };
    Error::new(ErrorKind::Unsupported, format!("the key {} has {what}; {remedy}", shown(key)))
}
