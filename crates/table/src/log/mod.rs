//! Logs: the framing that the write-ahead log and the manifest share.
//!
//! A log is a header and then records, appended only; see docs/format/log.md for the bytes.
//! - Each record's checksum covers it and its place (database, file, offset, kind), so a record is
//!   valid by itself or not at all, and bytes of another log are never valid.
//! - Each record carries a link, 16 bits of the digest of everything before it, header included. A
//!   valid record that does not belong to this history ends the log.
//! - Each record carries the *watermark*: everything before it in the file was durable when the
//!   record was appended. It is never beyond the record.
//!
//! # Torn tail or damage
//!
//! A log ends at the first byte `X` where no record of its history stands. Nothing behind `X` is
//! ever replayed: the result is a prefix. Whether the end is an ordinary one is decided by evidence
//! alone. `D` is the largest number of bytes known to have been durable, from
//! - `durable_bytes_min`, which the caller knows from the manifest, the root, or the next log;
//! - the watermarks of valid records behind `X`, found by a scan that has no other purpose. (A
//!   watermark of a record before `X` is not beyond that record, hence never beyond `X`.)
//!
//! | at `X`                                             | `D > X`    | `D <= X`             |
//! |----------------------------------------------------|------------|----------------------|
//! | the file ends                                      | corruption | clean end            |
//! | zeros up to the end of the file                    | corruption | clean end            |
//! | zeros, and something behind them                   | corruption | torn tail            |
//! | a record cut short by the end of the file          | corruption | torn tail            |
//! | a record with a wrong checksum, or other bytes     | corruption | torn tail            |
//! | a valid record whose link does not fit             | corruption | torn tail            |
//! | `X` is 0: an empty file, or only zeros             | corruption | clean end, no header |
//! | `X` is 0: no header, or one of another log of ours | corruption | torn tail, no header |
//!
//! Zeros up to the end are no loss that a log could tell: the length of a file may be ahead of what
//! was appended (`media::FileHint::zeros_at_end`), and no record begins with zero.
//!
//! Whatever `D` is: a whole header of another database, or of a newer format, is `Incompatible`.
//! A torn tail is cut silently and counted ([`End::TornTail`]).
//!
//! Over a rotation, the header of a log names the final length, digest and last sequence number of
//! the log before it; [`check_chain`] compares. **Contract of the writer's user:** the watermark of
//! a log moves ([`LogWriter::sync`], [`LogWriter::mark_synced`]) only after the logs before it are
//! durable in full, so a watermark above zero vouches for them too.

mod chain;
mod frame;
mod header;
mod reader;
mod scan;
mod source;
mod writer;

#[cfg(test)]
mod tests;

pub use chain::{ChainVerdict, check_chain};
pub use frame::{RECORD_BYTES_MAX, RECORD_HEAD_BYTES_MAX};
pub use header::{HEADER_BYTES, LogHeader, LogIdentity, LogKind, PreviousLog};
pub use reader::{End, LogPosition, LogReader, Record, named_log};
pub use scan::{Salvage, Salvaged, durable_bytes};
pub use writer::LogWriter;
