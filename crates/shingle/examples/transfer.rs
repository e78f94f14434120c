//! Transfers between accounts by several threads: the sum stays what it was.
//!
//! `cargo run --example transfer`
#![allow(clippy::print_stdout)]

use shingle::{Db, Options, Result, Transaction};

const ACCOUNTS: u64 = 10;
const DEPOSIT: u64 = 100;

fn account(number: u64) -> String {
    format!("account/{number:04}")
}

fn amount(bytes: Option<&[u8]>) -> u64 {
    bytes.and_then(|bytes| std::str::from_utf8(bytes).ok()?.parse().ok()).unwrap_or(0)
}

/// Moves `sum` from one account to another. False: there is not enough.
fn transfer(db: &Db, from: u64, to: u64, sum: u64) -> Result<bool> {
    db.transact(|transaction: &mut Transaction| {
        let left = amount(transaction.get(account(from))?.as_deref());
        if left < sum {
            return Ok(false);
        }
        let there = amount(transaction.get(account(to))?.as_deref());
        transaction.put(account(from), (left - sum).to_string())?;
        transaction.put(account(to), (there + sum).to_string())?;
        Ok(true)
    })
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let home = tempfile::tempdir()?;
    let db = Options::new().open(home.path().join("bank.db"))?;
    for number in 0..ACCOUNTS {
        db.put(account(number), DEPOSIT.to_string())?;
    }
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let db = &db;
            scope.spawn(move || -> Result<()> {
                for n in 0..500 {
                    let from = (thread * 7 + n * 3) % ACCOUNTS;
                    let to = (from + 1 + n % (ACCOUNTS - 1)) % ACCOUNTS;
                    transfer(db, from, to, 1 + n % 20)?;
                }
                Ok(())
            });
        }
    });
    let mut sum = 0;
    for pair in db.prefix("account/") {
        sum += amount(Some(&pair?.1));
    }
    let counters = db.stats().transactions;
    println!("{} transfers, {} repeated after a conflict", counters.committed, counters.conflicts);
    println!("the sum is {sum}");
    assert_eq!(sum, ACCOUNTS * DEPOSIT);
    db.close()?;
    Ok(())
}
