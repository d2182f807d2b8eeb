//! A pool whose stored bytes were changed.
#![no_main]

libfuzzer_sys::fuzz_target!(
    init: fuzz::seeds::write_if_asked("store_image"),
    |bytes: &[u8]| fuzz::image::run(bytes)
);
