//! The common rules of all names that people choose.

use crate::error::Error;

/// The maximum length of the name of a volume, a host or an array, in characters.
pub const NAME_CHARS_MAX: usize = 63;

/// Refuses an invalid name: `what` is the kind of object; the other arguments are the allowed
/// characters.
pub(super) fn check(
    what: &str,
    text: &str,
    allowed: &str,
    is_mark: impl Fn(char) -> bool,
) -> Result<(), Error> {
    let refuse = |why: String| {
        Err(Error::invalid("invalid_name", format!("The {what} name {text:?} {why}.")))
    };
    if text.is_empty() || text.chars().count() > NAME_CHARS_MAX {
        let shown: String = text.chars().take(NAME_CHARS_MAX).collect();
        let text = format!(
            "The {what} name {shown:?}… must have 1 to {NAME_CHARS_MAX} characters; it has {}.",
            text.chars().count()
        );
        return Err(Error::invalid("invalid_name", text));
    }
    if let Some(bad) = text.chars().find(|&c| !c.is_ascii_alphanumeric() && !is_mark(c)) {
        return refuse(format!("must not contain {bad:?}; use {allowed}"));
    }
    let at_ends = [text.chars().next(), text.chars().next_back()];
    if at_ends.iter().flatten().any(|c| !c.is_ascii_alphanumeric()) {
        return refuse("must start and end with a letter or digit".into());
    }
    if text.chars().all(|c| c.is_ascii_digit()) {
        return refuse("must not consist of digits only".into());
    }
    Ok(())
}
