//! Bytes to every decoder of the on-disk format.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::decode::run(bytes));
