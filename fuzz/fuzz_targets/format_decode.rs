//! Bytes to every decoder of the on-disk format.
#![no_main]

libfuzzer_sys::fuzz_target!(
    init: fuzz::seeds::write_if_asked("format_decode"),
    |bytes: &[u8]| fuzz::decode::run(bytes)
);
