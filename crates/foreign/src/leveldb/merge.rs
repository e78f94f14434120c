//! The merge of tables and logs: each key once, with its newest version.

use super::log::Version;
use super::table::Table;
use base::{Error, Result};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Receives a key and its value.
pub type Each<'a, E> = &'a mut dyn FnMut(&[u8], &[u8]) -> std::result::Result<(), E>;

/// Tables, and what logs have.
#[derive(Default)]
pub struct Merge {
    tables: Vec<Table>,
    /// The key and the sequence number that each table is at, the smallest key on top.
    heads: BinaryHeap<Reverse<Head>>,
    memory: BTreeMap<Vec<u8>, (u64, Option<Vec<u8>>)>,
}

/// By key, and the newest version first.
type Head = (Vec<u8>, Reverse<u64>, usize);

impl Merge {
    /// Adds the writes of a log.
    pub fn add_memory(&mut self, versions: Vec<Version>) {
        for (key, sequence, value) in versions {
            let newest = self.memory.entry(key).or_default();
            if sequence >= newest.0 {
                *newest = (sequence, value);
            }
        }
    }

    /// Adds a table.
    pub fn add_table(&mut self, table: Table) -> Result<()> {
        self.tables.push(table);
        self.push_head(self.tables.len() - 1)
    }

    /// Hands on each key that has a value.
    pub fn run<E: From<Error>>(mut self, each: Each<'_, E>) -> std::result::Result<(), E> {
        let mut memory = std::mem::take(&mut self.memory).into_iter().peekable();
        let mut value = Vec::new();
        loop {
            let of_table = self.heads.peek().map(|Reverse(head)| &head.0);
            let key = match (of_table, memory.peek().map(|(key, _)| key)) {
                (Some(one), Some(other)) => one.min(other).clone(),
                (Some(one), None) | (None, Some(one)) => one.clone(),
                (None, None) => return Ok(()),
            };
            let mut newest: Option<(u64, bool)> = None;
            if let Some((_, (sequence, written))) = memory.next_if(|(other, _)| *other == key) {
                newest = Some((sequence, written.is_some()));
                value = written.unwrap_or_default();
            }
            while self.heads.peek().is_some_and(|Reverse(head)| head.0 == key) {
                let Some(Reverse((_, Reverse(sequence), table))) = self.heads.pop() else { break };
                if newest.is_none_or(|(newer, _)| sequence > newer) {
                    let written = self.tables[table].entry()?.value;
                    newest = Some((sequence, written.is_some()));
                    value.clear();
                    value.extend_from_slice(written.unwrap_or_default());
                }
                self.push_head(table)?;
            }
            if let Some((_, true)) = newest {
                each(&key, &value)?;
            }
        }
    }

    fn push_head(&mut self, table: usize) -> Result<()> {
        if self.tables[table].next()? {
            let entry = self.tables[table].entry()?;
            self.heads.push(Reverse((entry.key.to_vec(), Reverse(entry.sequence), table)));
        }
        Ok(())
    }
}
