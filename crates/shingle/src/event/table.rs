//! The table of events, and what follows from it.

use super::Severity;
use super::field::{CauseBytes, Field, FieldType, Fields, StallTimes};
use crate::{StallCondition, StallReason};
use base::Error;
use std::ops::Range;

/// Makes [`Event`] of the table: for each event its severity, its name in `LOG`, its variant and
/// its fields.
macro_rules! events {
    ($(
        $(#[$doc:meta])*
        $severity:ident $name:literal $variant:ident {
            $( $(#[$field_doc:meta])* $field:ident: $kind:ty, )*
        }
    )*) => {
        /// What happened in an open database. [`EventListener`](super::EventListener)s get events,
        /// and `LOG` has a line for each but most
        /// [changes of stall conditions](Event::StallConditionsChanged).
        ///
        /// A new version may add events, and fields to events.
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        pub enum Event {
            $(
                $(#[$doc])*
                #[non_exhaustive]
                $variant {
                    $( $(#[$field_doc])* $field: $kind, )*
                },
            )*
        }

        impl Event {
            /// The names of all events.
            pub const NAMES: &[&str] = &[$($name),*];

            /// Its name in `LOG` and in `tracing`.
            pub fn name(&self) -> &'static str {
                match self {
                    $( Event::$variant { .. } => $name, )*
                }
            }

            /// How serious it is.
            pub fn severity(&self) -> Severity {
                match self {
                    $( Event::$variant { .. } => Severity::$severity, )*
                }
            }

            /// Its fields by name, in the order of `LOG`.
            pub fn fields(&self) -> Vec<(String, Field)> {
                let mut fields = Fields::new();
                match self {
                    $( Event::$variant { $($field),* } => {
                        $( $field.add_to(stringify!($field), &mut fields); )*
                    } )*
                }
                fields
            }

            /// Hands the event to the subscriber of `tracing`.
            #[cfg(feature = "tracing")]
            pub(crate) fn trace(&self) {
                match self {
                    $( Event::$variant { $($field),* } => tracing::event!(
                        name: $name,
                        target: "shingle",
                        Severity::$severity.level(),
                        $( $field = $field.traced(), )*
                        $name
                    ), )*
                }
            }
        }
    };
}

events! {
    /// The database is open, and every log was replayed.
    Info "recovery_finished" RecoveryFinished {
        /// Logs that were replayed, by file number.
        wal_files: Vec<u64>,
        /// Keyspaces.
        keyspaces: u64,
        /// The newest sequence number.
        last_sequence: u64,
        /// Duration of the opening.
        micros: u64,
    }

    /// A flush of a keyspace began.
    Info "flush_started" FlushStarted {
        /// Events of the same job have the same number.
        job: u64,
        /// The keyspace.
        keyspace: String,
        /// Memtables that become one run.
        num_memtables: u64,
        /// Bytes of these memtables.
        memory_usage: u64,
        /// The level that the run goes to.
        output_level: u64,
    }

    /// A flush of a keyspace ended; its run is in the tree.
    Info "flush_finished" FlushFinished {
        /// The number of the job.
        job: u64,
        /// The keyspace.
        keyspace: String,
        /// Memtables that became one run.
        memtables: u64,
        /// Entries in them.
        entries_in: u64,
        /// The level that has the run.
        output_level: u64,
        /// Bytes written.
        output_bytes: u64,
        /// Table files that were written, by file number.
        files: Vec<u64>,
        /// Where the run is on the device, if the store knows.
        extents: Vec<Range<u64>>,
        /// Duration.
        micros: u64,
    }

    /// A compaction that rewrites runs began.
    Info "compaction_started" CompactionStarted {
        /// The number of the job.
        job: u64,
        /// The keyspace.
        keyspace: String,
        /// Why the scheme chose it.
        reason: String,
        /// How urgent it was; 1.0 is at the limit.
        score: f64,
        /// The level that receives the output.
        output_level: u64,
        /// Bytes of the inputs.
        input_data_size: u64,
        /// Bytes that the scheme expects to write.
        predicted_write_bytes: u64,
        /// Parts that may run in parallel.
        num_subcompactions: u64,
    }

    /// A compaction that rewrites runs ended; its output is in the tree.
    Info "compaction_finished" CompactionFinished {
        /// The number of the job.
        job: u64,
        /// The keyspace.
        keyspace: String,
        /// Why the scheme chose it.
        reason: String,
        /// The level that has the output.
        output_level: u64,
        /// Bytes of the inputs.
        read_bytes: u64,
        /// Bytes that the scheme expected to write.
        predicted_write_bytes: u64,
        /// Bytes written.
        total_output_size: u64,
        /// Runs written.
        num_output_runs: u64,
        /// Entries read.
        num_input_records: u64,
        /// Entries written.
        num_output_records: u64,
        /// Duration.
        compaction_time_micros: u64,
        /// Where the output is on the device, if the store knows.
        extents: Vec<Range<u64>>,
        /// The number of nodes of each level when the compaction began.
        lsm_state: Vec<u64>,
    }

    /// A compaction changed the tree by an edit alone.
    Info "trivial_move" TrivialMove {
        /// The number of the job.
        job: u64,
        /// The keyspace.
        keyspace: String,
        /// Why the scheme chose it.
        reason: String,
        /// The level that received the slices.
        output_level: u64,
        /// Their bytes.
        moved_bytes: u64,
    }

    /// A compaction failed on its own input. It is tried again; others go on.
    Warning "compaction_backed_off" CompactionBackedOff {
        /// What went wrong.
        error: Error,
    }

    /// A flush or compaction made a table file, which is in the tree.
    Info "table_file_creation" TableFileCreation {
        /// The number of the job.
        job: u64,
        /// The keyspace.
        keyspace: String,
        /// The file number.
        file_number: u64,
        /// Bytes of the file.
        file_size: u64,
        /// The level that has it.
        output_level: u64,
    }

    /// Sorted files became part of the tree.
    Info "files_ingested" FilesIngested {
        /// The keyspace.
        keyspace: String,
        /// The files, by file number.
        files: Vec<u64>,
        /// Files that went below level 0.
        files_below_level0: u64,
        /// Entries in them.
        entries: u64,
        /// Bytes of the files.
        bytes: u64,
        /// Bytes that were copied; 0 where all files were linked.
        copied_bytes: u64,
        /// How long no write to the keyspace could commit.
        held_micros: u64,
        /// Duration, from the call on.
        micros: u64,
    }

    /// An obsolete table file was removed.
    Info "table_file_deletion" TableFileDeletion {
        /// The file number.
        file_number: u64,
    }

    /// An obsolete file could not be removed. The next opening tries again.
    Warning "file_deletion_failed" FileDeletionFailed {
        /// What went wrong.
        error: Error,
    }

    /// Garbage collection of value segments began.
    Info "value_collection_started" ValueGcStarted {
        /// The number of the job.
        job: u64,
        /// The keyspace.
        keyspace: String,
        /// The segments, by file number.
        files: Vec<u64>,
        /// Bytes that it may read.
        read_bytes: u64,
    }

    /// Garbage collection of value segments ended.
    Info "value_collection_finished" ValueGcFinished {
        /// The number of the job.
        job: u64,
        /// The keyspace.
        keyspace: String,
        /// The segments that are garbage now, by file number.
        files: Vec<u64>,
        /// Bytes read.
        read_bytes: u64,
        /// Bytes written.
        written_bytes: u64,
        /// Values that were copied.
        moved: u64,
        /// Look-ups in the tree.
        lookups: u64,
        /// Duration.
        micros: u64,
    }

    /// Empty value segments could not be removed. The next opening tries again.
    Warning "segment_removal_failed" SegmentRemovalFailed {
        /// What went wrong.
        error: Error,
    }

    /// A value segment for commits could not be begun. Commits write values to the log meanwhile.
    Warning "segment_begin_failed" SegmentBeginFailed {
        /// What went wrong.
        error: Error,
    }

    /// Writes began or ceased to be throttled or stopped, or for another reason than before. `LOG`
    /// has the first such event of a stall, and [`Event::StallFinished`] sums up the others.
    Info "stall_conditions_changed" StallConditionsChanged {
        /// What writes meet now.
        condition: StallCondition,
        /// What they met before.
        previous: StallCondition,
        /// Why writes wait, or why they waited where the condition is normal.
        reason: StallReason,
    }

    /// Stalls ended: writes were neither throttled nor stopped for a second, or the database
    /// closes. It sums up the changes since the last one of `LOG`.
    Info "stall_finished" StallFinished {
        /// Time from the first change to the last one.
        micros: u64,
        /// The reason for which writes waited longest.
        reason: StallReason,
        /// Number of waits.
        waits: u64,
        /// Their sum, over all threads.
        wait_micros: u64,
        /// How often and how long writes waited, by reason.
        stalls: StallTimes,
    }

    /// A checkpoint was written.
    Info "checkpoint_finished" CheckpointFinished {
        /// Duration.
        micros: u64,
    }

    /// Background work failed. It is tried again.
    Error "background_error" BackgroundError {
        /// What went wrong.
        error: Error,
    }

    /// A failure had an unknown outcome. Writes are refused until the database is opened again.
    Error "poisoned" Poisoned {
        /// What went wrong.
        error: Error,
    }

    /// The manifest could not be replaced by a shorter one.
    Warning "manifest_rewrite_failed" ManifestRewriteFailed {
        /// What went wrong.
        error: Error,
    }

    /// A compaction at the end of the database's life failed. The next opening does it.
    Warning "closing_move_failed" ClosingCompactionFailed {
        /// What went wrong.
        error: Error,
    }

    /// The medium is full: the space kept for work that must go on is used now.
    Error "space_reserve_released" SpaceReserveReleased {
        /// What went wrong.
        error: Error,
    }

    /// The medium is full: logs that were kept for change feeds alone were removed.
    Warning "changes_given_up" ChangesGivenUp {
        /// The number of logs.
        logs: u64,
    }

    /// The medium refused to keep space free.
    Warning "space_reserve_failed" SpaceReserveFailed {
        /// What went wrong.
        error: Error,
    }

    /// Bytes and waits since the last such event. Written after a flush, at most once a minute, and
    /// at closing.
    Info "traffic" Traffic {
        /// Time since the last such event, or since the opening.
        micros: u64,
        /// Bytes of keys and values that users wrote.
        user_write_bytes: u64,
        /// Bytes of keys and values that users received.
        user_read_bytes: u64,
        /// How often and how long writes waited, by reason.
        stalls: StallTimes,
        /// Bytes by cause.
        causes: CauseBytes,
    }

    /// A listener was too slow: events were dropped for it. They are in `LOG`.
    Warning "events_lost" EventsLost {
        /// The number of events.
        count: u64,
    }

    /// The listener panicked. It is not called again.
    Warning "listener_panicked" ListenerPanicked {
        /// Its message.
        message: String,
    }
}
