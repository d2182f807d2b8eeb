//! Secrets of calls.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use super::calls::{CALLS, Call, GROWN_BYTES, Machine, TESTED, Usage};
use super::process::{Kill, Moment, Victim};
use super::world::Content;

/// A text that all secrets of this test contain.
const MARK: &str = "hush-hush";

/// A log in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn secrets(suffix: &str) -> HashMap<String, String> {
    let of = |name: &str, text: String| (format!("node.session.auth.{name}"), text);
    HashMap::from([
        of("username", "node".into()),
        of("password", format!("{MARK}-node-{suffix}")),
        of("username_in", "array".into()),
        of("password_in", format!("{MARK}-array-{suffix}")),
    ])
}

/// Every command line and every message of all calls: with these secrets, with wrong ones, with
/// those of an earlier call, and interrupted at each step.
#[test]
fn a_secret_is_in_no_argument_and_no_message() {
    let log = Log::default();
    let writer = log.clone();
    let logger = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE);
    // Of all threads: those that log in are others.
    let logger = logger.with_writer(move || writer.clone()).finish();
    tracing::subscriber::set_global_default(logger).unwrap();
    let usage = Usage { filesystem: Some("ext4"), secrets: secrets("right"), ..Usage::default() };
    let mut machine = Machine::new(&usage, Content::Blank);
    let mut texts = machine.world.commands.clone();
    let mut logins = 0;
    for call in CALLS {
        machine.world.volumes.get_mut(TESTED.1).unwrap().size_bytes = GROWN_BYTES;
        for step in 0..40 {
            let kill = Kill { victim: Victim::Array, moment: Moment::Before, step };
            let mut before = machine.clone();
            // All log in anew.
            before.world.sessions.retain(|_, _| call != Call::Stage);
            for secrets in [secrets("right"), secrets("wrong")] {
                let usage = Usage { secrets, ..usage.clone() };
                let done = before.make(call, TESTED, &usage, Some(kill));
                texts.extend(done.machine.world.commands);
                texts.extend(done.result.err().map(|refusal| format!("{refusal:?} {refusal}")));
            }
        }
        let done = machine.make(call, TESTED, &usage, None);
        done.result.unwrap();
        machine = done.machine;
    }
    // The secrets are where they belong, and nowhere else.
    let records = machine.world.files.values().map(|text| String::from_utf8_lossy(text));
    assert_eq!(records.filter(|text| text.contains(MARK)).count(), 2);
    for text in &texts {
        assert!(!text.contains(MARK), "{text}");
        logins += usize::from(text.ends_with("--login"));
    }
    assert!(logins > 100, "{logins}");
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("iscsiadm failed"), "{log}");
    assert!(!log.contains(MARK), "{log}");
}
