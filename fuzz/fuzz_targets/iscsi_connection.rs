//! PDUs in any order, to connections that are logged in.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::connection::run(bytes));
