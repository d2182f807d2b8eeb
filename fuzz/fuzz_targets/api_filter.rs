//! Filters of lists.
#![no_main]

libfuzzer_sys::fuzz_target!(
    init: fuzz::seeds::write_if_asked("api_filter"),
    |bytes: &[u8]| fuzz::filter::run(bytes)
);
