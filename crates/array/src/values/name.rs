//! Which names are allowed. Names of volumes and hosts keep their case, and compare without it:
//! `DB1` and `db1` can't both exist.

use std::fmt;

use crate::error::Error;

/// The longest name of a volume, a host or an array, in characters.
pub const NAME_CHARS_MAX: usize = 63;
/// The longest iSCSI name, in bytes (RFC 7143 section 4.2.7.1).
pub const ISCSI_NAME_BYTES_MAX: usize = 223;

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// As it was given.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name_type!(
    /// The name of a volume: 1 to 63 of A-Z a-z 0-9 - _, a letter or digit at both ends, and not
    /// digits only. One that is in a volume group has the name of that and a `/` before its own.
    VolumeName
);
name_type!(
    /// The name of a volume group: as a volume's own.
    VolumeGroupName
);
name_type!(
    /// The name of a host or of the array: as a volume's, but without `_`.
    HostName
);
name_type!(
    /// The name of a host group: as a host's.
    HostGroupName
);
name_type!(
    /// The name of a group of volumes: as a host's.
    GroupName
);
name_type!(
    /// What distinguishes the snapshots of a volume, or the moments of a group: as a host's name.
    /// Suffixes of digits only are reserved for the array, which counts.
    Suffix
);
name_type!(
    /// The name of a user: as a volume's.
    UserName
);
name_type!(
    /// What distinguishes the API tokens of a user: as a volume's name.
    TokenName
);
name_type!(
    /// The name of a report of the lab: as a volume's.
    LabReportName
);
name_type!(
    /// The name of a syslog server: as a volume's.
    SyslogServerName
);
name_type!(
    /// An iSCSI name (RFC 7143 section 4.2.7): `iqn.`, `eui.` or `naa.`, in lower case.
    InitiatorName
);

impl VolumeName {
    /// In lower case, for comparison.
    pub(crate) fn key(&self) -> String {
        self.0.to_ascii_lowercase()
    }

    /// Checks a name.
    ///
    /// # Errors
    /// `invalid_name`.
    pub fn new(text: &str) -> Result<Self, Error> {
        let own = match text.split_once('/') {
            Some((group, own)) => VolumeGroupName::new(group).map(|_| own)?,
            None => text,
        };
        check("volume", own, "A-Z a-z 0-9 - _", |c| c == '-' || c == '_')?;
        Ok(Self(text.to_owned()))
    }

    /// The name of its volume group, if it is in one.
    pub fn group(&self) -> Option<&str> {
        self.0.split_once('/').map(|(group, _)| group)
    }

    /// Its own name, without that of a group.
    pub fn own(&self) -> &str {
        self.0.split_once('/').map_or(self.as_str(), |(_, own)| own)
    }

    /// The same in a volume group, or in none.
    pub fn within(&self, group: Option<&VolumeGroupName>) -> Self {
        let own = self.own();
        Self(group.map_or_else(|| own.to_owned(), |group| format!("{group}/{own}")))
    }
}

impl VolumeGroupName {
    /// In lower case, for comparison.
    pub(crate) fn key(&self) -> String {
        self.0.to_ascii_lowercase()
    }

    /// Checks a name.
    ///
    /// # Errors
    /// `invalid_name`.
    pub fn new(text: &str) -> Result<Self, Error> {
        check("volume group", text, "A-Z a-z 0-9 - _", |c| c == '-' || c == '_')?;
        Ok(Self(text.to_owned()))
    }
}

impl HostName {
    /// In lower case, for comparison.
    pub(crate) fn key(&self) -> String {
        self.0.to_ascii_lowercase()
    }

    /// Checks a name.
    ///
    /// # Errors
    /// `invalid_name`.
    pub fn new(text: &str) -> Result<Self, Error> {
        check("host", text, "A-Z a-z 0-9 -", |c| c == '-')?;
        Ok(Self(text.to_owned()))
    }

    /// Checks the name of an array: the same rules.
    ///
    /// # Errors
    /// `invalid_name`.
    pub fn of_array(text: &str) -> Result<Self, Error> {
        check("array", text, "A-Z a-z 0-9 -", |c| c == '-')?;
        Ok(Self(text.to_owned()))
    }
}

impl HostGroupName {
    /// In lower case, for comparison.
    pub(crate) fn key(&self) -> String {
        self.0.to_ascii_lowercase()
    }

    /// Checks a name.
    ///
    /// # Errors
    /// `invalid_name`.
    pub fn new(text: &str) -> Result<Self, Error> {
        check("host group", text, "A-Z a-z 0-9 -", |c| c == '-')?;
        Ok(Self(text.to_owned()))
    }
}

impl GroupName {
    /// In lower case, for comparison.
    pub(crate) fn key(&self) -> String {
        self.0.to_ascii_lowercase()
    }

    /// Checks a name.
    ///
    /// # Errors
    /// `invalid_name`.
    pub fn new(text: &str) -> Result<Self, Error> {
        check("group", text, "A-Z a-z 0-9 -", |c| c == '-')?;
        Ok(Self(text.to_owned()))
    }
}

impl UserName {
    /// In lower case, for comparison.
    pub(crate) fn key(&self) -> String {
        self.0.to_ascii_lowercase()
    }

    /// Checks a name.
    ///
    /// # Errors
    /// `invalid_name`.
    pub fn new(text: &str) -> Result<Self, Error> {
        check("user", text, "A-Z a-z 0-9 - _", |c| c == '-' || c == '_')?;
        Ok(Self(text.to_owned()))
    }
}

impl TokenName {
    /// In lower case, for comparison.
    pub(crate) fn key(&self) -> String {
        self.0.to_ascii_lowercase()
    }

    /// Checks a name.
    ///
    /// # Errors
    /// `invalid_name`.
    pub fn new(text: &str) -> Result<Self, Error> {
        check("token", text, "A-Z a-z 0-9 - _", |c| c == '-' || c == '_')?;
        Ok(Self(text.to_owned()))
    }
}

impl LabReportName {
    /// In lower case, for comparison.
    pub(crate) fn key(&self) -> String {
        self.0.to_ascii_lowercase()
    }

    /// Checks a name.
    ///
    /// # Errors
    /// `invalid_name`.
    pub fn new(text: &str) -> Result<Self, Error> {
        check("lab report", text, "A-Z a-z 0-9 - _", |c| c == '-' || c == '_')?;
        Ok(Self(text.to_owned()))
    }
}

impl SyslogServerName {
    /// In lower case, for comparison.
    pub(crate) fn key(&self) -> String {
        self.0.to_ascii_lowercase()
    }

    /// Checks a name.
    ///
    /// # Errors
    /// `invalid_name`.
    pub fn new(text: &str) -> Result<Self, Error> {
        check("syslog server", text, "A-Z a-z 0-9 - _", |c| c == '-' || c == '_')?;
        Ok(Self(text.to_owned()))
    }
}

impl Suffix {
    /// In lower case, for comparison.
    pub(crate) fn key(&self) -> String {
        self.0.to_ascii_lowercase()
    }

    /// Checks a suffix that a user has chosen.
    ///
    /// # Errors
    /// `invalid_name`.
    pub fn new(text: &str) -> Result<Self, Error> {
        check("snapshot", text, "A-Z a-z 0-9 -", |c| c == '-')?;
        Ok(Self(text.to_owned()))
    }

    /// A suffix that the array assigns.
    pub(crate) fn counted(number: u64) -> Self {
        Self(number.to_string())
    }

    /// A stored suffix, assigned or chosen.
    pub(crate) fn stored(text: &str) -> Result<Self, Error> {
        let counted = text.parse().map(Self::counted).ok();
        counted.filter(|counted| counted.0 == text).map_or_else(|| Self::new(text), Ok)
    }

    /// The number of an assigned suffix.
    pub(crate) fn number(&self) -> Option<u64> {
        self.0.parse().ok()
    }
}

fn check(
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
        return refuse(format!("must not hold {bad:?}; use {allowed}"));
    }
    let at_ends = [text.chars().next(), text.chars().next_back()];
    if at_ends.iter().flatten().any(|c| !c.is_ascii_alphanumeric()) {
        return refuse("must start and end with a letter or digit".into());
    }
    if text.chars().all(|c| c.is_ascii_digit()) {
        return refuse("must hold a letter or a mark besides digits".into());
    }
    Ok(())
}

impl InitiatorName {
    /// Checks an iSCSI name and converts it to lower case, the normal form of RFC 7143 section
    /// 4.2.7.3.
    ///
    /// # Errors
    /// `invalid_initiator`.
    pub fn new(text: &str) -> Result<Self, Error> {
        let name = text.to_lowercase();
        match iscsi_name_fault(&name) {
            None => Ok(Self(name)),
            Some(why) => {
                let shown: String = text.chars().take(ISCSI_NAME_BYTES_MAX).collect();
                let text = format!("The iSCSI name {shown:?} {why}.");
                Err(Error::invalid("invalid_initiator", text))
            }
        }
    }
}

fn iscsi_name_fault(name: &str) -> Option<&'static str> {
    if name.len() > ISCSI_NAME_BYTES_MAX {
        return Some("is longer than 223 bytes");
    }
    let is_hex = |rest: &str, lengths: &[usize]| {
        lengths.contains(&rest.len()) && rest.bytes().all(|b| b.is_ascii_hexdigit())
    };
    if let Some(rest) = name.strip_prefix("iqn.") {
        return iqn_fault(rest);
    }
    if let Some(rest) = name.strip_prefix("eui.") {
        return (!is_hex(rest, &[16])).then_some("must have 16 hex digits after `eui.`");
    }
    if let Some(rest) = name.strip_prefix("naa.") {
        return (!is_hex(rest, &[16, 32])).then_some("must have 16 or 32 hex digits after `naa.`");
    }
    Some("must start with `iqn.`, `eui.` or `naa.`; a host shows its own in its iSCSI settings")
}

/// `yyyy-mm.reversed.domain[:anything]`.
fn iqn_fault(rest: &str) -> Option<&'static str> {
    let dated = match rest.as_bytes() {
        [year @ .., b'-', m1, m2] if year.len() == 4 => digits(year) && digits(&[*m1, *m2]),
        [y1, y2, y3, y4, b'-', m1, m2, b'.', authority, ..] => {
            *authority != b':' && digits(&[*y1, *y2, *y3, *y4, *m1, *m2])
        }
        _ => false,
    };
    if !dated || rest.len() < 9 {
        return Some("must look like iqn.2026-11.com.example:host1");
    }
    let allowed = |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':') || (!c.is_ascii() && is_plain(c))
    };
    (!rest.chars().all(allowed)).then_some("must hold only letters, digits, `-`, `.` and `:`")
}

fn digits(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_digit)
}

fn is_plain(c: char) -> bool {
    c.is_alphanumeric()
}

#[cfg(test)]
mod tests;
