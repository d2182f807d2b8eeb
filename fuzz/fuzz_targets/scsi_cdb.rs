//! Commands of several hosts, in any order.
#![no_main]

libfuzzer_sys::fuzz_target!(
    init: fuzz::seeds::write_if_asked("scsi_cdb"),
    |bytes: &[u8]| fuzz::cdb::run(bytes)
);
