//! open-iscsi's records of the portals to log in to.
//!
//! The settings of a record are written into its file, not with `iscsiadm --op update --value`: a
//! record contains secrets, and every user can read the arguments of a running program. iscsiadm
//! takes values in no other way, and it creates these files for root only, too.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::commands::run;
use super::{Fault, System};
use crate::context::Chap;
use crate::secret::Secret;

/// Where open-iscsi may keep its records: on Debian, and elsewhere.
const DATABASES: [&str; 2] = ["/etc/iscsi", "/var/lib/iscsi"];
/// The name of a record that is being written: outside the directory in which iscsiadm takes every
/// file for a record.
const NEW: &str = "holdfast-csi.new";
/// The first and the last line of a record.
const BEGIN: &str = "# BEGIN RECORD";
const END: &str = "# END RECORD";

/// Held while records are edited, because two calls may stage volumes at one portal. open-iscsi's
/// own lock is not used: a driver that is killed would hold it until the machine restarts.
static EDITED: Mutex<()> = Mutex::new(());

/// The file of a record, and its content.
struct Record {
    path: PathBuf,
    new: PathBuf,
    text: Vec<u8>,
}

/// A setting's value.
enum Value<'a> {
    Plain(&'a str),
    Secret(&'a Secret),
    /// That of open-iscsi.
    Default,
}

/// Makes sure that there is a record of a portal, with the settings of the call.
pub fn prepare(
    system: &dyn System,
    target: &str,
    portal: &str,
    chap: Option<&Chap>,
) -> Result<(), Fault> {
    let _edited = EDITED.lock().unwrap_or_else(PoisonError::into_inner);
    let mut records = find(system, target, portal)?;
    // iscsiadm was killed while it wrote one.
    for half in records.extract_if(.., |record| !is_complete(&record.text)) {
        system.remove(&half.path).map_err(|error| Fault::of(&half.path, &error))?;
    }
    if records.is_empty() {
        let node = ["--mode", "node", "--targetname", target, "--portal", portal, "--op", "new"];
        run(system, "iscsiadm", &node, &[])?;
        records = find(system, target, portal)?;
    }
    if records.is_empty() {
        let text =
            format!("iscsiadm has created no record of {portal} in {}", DATABASES.join(", "));
        return Err(Fault::Failed(text));
    }
    let settings = settings(chap);
    for Record { path, new, text } in records {
        let wanted = with(&text, &settings);
        // The record of a session in use stays untouched if nothing changes.
        if wanted != text {
            let done = system.replace(&path, &new, &wanted);
            done.map_err(|error| Fault::of(&path, &error))?;
        }
    }
    Ok(())
}

/// Returns the records of a portal: one, or with interfaces of open-iscsi several.
fn find(system: &dyn System, target: &str, portal: &str) -> Result<Vec<Record>, Fault> {
    let wrong = || Fault::Wrong(format!("{portal} is not a portal of {target}"));
    let (address, port) = portal.rsplit_once(':').ok_or_else(wrong)?;
    let address = address.trim_start_matches('[').trim_end_matches(']');
    if [target, address, port].iter().any(|name| name.is_empty() || name.contains(['/', ','])) {
        return Err(wrong());
    }
    let mut found = Vec::new();
    for database in DATABASES {
        let directory = Path::new(database).join("nodes").join(target);
        for name in names(system, &directory)? {
            // ADDRESS,PORT is a record; ADDRESS,PORT,GROUP is a directory of them.
            let mut parts = name.splitn(3, ',');
            if (parts.next(), parts.next()) != (Some(address), Some(port)) {
                continue;
            }
            let place = directory.join(&name);
            let paths = match parts.next() {
                None => vec![place],
                Some(_) => names(system, &place)?.iter().map(|name| place.join(name)).collect(),
            };
            for path in paths {
                let text = system.read(&path).map_err(|error| Fault::of(&path, &error))?;
                found.push(Record { path, new: Path::new(database).join(NEW), text });
            }
        }
    }
    Ok(found)
}

/// Returns the names in a directory; none if there is no directory.
fn names(system: &dyn System, directory: &Path) -> Result<Vec<String>, Fault> {
    match system.names(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        names => names.map_err(|error| Fault::of(directory, &error)),
    }
}

/// Returns whether a record was written to its end.
fn is_complete(text: &[u8]) -> bool {
    let text = text.trim_ascii_end();
    text.starts_with(BEGIN.as_bytes()) && text.ends_with(END.as_bytes())
}

/// Returns the settings of a record that differ from open-iscsi's defaults.
fn settings(chap: Option<&Chap>) -> Vec<(&'static str, Value<'_>)> {
    let mut settings = vec![
        // A silent portal is tried once: the orchestrator repeats the call.
        ("node.session.initial_login_retry_max", Value::Plain("1")),
        // Only LUNs of staged volumes are scanned.
        ("node.session.scan", Value::Plain("manual")),
    ];
    let Some(chap) = chap else { return settings };
    // Without secrets of the array, it must not be asked for those of an earlier call.
    let (user, password) = match &chap.target {
        Some((user, password)) => (Value::Plain(user), Value::Secret(password)),
        None => (Value::Default, Value::Default),
    };
    settings.extend([
        ("node.session.auth.authmethod", Value::Plain("CHAP")),
        ("node.session.auth.username", Value::Plain(&chap.user)),
        ("node.session.auth.password", Value::Secret(&chap.password)),
        ("node.session.auth.username_in", user),
        ("node.session.auth.password_in", password),
    ]);
    settings
}

/// Returns a complete record with these settings, each in its place, and all its others.
fn with(text: &[u8], settings: &[(&str, Value<'_>)]) -> Vec<u8> {
    let mut missing: Vec<_> = settings.iter().collect();
    let mut record = Vec::with_capacity(text.len() + 512);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let name = line.split(|byte| *byte == b'=').next().unwrap_or_default().trim_ascii();
        if line.starts_with(END.as_bytes()) {
            missing.drain(..).for_each(|(name, value)| push(&mut record, name, value));
        }
        match settings.iter().find(|(set, _)| set.as_bytes() == name) {
            Some((set, value)) => {
                let count = missing.len();
                missing.retain(|(name, _)| name != set);
                if missing.len() < count {
                    push(&mut record, set, value);
                }
            }
            None => record.extend_from_slice(line),
        }
    }
    record
}

fn push(record: &mut Vec<u8>, name: &str, value: &Value<'_>) {
    if matches!(value, Value::Default) {
        return;
    }
    record.extend_from_slice(name.as_bytes());
    record.extend_from_slice(b" = ");
    match value {
        Value::Plain(text) => record.extend_from_slice(text.as_bytes()),
        Value::Secret(secret) => secret.append_to(record),
        Value::Default => {}
    }
    record.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = "# BEGIN RECORD 2.1.11\nnode.name = iqn.a\nnode.session.scan = auto\n\
                          node.session.auth.password = older\n# END RECORD\n";

    fn chap(is_mutual: bool) -> Chap {
        let secret = |text| Secret::new(text).unwrap();
        let target = is_mutual.then(|| ("array".to_owned(), secret("of-the-target")));
        Chap { user: "node".into(), password: secret("of-the-host"), target }
    }

    fn written(text: &str, chap: Option<&Chap>) -> String {
        String::from_utf8(with(text.as_bytes(), &settings(chap))).unwrap()
    }

    #[test]
    fn a_record_gets_the_settings_of_the_call_and_keeps_the_others() {
        let plain = written(RECORD, None);
        assert_eq!(
            plain,
            "# BEGIN RECORD 2.1.11\nnode.name = iqn.a\nnode.session.scan = manual\n\
             node.session.auth.password = older\nnode.session.initial_login_retry_max = 1\n\
             # END RECORD\n"
        );
        let both = written(&plain, Some(&chap(true)));
        for line in [
            "node.name = iqn.a",
            "node.session.auth.authmethod = CHAP",
            "node.session.auth.username = node",
            "node.session.auth.password = of-the-host",
            "node.session.auth.username_in = array",
            "node.session.auth.password_in = of-the-target",
        ] {
            assert_eq!(both.lines().filter(|found| *found == line).count(), 1, "{line}: {both}");
        }
        assert!(!both.contains("older"));
        assert_eq!(written(&both, Some(&chap(true))), both, "it is written once");
        assert_eq!(written(&both, None), both, "a call without secrets changes none");
    }

    /// The array has no secret then, and a node that asks for it can't log in.
    #[test]
    fn secrets_of_the_array_that_a_call_lacks_are_removed() {
        let one_way = written(&written(RECORD, Some(&chap(true))), Some(&chap(false)));
        assert!(!one_way.contains("_in ="), "{one_way}");
        assert!(one_way.contains("node.session.auth.password = of-the-host\n"), "{one_way}");
    }

    #[test]
    fn a_truncated_record_is_not_complete() {
        assert!(is_complete(RECORD.as_bytes()));
        assert!(!is_complete(b""));
        assert!(!is_complete(&RECORD.as_bytes()[..RECORD.len() - 3]));
    }
}
