//! The ledger as rows and as a table: every byte with its cause.

use crate::units;
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
use shingle::{Cause, LedgerSnapshot};

/// One cause, or what the user did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// The cause's name; `user` for what the user wrote and received.
    pub cause: String,
    /// Bytes written.
    pub write_bytes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Requests to make bytes durable.
    pub sync_ops: u64,
}

/// What the user did, then every cause that moved anything.
pub fn rows(ledger: &LedgerSnapshot) -> Vec<Row> {
    let user = Row {
        cause: "user".into(),
        write_bytes: ledger.user_write_bytes,
        read_bytes: ledger.user_read_bytes,
        sync_ops: 0,
    };
    let causes = Cause::all().map(|cause| {
        let traffic = ledger.cause(cause);
        Row {
            cause: cause.name(),
            write_bytes: traffic.write_bytes,
            read_bytes: traffic.read_bytes,
            sync_ops: traffic.sync_ops,
        }
    });
    let moved = |row: &Row| row.write_bytes + row.read_bytes + row.sync_ops > 0;
    std::iter::once(user).chain(causes.filter(moved)).collect()
}

/// Adds `more` to `total`, cause by cause: the ledgers of several openings.
pub fn add(total: &mut Vec<Row>, more: &[Row]) {
    for row in more {
        match total.iter_mut().find(|known| known.cause == row.cause) {
            Some(known) => {
                known.write_bytes += row.write_bytes;
                known.read_bytes += row.read_bytes;
                known.sync_ops += row.sync_ops;
            }
            None => total.push(row.clone()),
        }
    }
}

impl Row {
    /// It says what users wrote and received, not what the store did about it.
    pub fn is_user(&self) -> bool {
        self.cause.starts_with("user")
    }
}

/// Bytes that the user wrote.
pub fn user_write_bytes(rows: &[Row]) -> u64 {
    rows.iter().filter(|row| row.is_user()).map(|row| row.write_bytes).sum()
}

/// Bytes that the store was asked to write.
pub fn host_write_bytes(rows: &[Row]) -> u64 {
    rows.iter().filter(|row| !row.is_user()).map(|row| row.write_bytes).sum()
}

/// Bytes that the store was asked to read.
pub fn host_read_bytes(rows: &[Row]) -> u64 {
    rows.iter().filter(|row| !row.is_user()).map(|row| row.read_bytes).sum()
}

/// A table without colours, columns to the right.
pub fn plain_table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Cause, bytes, share of all written bytes, bytes per user byte.
pub fn table(rows: &[Row]) -> String {
    let user = user_write_bytes(rows);
    let host = host_write_bytes(rows);
    let mut table = plain_table(&["cause", "written", "share", "per user byte", "read", "syncs"]);
    for row in rows {
        let of_host = !row.is_user();
        table.add_row([
            row.cause.clone(),
            units::bytes(row.write_bytes),
            if of_host { units::share(row.write_bytes, host) } else { String::new() },
            units::ratio(row.write_bytes, user),
            units::bytes(row.read_bytes),
            if of_host { units::count(row.sync_ops) } else { String::new() },
        ]);
    }
    table.add_row([
        "all causes".into(),
        units::bytes(host),
        units::share(host, host),
        units::ratio(host, user),
        units::bytes(host_read_bytes(rows)),
        units::count(rows.iter().map(|row| row.sync_ops).sum()),
    ]);
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use shingle::Ledger;

    #[test]
    fn the_table_adds_up() {
        let ledger = Ledger::default();
        ledger.user_wrote(1000);
        ledger.wrote(Cause::Wal, 1000);
        ledger.wrote(Cause::Flush, 500);
        let mut total = rows(&ledger.snapshot());
        add(&mut total, &rows(&ledger.snapshot()));
        assert_eq!((user_write_bytes(&total), host_write_bytes(&total)), (2000, 3000));
        let text = table(&total);
        assert!(text.contains("66.7%") && text.contains("1.50"), "{text}");
    }
}
