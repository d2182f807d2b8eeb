//! Parameter lists that are nearly right.
#![no_main]

libfuzzer_sys::fuzz_target!(
    init: fuzz::seeds::write_if_asked("scsi_parameters"),
    |bytes: &[u8]| fuzz::parameters::run(bytes)
);
