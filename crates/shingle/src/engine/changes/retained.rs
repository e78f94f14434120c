//! Which logs an open database keeps for change feeds, and until when.
//!
//! Invariants:
//! - The logs are the chain of the database, up to the one that takes records.
//! - Logs leave from the oldest on, and only below the log floor.

use crate::change_stats::ChangeStats;
use crate::engine::changes::chain::ChangeLog;
use crate::options::Retention;
use base::env::Event;
use base::{FileId, SequenceNumber};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use table::log::{LogHeader, PreviousLog};
use table::log_record::LogBegin;

/// The logs of a database that keeps changes.
pub(crate) struct ChangeLogs {
    retention: Retention,
    /// Where the first log continues if it is the first of its chain.
    first_sequence: SequenceNumber,
    state: Mutex<State>,
    /// Fires when a batch is committed or synced, and when no more will be.
    pub progress: Event,
}

#[derive(Default)]
struct State {
    /// Oldest first.
    logs: VecDeque<Kept>,
    /// The end of the chain at opening.
    end: Option<PreviousLog>,
    /// Logs below it are kept for feeds alone.
    floor: FileId,
}

struct Kept {
    log: Arc<ChangeLog>,
    /// 0 while it takes records.
    bytes: u64,
}

impl ChangeLogs {
    /// `chain` ends at `end`. Without a chain, everything up to `logged` is in no log that is kept.
    pub(crate) fn new(
        retention: Retention,
        chain: Vec<Arc<ChangeLog>>,
        end: Option<PreviousLog>,
        logged: SequenceNumber,
    ) -> ChangeLogs {
        let next = chain.iter().skip(1).map(|log| log.previous);
        let ends: Vec<u64> = next.chain([end]).map(|end| end.map_or(0, |end| end.bytes)).collect();
        let logs = chain.into_iter().zip(ends).map(|(log, bytes)| Kept { log, bytes }).collect();
        ChangeLogs {
            retention,
            first_sequence: end.map_or(logged, |end| end.last_sequence).saturating_add(1),
            state: Mutex::new(State { logs, end, floor: FileId(0) }),
            progress: Event::default(),
        }
    }

    /// The end of the chain at opening, which the first log of this opening continues.
    pub(crate) fn end(&self) -> Option<PreviousLog> {
        self.state.lock().end
    }

    /// What a log begins with that follows the sequence number `logged`; 0: nothing was logged.
    pub(crate) fn begin_at(&self, logged: SequenceNumber, wall_micros: u64) -> LogBegin {
        let first_sequence = if logged == 0 { self.first_sequence } else { logged + 1 };
        LogBegin { first_sequence, wall_micros }
    }

    /// A log takes records from now on.
    pub(crate) fn begun(&self, header: &LogHeader, begin: LogBegin) {
        let mut state = self.state.lock();
        if let (Some(last), Some(previous)) = (state.logs.back_mut(), header.previous) {
            last.bytes = previous.bytes;
        }
        let log = ChangeLog {
            file: header.file,
            first_sequence: begin.first_sequence,
            begun_micros: begin.wall_micros,
            previous: header.previous,
            restates: header.restates,
        };
        state.logs.push_back(Kept { log: Arc::new(log), bytes: 0 });
    }

    /// The logs from `floor` on that this opening found.
    pub(crate) fn found_from(&self, floor: FileId) -> Vec<Arc<ChangeLog>> {
        let state = self.state.lock();
        let found = state.logs.iter().filter(|kept| kept.log.file >= floor);
        found.map(|kept| kept.log.clone()).collect()
    }

    /// `log`, which ends at `end`, takes the place of the logs from `floor` on. Recovery never
    /// needs it.
    pub(crate) fn restated(&self, floor: FileId, log: ChangeLog, end: PreviousLog) {
        let mut state = self.state.lock();
        state.logs.retain(|kept| kept.log.file < floor);
        state.logs.push_back(Kept { log: Arc::new(log), bytes: end.bytes });
        state.end = Some(end);
        state.floor = FileId(end.file.0 + 1);
    }

    /// Ends the chain of earlier openings: a feed that has not read it is too late. Returns the
    /// number of its logs.
    pub(crate) fn give_up_found(&self) -> u64 {
        let mut state = self.state.lock();
        state.end = None;
        std::mem::take(&mut state.logs).len() as u64
    }

    /// The logs from `floor` on that take no more records, with their bytes.
    pub(crate) fn ends_from(&self, floor: FileId) -> Vec<(FileId, u64)> {
        let state = self.state.lock();
        let logs = state.logs.iter().filter(|kept| kept.log.file >= floor && kept.bytes > 0);
        logs.map(|kept| (kept.log.file, kept.bytes)).collect()
    }

    /// Recovery needs no log below `floor`.
    pub(crate) fn pass_floor(&self, floor: FileId) {
        let mut state = self.state.lock();
        state.floor = state.floor.max(floor);
    }

    /// The log is part of the chain.
    pub(crate) fn holds(&self, file: FileId) -> bool {
        self.state.lock().logs.iter().any(|kept| kept.log.file == file)
    }

    /// The chain, oldest first, and the sequence number from which it has everything.
    pub(crate) fn chain(&self) -> (Vec<Arc<ChangeLog>>, SequenceNumber) {
        let state = self.state.lock();
        let first = state.logs.front().map_or(self.first_sequence, |kept| kept.log.first_sequence);
        (state.logs.iter().map(|kept| kept.log.clone()).collect(), first)
    }

    /// Takes the logs that are beyond the retention. They may be removed.
    pub(crate) fn take_expired(&self, now_micros: u64) -> Vec<FileId> {
        let mut state = self.state.lock();
        let mut bytes = state.retained_bytes();
        let mut expired = Vec::new();
        while let Some(oldest) = state.oldest_retained() {
            let is_old = state.oldest_end_micros().is_some_and(|end_micros| {
                now_micros.saturating_sub(end_micros) > self.retention.age_micros_max
            });
            if bytes <= self.retention.bytes_max && !is_old {
                break;
            }
            bytes -= oldest.bytes;
            expired.push(oldest.log.file);
            state.logs.pop_front();
        }
        expired
    }

    /// Takes every log that only feeds need.
    pub(crate) fn take_all(&self) -> Vec<FileId> {
        let mut state = self.state.lock();
        let mut taken = Vec::new();
        while let Some(oldest) = state.oldest_retained() {
            taken.push(oldest.log.file);
            state.logs.pop_front();
        }
        taken
    }

    /// In how many nanoseconds the oldest log is beyond the retention's age.
    pub(crate) fn expires_in_ns(&self, now_micros: u64) -> Option<u64> {
        let state = self.state.lock();
        state.oldest_retained()?;
        let end_micros = state.oldest_end_micros()?;
        let after_micros = end_micros.checked_add(self.retention.age_micros_max)?;
        Some(after_micros.saturating_sub(now_micros).saturating_add(1).saturating_mul(1000))
    }

    pub(crate) fn stats(&self) -> ChangeStats {
        let state = self.state.lock();
        let first = state.logs.front().map_or(self.first_sequence, |kept| kept.log.first_sequence);
        ChangeStats {
            logs: state.retained().count() as u64,
            bytes: state.retained_bytes(),
            oldest_sequence: Some(first),
        }
    }
}

impl State {
    /// The logs that only feeds need.
    fn retained(&self) -> impl Iterator<Item = &Kept> {
        self.logs.iter().take_while(|kept| kept.log.file < self.floor)
    }

    fn retained_bytes(&self) -> u64 {
        self.retained().map(|kept| kept.bytes).sum()
    }

    fn oldest_retained(&self) -> Option<&Kept> {
        self.logs.front().filter(|kept| kept.log.file < self.floor)
    }

    /// When the oldest log ended: the next one began then. `None`: no log follows yet.
    fn oldest_end_micros(&self) -> Option<u64> {
        self.logs.get(1).map(|next| next.log.begun_micros)
    }
}
