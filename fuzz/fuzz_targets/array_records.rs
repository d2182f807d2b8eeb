//! Records of volumes, hosts and connections as a pool may hold them.
#![no_main]

libfuzzer_sys::fuzz_target!(
    init: fuzz::seeds::write_if_asked("array_records"),
    |bytes: &[u8]| fuzz::records::run(bytes)
);
