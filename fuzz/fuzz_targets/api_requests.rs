//! Requests to the management interface.
#![no_main]

libfuzzer_sys::fuzz_target!(
    init: fuzz::seeds::write_if_asked("api_requests"),
    |bytes: &[u8]| fuzz::requests::run(bytes)
);
