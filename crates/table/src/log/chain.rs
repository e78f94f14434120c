//! From one log to the next: does the log before hold all that this one continues?

use super::header::{LogHeader, PreviousLog};

/// What the header of a log says about the one before it, compared with what was found there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainVerdict {
    /// The log before is whole: go on with this one.
    Matches,
    /// The log before lost a tail that never became durable. This log, and every later one, must be
    /// ignored: history is a prefix.
    LostTail {
        /// Bytes that the log before should have had and has not.
        bytes_missing: u64,
    },
    /// The log before lost what was durable, or is another one. The text says what is wrong.
    Damage(String),
}

/// Compares the end of log N, as `found`, with the header `next` of log N+1.
///
/// | `next` names as previous | found            | nothing durable in N+1 | something durable |
/// |--------------------------|------------------|------------------------|-------------------|
/// | the found file           | all the same     | matches                | matches           |
/// | the found file           | fewer bytes      | lost tail              | damage            |
/// | the found file           | otherwise unlike | damage                 | damage            |
/// | another file, or none    | anything         | damage                 | damage            |
///
/// `next_durable_bytes` are bytes of N+1 that are known to have been durable
/// ([`super::LogReader::durable_bytes`], [`super::durable_bytes`], the manifest): a log's bytes are
/// only called durable after the logs before it are durable in full.
pub fn check_chain(found: &PreviousLog, next: &LogHeader, next_durable_bytes: u64) -> ChainVerdict {
    let Some(expected) = next.previous else {
        return ChainVerdict::Damage(format!(
            "log {} continues no log, but log {} stands before it",
            next.file, found.file
        ));
    };
    if expected.file != found.file {
        return ChainVerdict::Damage(format!(
            "log {} continues log {}, but log {} stands before it",
            next.file, expected.file, found.file
        ));
    }
    if expected == *found {
        return ChainVerdict::Matches;
    }
    let unlike = format!(
        "log {} continues log {} with {} bytes, digest {:016x}, last sequence number {}; found {} \
         bytes, digest {:016x}, last sequence number {}",
        next.file,
        found.file,
        expected.bytes,
        expected.digest,
        expected.last_sequence,
        found.bytes,
        found.digest,
        found.last_sequence
    );
    if found.bytes >= expected.bytes || next_durable_bytes > 0 {
        return ChainVerdict::Damage(unlike);
    }
    ChainVerdict::LostTail { bytes_missing: expected.bytes - found.bytes }
}
