//! Priorities of background threads.

/// Lowers the scheduling priority of the calling thread by `nice` steps (1 to 19). Going up needs
/// no privilege; where it fails all the same, the thread goes on as it was.
pub fn lower_thread_priority(nice: i32) {
    // On Linux, "the calling process" is the calling thread.
    let _ = rustix::process::setpriority_process(None, nice);
}
