//! Changes of several objects at once: all of them in one commit, or none.
//!
//! Each is planned like the change of a single object, on the state before the commit. So no object
//! may be named twice, and values that only one object can have (a name, an initiator, a LUN) are
//! refused for several.

use std::collections::BTreeSet;

use crate::error::Error;
use crate::values::text::shown;

/// The maximum number of objects that are changed at once: their records must fit one commit of the
/// store.
pub const CHANGES_MAX: usize = 500;

/// Refuses duplicate names, and more names than fit one commit.
pub(crate) fn check<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> Result<(), Error> {
    if names.len() > CHANGES_MAX {
        return Err(Error::TooManyAtOnce { what: "objects are changed", limit: CHANGES_MAX });
    }
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name.to_ascii_lowercase()) {
            let text = format!("{} is named twice.", shown(name));
            return Err(Error::invalid("named_twice", text));
        }
    }
    Ok(())
}

pub(crate) fn check_all(names: &[String]) -> Result<(), Error> {
    check(names.iter().map(String::as_str))
}

pub(crate) fn check_pairs(pairs: &[(String, String)]) -> Result<(), Error> {
    let joined: Vec<String> = pairs.iter().map(|(a, b)| format!("{a} and {b}")).collect();
    check_all(&joined)
}

/// Refuses to give several objects a value that only one can have.
pub(crate) fn check_single(count: usize, asked: bool, what: &str) -> Result<(), Error> {
    if count < 2 || !asked {
        return Ok(());
    }
    let text = format!("Only one at a time can get {what}.");
    Err(Error::invalid("only_one", text))
}
