//! Bytes to a connection that is not logged in yet: login, text keys, CHAP.
#![no_main]

libfuzzer_sys::fuzz_target!(
    init: fuzz::seeds::write_if_asked("iscsi_login"),
    |bytes: &[u8]| fuzz::login::run(bytes)
);
