//! The banner: a text that is shown before a login.

use crate::error::Error;

/// The maximum length of a banner, in characters.
pub const BANNER_CHARS_MAX: usize = 2000;

/// A text of one or more lines, or none: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Banner(String);

impl Banner {
    /// Checks a banner. Anybody sees it, so it has no control characters except line feeds.
    ///
    /// # Errors
    /// `invalid_banner`.
    pub fn new(text: String) -> Result<Self, Error> {
        let count = text.chars().count();
        if count > BANNER_CHARS_MAX {
            let text =
                format!("A banner has up to {BANNER_CHARS_MAX} characters; this one has {count}.");
            return Err(Error::invalid("invalid_banner", text));
        }
        if text.chars().any(|c| c.is_control() && c != '\n') {
            let text = "A banner has no control characters, except line feeds between its lines.";
            return Err(Error::invalid("invalid_banner", text));
        }
        Ok(Self(text))
    }

    /// Returns the text; empty if there is none.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_banner_has_lines_and_is_bounded() {
        for good in ["", "Banner over\ntwo lines", "für alle 🙂", &"ü".repeat(BANNER_CHARS_MAX)]
        {
            assert_eq!(Banner::new(good.into()).unwrap().as_str(), good);
        }
        for bad in ["a\r\nb", "a\u{1b}[2J", "a\0", "a\tb", &"x".repeat(BANNER_CHARS_MAX + 1)] {
            assert_eq!(Banner::new(bad.into()).unwrap_err().code(), "invalid_banner", "{bad:?}");
        }
    }
}
