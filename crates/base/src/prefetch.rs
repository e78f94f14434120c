//! A hint to the processor: fetch a line into its caches, since it is read soon.
//!
//! A load that misses the caches takes as long as some hundred instructions. Where several
//! addresses are known before the first is read, their lines can be fetched at the same time.

#![allow(unsafe_code)] // The hint is an instruction, which the compiler offers for any address.

/// The bytes that a processor fetches at once.
pub const LINE_BYTES: usize = 64;

/// Fetches the line of `at`, without waiting for it.
#[inline(always)]
pub fn prefetch(at: &u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction changes nothing that a program sees, at any address; this one is
        // of memory that is borrowed.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(at).cast()) }
    }
    // A load that nothing depends on. Instructions behind it begin before it ends, though fewer
    // than behind a hint.
    #[cfg(not(target_arch = "x86_64"))]
    std::hint::black_box(*at);
}
