//! Parameter lists that are nearly right.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::parameters::run(bytes));
