//! The classes under which commands are counted.

/// A class of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// READ.
    Read,
    /// WRITE.
    Write,
    /// EXTENDED COPY (CLONE).
    Copy,
    /// COMPARE AND WRITE (ATS).
    CompareAndWrite,
    /// WRITE SAME (ZERO).
    Zero,
    /// UNMAP (DELETE).
    Delete,
    /// All others.
    Other,
}

impl Class {
    /// All classes, in the order of [`super::PathSnapshot::classes`].
    pub const ALL: [Class; 7] = [
        Class::Read,
        Class::Write,
        Class::Copy,
        Class::CompareAndWrite,
        Class::Zero,
        Class::Delete,
        Class::Other,
    ];

    /// Returns the class of a command, by its operation code (SBC-4, table 30; SPC-4, table 49).
    pub fn of_opcode(opcode: u8) -> Self {
        match opcode {
            0x08 | 0x28 | 0x88 | 0xa8 => Self::Read,
            0x0a | 0x2a | 0x2e | 0x8a | 0x8b | 0x8e | 0x9c | 0xaa | 0xae => Self::Write,
            0x83 => Self::Copy,
            0x89 => Self::CompareAndWrite,
            0x41 | 0x93 => Self::Zero,
            0x42 => Self::Delete,
            _ => Self::Other,
        }
    }

    /// Returns the name for display and for interfaces. It never changes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Copy => "copy",
            Self::CompareAndWrite => "compare_and_write",
            Self::Zero => "zero",
            Self::Delete => "delete",
            Self::Other => "other",
        }
    }
}
