//! Requests to the management interface.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::requests::run(bytes));
