//! Transfers between accounts by several threads: no money comes or goes, whatever happens.
//!
//! `cargo run --example accounts`
//!
//! What it shows: a batch that changes two accounts and a journal together; a merge operator of
//! its own, which adds without reading; a snapshot that sees all accounts at one moment; and where
//! the check of a balance has to be serialized.
#![allow(clippy::print_stdout)]

use shingle::{Db, Error, Keyspace, KeyspaceOptions, MergeOperator, Options, Result};
use shingle::{WriteBatch, WriteOptions};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Adds signed amounts, in cents.
struct AddCents;

impl MergeOperator for AddCents {
    fn name(&self) -> &str {
        "add-cents"
    }

    fn merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>> {
        let mut sum = 0;
        for bytes in existing.into_iter().chain(operands.iter().copied()) {
            sum += cents(bytes)?;
        }
        Ok(Some(sum.to_le_bytes().to_vec()))
    }
}

fn cents(bytes: &[u8]) -> Result<i64> {
    let number = bytes.try_into().map_err(|_| Error::invalid("an amount has 8 bytes"))?;
    Ok(i64::from_le_bytes(number))
}

struct Bank {
    db: Db,
    accounts: Keyspace,
    journal: Keyspace,
    /// The number of the next transfer. Held from the check of a balance to the write that relies
    /// on it: a batch is atomic, but it does not know what was read before.
    next: Mutex<u64>,
}

impl Bank {
    fn open(path: &Path) -> Result<Bank> {
        let db = Options::new().merge_operator(Arc::new(AddCents)).open(path)?;
        let adds = KeyspaceOptions {
            merge_operator: Some(AddCents.name().into()),
            ..KeyspaceOptions::default()
        };
        let accounts = db.open_or_create_keyspace("accounts", adds)?;
        let journal = db.open_or_create_keyspace("journal", KeyspaceOptions::default())?;
        Ok(Bank { db, accounts, journal, next: Mutex::new(0) })
    }

    /// Moves `amount` from one account to another. `false`: there is not enough.
    fn transfer(&self, from: &str, to: &str, amount: i64) -> Result<bool> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        if self.balance(from)? < amount {
            return Ok(false);
        }
        let mut batch = WriteBatch::new();
        batch.merge_in(&self.accounts, from, (-amount).to_le_bytes())?;
        batch.merge_in(&self.accounts, to, amount.to_le_bytes())?;
        batch.put_in(&self.journal, next.to_be_bytes(), format!("{from} to {to}: {amount}"))?;
        self.db.write(batch, &WriteOptions::default())?;
        *next += 1;
        Ok(true)
    }

    fn balance(&self, account: &str) -> Result<i64> {
        self.accounts.get(account)?.map_or(Ok(0), |bytes| cents(&bytes))
    }

    /// The sum over all accounts, and the number of transfers that led to it. The snapshot makes
    /// the two agree, while other threads go on.
    fn audit(&self) -> Result<(i64, usize)> {
        let moment = self.accounts.snapshot();
        let mut sum = 0;
        for account in moment.iter() {
            sum += cents(&account?.1)?;
        }
        Ok((sum, moment.of(&self.journal).iter().count()))
    }
}

fn money(cents: i64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

const NAMES: [&str; 4] = ["ann", "bob", "cy", "dee"];

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let home = tempfile::tempdir()?;
    let bank = Bank::open(&home.path().join("bank.db"))?;
    for name in NAMES {
        bank.accounts.put(name, 10_000i64.to_le_bytes())?;
    }

    let refused: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4usize)
            .map(|thread| {
                let bank = &bank;
                scope.spawn(move || -> Result<usize> {
                    let mut refused = 0;
                    for step in 0..250 {
                        let (from, to) = (NAMES[thread], NAMES[(thread + 1 + step % 3) % 4]);
                        let amount = 100 * (1 + (step * 7 + thread * 13) % 40) as i64;
                        refused += usize::from(!bank.transfer(from, to, amount)?);
                    }
                    Ok(refused)
                })
            })
            .collect();
        let results = threads.into_iter().map(|thread| match thread.join() {
            Ok(refused) => refused,
            Err(_) => Err(Error::invalid("a thread panicked")),
        });
        results.sum::<Result<usize>>()
    })?;

    let (sum, transfers) = bank.audit()?;
    println!("{} transfers asked for: {} made, {refused} refused", transfers + refused, transfers);
    for name in NAMES {
        println!("{name} has {}", money(bank.balance(name)?));
    }
    println!("in all: {}", money(sum));
    bank.db.close()?;
    Ok(())
}
