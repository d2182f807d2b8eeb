//! PDUs in any order, to connections that are logged in.
#![no_main]

libfuzzer_sys::fuzz_target!(
    init: fuzz::seeds::write_if_asked("iscsi_connection"),
    |bytes: &[u8]| fuzz::connection::run(bytes)
);
