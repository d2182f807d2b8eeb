//! Commands of several hosts, in any order.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::cdb::run(bytes));
