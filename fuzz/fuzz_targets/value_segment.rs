//! Fuzzes the target `value_segment`; see `crates/shingle/tests/damage/targets.rs`.

#![no_main]

#[path = "../../crates/shingle/tests/damage/targets.rs"]
#[allow(dead_code)]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::value_segment(data));
