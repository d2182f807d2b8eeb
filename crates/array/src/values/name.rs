//! The rules of names. Names of volumes and hosts preserve case, but comparison ignores it: `DB1`
//! and `db1` can't both exist.

use std::fmt;

use super::container::ContainerName;
use super::naming::check;
use crate::container_kind::ContainerKind;
use crate::error::Error;

pub use super::naming::NAME_CHARS_MAX;

/// The maximum length of an iSCSI name, in bytes (RFC 7143 section 4.2.7.1).
pub const ISCSI_NAME_BYTES_MAX: usize = 223;

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// Returns it as it was given.
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
    /// digits only. For a volume in a volume group, the name of the group and a `/` precede its own
    /// name; for one in a pod, the name of the pod and `::`.
    VolumeName
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
    /// The suffix that distinguishes the snapshots of a volume, or the moments of a group: as a
    /// host's name. Suffixes of digits only are reserved for the array, which numbers them.
    Suffix
);
name_type!(
    /// The name of a user: as a volume's.
    UserName
);
name_type!(
    /// The name that distinguishes the API tokens of a user: as a volume's name.
    TokenName
);
name_type!(
    /// The name of a syslog server: as a volume's.
    SyslogServerName
);
name_type!(
    /// The name of an SNMP manager: as a volume's.
    SnmpManagerName
);
name_type!(
    /// The name of a certificate: as a volume's.
    CertificateName
);
name_type!(
    /// An iSCSI name (RFC 7143 section 4.2.7): `iqn.`, `eui.` or `naa.`, in lower case.
    InitiatorName
);

impl VolumeName {
    /// Returns it in lower case, for comparison.
    pub(crate) fn key(&self) -> String {
        self.0.to_ascii_lowercase()
    }

    /// Checks a name.
    ///
    /// # Errors
    /// `invalid_name`.
    pub fn new(text: &str) -> Result<Self, Error> {
        let own = match ContainerKind::split(text) {
            Some((kind, container, own)) => {
                ContainerName::new(kind, container)?;
                if let Some((other, ..)) = ContainerKind::split(own) {
                    return Err(twice(text, kind, other));
                }
                own
            }
            None => text,
        };
        check("volume", own, "A-Z a-z 0-9 - _", |c| c == '-' || c == '_')?;
        Ok(Self(text.to_owned()))
    }

    /// Returns the volume group or the pod of the volume, if it is in one.
    pub fn container(&self) -> Option<(ContainerKind, &str)> {
        ContainerKind::split(&self.0).map(|(kind, container, _)| (kind, container))
    }

    /// Returns its own name, without that of a container.
    pub fn own(&self) -> &str {
        Self::own_of(&self.0)
    }

    /// Returns the part of a volume's name without that of a container.
    pub(crate) fn own_of(name: &str) -> &str {
        ContainerKind::split(name).map_or(name, |(.., own)| own)
    }

    /// Returns the name that the volume has in a volume group or a pod, or in none.
    pub fn within(&self, container: Option<&ContainerName>) -> Self {
        let own = self.own();
        let within =
            |container: &ContainerName| format!("{container}{}{own}", container.kind().separator());
        Self(container.map_or_else(|| own.to_owned(), within))
    }
}

/// Returns the error for a name with two containers: a volume is in at most one.
fn twice(text: &str, kind: ContainerKind, other: ContainerKind) -> Error {
    let shown: String = text.chars().take(NAME_CHARS_MAX).collect();
    let why = match kind == other {
        true => format!("names two {}", kind.plural()),
        false => "names a volume group and a pod, and a volume is in one of them".to_owned(),
    };
    Error::invalid("invalid_name", format!("The volume name {shown:?} {why}."))
}

impl HostName {
    /// Returns it in lower case, for comparison.
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
    /// Returns it in lower case, for comparison.
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
    /// Returns it in lower case, for comparison.
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
    /// Returns it in lower case, for comparison.
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
    /// Returns it in lower case, for comparison.
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

impl SyslogServerName {
    /// Returns it in lower case, for comparison.
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

impl CertificateName {
    /// Returns it in lower case, for comparison.
    pub(crate) fn key(&self) -> String {
        self.0.to_ascii_lowercase()
    }

    /// Checks a name.
    ///
    /// # Errors
    /// `invalid_name`.
    pub fn new(text: &str) -> Result<Self, Error> {
        check("certificate", text, "A-Z a-z 0-9 - _", |c| c == '-' || c == '_')?;
        Ok(Self(text.to_owned()))
    }
}

impl SnmpManagerName {
    /// Returns it in lower case, for comparison.
    pub(crate) fn key(&self) -> String {
        self.0.to_ascii_lowercase()
    }

    /// Checks a name.
    ///
    /// # Errors
    /// `invalid_name`.
    pub fn new(text: &str) -> Result<Self, Error> {
        check("SNMP manager", text, "A-Z a-z 0-9 - _", |c| c == '-' || c == '_')?;
        Ok(Self(text.to_owned()))
    }
}

impl Suffix {
    /// Returns it in lower case, for comparison.
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

    /// Returns a suffix that the array assigns.
    pub(crate) fn counted(number: u64) -> Self {
        Self(number.to_string())
    }

    /// Returns a stored suffix, assigned or chosen.
    pub(crate) fn stored(text: &str) -> Result<Self, Error> {
        let counted = text.parse().map(Self::counted).ok();
        counted.filter(|counted| counted.0 == text).map_or_else(|| Self::new(text), Ok)
    }

    /// Returns the number of an assigned suffix.
    pub(crate) fn number(&self) -> Option<u64> {
        self.0.parse().ok()
    }
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

/// Checks the form `yyyy-mm.reversed.domain[:anything]`; returns what is wrong.
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
    (!rest.chars().all(allowed)).then_some("may contain only letters, digits, `-`, `.` and `:`")
}

fn digits(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_digit)
}

fn is_plain(c: char) -> bool {
    c.is_alphanumeric()
}

#[cfg(test)]
mod tests;
