//! A pool whose stored bytes were changed.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::image::run(bytes));
