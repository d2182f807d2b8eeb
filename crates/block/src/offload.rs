//! The offloads that a volume accepts. When one is switched off, hosts do the work themselves.

/// An operation that hosts can offload to the array, and an administrator can switch off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Offload {
    /// COMPARE AND WRITE (VMware: ATS).
    CompareAndWrite,
    /// EXTENDED COPY and the commands that describe it (VMware: Full Copy).
    ExtendedCopy,
    /// WRITE SAME (VMware: Block Zero).
    WriteSame,
    /// UNMAP (VMware: Reclaim).
    Unmap,
    /// POPULATE TOKEN, WRITE USING TOKEN and the commands that describe them (Windows: ODX).
    TokenCopy,
}

impl Offload {
    /// All offloads.
    pub const ALL: [Offload; 5] = [
        Offload::CompareAndWrite,
        Offload::ExtendedCopy,
        Offload::WriteSame,
        Offload::Unmap,
        Offload::TokenCopy,
    ];

    /// Returns the name used in interfaces and in stored settings. It never changes.
    pub fn name(self) -> &'static str {
        match self {
            Self::CompareAndWrite => "compare_and_write",
            Self::ExtendedCopy => "extended_copy",
            Self::WriteSame => "write_same",
            Self::Unmap => "unmap",
            Self::TokenCopy => "token_copy",
        }
    }

    /// Returns the offload with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|offload| offload.name() == name)
    }
}

/// A set of enabled offloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Offloads(u8);

impl Offloads {
    /// All enabled.
    pub const ALL: Self = Self((1 << Offload::ALL.len()) - 1);

    /// Returns whether this one is enabled.
    #[inline]
    pub const fn has(self, offload: Offload) -> bool {
        self.0 & (1 << offload as u8) != 0
    }

    /// Returns the set with one of them enabled or disabled.
    #[must_use]
    pub const fn with(self, offload: Offload, on: bool) -> Self {
        let bit = 1 << offload as u8;
        Self(if on { self.0 | bit } else { self.0 & !bit })
    }

    /// Returns those enabled in both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns those that are disabled.
    pub fn off(self) -> impl Iterator<Item = Offload> {
        Offload::ALL.into_iter().filter(move |offload| !self.has(*offload))
    }
}

impl Default for Offloads {
    fn default() -> Self {
        Self::ALL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_offload_has_a_bit_and_a_name_of_its_own() {
        for offload in Offload::ALL {
            assert_eq!(Offload::named(offload.name()), Some(offload));
            let without = Offloads::ALL.with(offload, false);
            assert_eq!(without.off().collect::<Vec<_>>(), [offload]);
            assert_eq!(without.with(offload, true), Offloads::ALL);
            assert_eq!(without.and(Offloads::ALL), without);
        }
        assert_eq!(Offload::named("teleport"), None);
    }
}
