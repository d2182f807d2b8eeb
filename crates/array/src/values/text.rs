//! Texts from requests: how they are checked, and how they are shown.

use crate::error::Error;

/// Checks a text that is kept for users: its number of characters, and that it is a single line.
pub(crate) fn check_text(
    code: &'static str,
    what: &str,
    text: &str,
    least: usize,
    most: usize,
) -> Result<(), Error> {
    let count = text.chars().count();
    if (least..=most).contains(&count) && !text.chars().any(char::is_control) {
        return Ok(());
    }
    let text = format!("The {what} has {least} to {most} characters, and no control characters.");
    Err(Error::invalid(code, text))
}

/// Returns a name from a request, fit to be shown on one line.
pub fn shown(name: &str) -> String {
    name.chars().take(80).flat_map(char::escape_debug).collect()
}

/// Returns a text on one line, cut to `bytes_max`. Characters that take more room in JSON are
/// replaced.
pub(crate) fn one_line(text: &str, bytes_max: usize) -> String {
    let mut kept = String::new();
    for c in text.chars() {
        let c = if c.is_control() || c == '"' || c == '\\' { '?' } else { c };
        if kept.len() + c.len_utf8() > bytes_max {
            break;
        }
        kept.push(c);
    }
    kept
}
