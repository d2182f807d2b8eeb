//! Sense data (SPC-4, 4.5), returned with CHECK CONDITION.

/// The supported sense keys (SPC-4, 4.5.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SenseKey {
    /// Nothing to report.
    NoSense = 0x0,
    /// The logical unit can't be accessed.
    NotReady = 0x2,
    /// The medium lost data.
    MediumError = 0x3,
    /// The array can't execute the command, now or permanently.
    HardwareError = 0x4,
    /// The command or a parameter is invalid or not supported.
    IllegalRequest = 0x5,
    /// An event that the host must know of has occurred.
    UnitAttention = 0x6,
    /// The medium does not accept the data.
    DataProtect = 0x7,
    /// A third-party copy ended early.
    CopyAborted = 0xa,
    /// The command was aborted.
    AbortedCommand = 0xb,
    /// Compared data differs.
    Miscompare = 0xe,
}

/// The location of an error in a CDB or a parameter list (SPC-4, 4.5.2.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldPointer {
    /// Whether it is in the CDB, otherwise in the parameter list.
    pub in_cdb: bool,
    /// The byte offset.
    pub byte: u16,
    /// The most significant bit of the field, if the field is not whole bytes.
    pub bit: Option<u8>,
}

/// Sense data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sense {
    /// The sense key.
    pub key: SenseKey,
    /// The additional sense code.
    pub asc: u8,
    /// The additional sense code qualifier.
    pub ascq: u8,
    /// The INFORMATION field: a byte offset for a miscompare, an LBA for a medium error.
    pub information: Option<u64>,
    /// The COMMAND-SPECIFIC INFORMATION field: for a copy, the number of processed segments.
    pub command_specific: Option<u64>,
    /// The location of the error in the CDB or in the parameter list.
    pub field: Option<FieldPointer>,
}

impl Sense {
    /// Creates sense data with a key and a code.
    pub const fn new(key: SenseKey, asc: u8, ascq: u8) -> Self {
        Self { key, asc, ascq, information: None, command_specific: None, field: None }
    }

    /// NO SENSE: nothing to report.
    pub const NONE: Sense = Sense::new(SenseKey::NoSense, 0, 0);
    /// INVALID COMMAND OPERATION CODE.
    pub const INVALID_OPCODE: Sense = Sense::new(SenseKey::IllegalRequest, 0x20, 0);
    /// LOGICAL BLOCK ADDRESS OUT OF RANGE.
    pub const OUT_OF_RANGE: Sense = Sense::new(SenseKey::IllegalRequest, 0x21, 0);
    /// LOGICAL UNIT NOT SUPPORTED.
    pub const NO_SUCH_UNIT: Sense = Sense::new(SenseKey::IllegalRequest, 0x25, 0);
    /// PARAMETER LIST LENGTH ERROR.
    pub const PARAMETER_LIST_LENGTH: Sense = Sense::new(SenseKey::IllegalRequest, 0x1a, 0);
    /// SAVING PARAMETERS NOT SUPPORTED.
    pub const SAVING_NOT_SUPPORTED: Sense = Sense::new(SenseKey::IllegalRequest, 0x39, 0);
    /// INVALID FIELD IN COMMAND INFORMATION UNIT: less than a whole block was received.
    pub const INFORMATION_UNIT: Sense = Sense::new(SenseKey::IllegalRequest, 0x0e, 0x03);
    /// INVALID MESSAGE ERROR: the task attribute ACA, because auto contingent allegiance is not
    /// supported (NORMACA is 0; SAM-5, 8.7).
    pub const INVALID_MESSAGE: Sense = Sense::new(SenseKey::IllegalRequest, 0x49, 0);
    /// LOGICAL UNIT SOFTWARE WRITE PROTECTED.
    pub const WRITE_PROTECTED: Sense = Sense::new(SenseKey::DataProtect, 0x27, 0x02);
    /// INTERNAL TARGET FAILURE.
    pub const INTERNAL_FAILURE: Sense = Sense::new(SenseKey::HardwareError, 0x44, 0);

    /// Returns INVALID FIELD IN CDB, at a byte and the field's highest bit.
    pub const fn cdb_field(byte: u16, bit: u8) -> Self {
        let mut sense = Self::new(SenseKey::IllegalRequest, 0x24, 0);
        sense.field = Some(FieldPointer { in_cdb: true, byte, bit: Some(bit) });
        sense
    }

    /// Returns INVALID FIELD IN CDB, at a field of whole bytes.
    pub const fn cdb_bytes(byte: u16) -> Self {
        let mut sense = Self::new(SenseKey::IllegalRequest, 0x24, 0);
        sense.field = Some(FieldPointer { in_cdb: true, byte, bit: None });
        sense
    }

    /// Returns INVALID FIELD IN PARAMETER LIST (or another qualifier of 26h), at a byte.
    pub fn parameter(byte: usize, ascq: u8) -> Self {
        let mut sense = Self::new(SenseKey::IllegalRequest, 0x26, ascq);
        let byte = u16::try_from(byte).unwrap_or(u16::MAX);
        sense.field = Some(FieldPointer { in_cdb: false, byte, bit: None });
        sense
    }

    /// Sets the INFORMATION field.
    pub const fn with_information(mut self, information: u64) -> Self {
        self.information = Some(information);
        self
    }

    /// Encodes it in fixed format, current (SPC-4, 4.5.3), as returned with CHECK CONDITION.
    pub fn bytes(&self) -> [u8; 18] {
        let mut out = [0; 18];
        out[0] = 0x70;
        out[2] = self.key as u8;
        if let Some(information) = self.information.and_then(|i| u32::try_from(i).ok()) {
            out[0] |= 0x80;
            out[3..7].copy_from_slice(&information.to_be_bytes());
        }
        out[7] = 10;
        let specific = self.command_specific.and_then(|c| u32::try_from(c).ok()).unwrap_or(0);
        out[8..12].copy_from_slice(&specific.to_be_bytes());
        out[12] = self.asc;
        out[13] = self.ascq;
        if let Some(field) = self.field {
            out[15..18].copy_from_slice(&field_bytes(field));
        }
        out
    }

    /// Encodes it in descriptor format, current (SPC-4, 4.5.2).
    pub fn descriptor_bytes(&self) -> Vec<u8> {
        let mut out = vec![0x72, self.key as u8, self.asc, self.ascq, 0, 0, 0, 0];
        if let Some(information) = self.information {
            out.extend([0x00, 0x0a, 0x80, 0]);
            out.extend(information.to_be_bytes());
        }
        if let Some(specific) = self.command_specific {
            out.extend([0x01, 0x0a, 0, 0]);
            out.extend(specific.to_be_bytes());
        }
        if let Some(field) = self.field {
            out.extend([0x02, 0x06, 0, 0]);
            out.extend(field_bytes(field));
            out.push(0);
        }
        out[7] = (out.len() - 8) as u8;
        out
    }
}

/// Returns the sense-key specific bytes of a field pointer: SKSV, C/D, BPV, the bit, the byte.
fn field_bytes(field: FieldPointer) -> [u8; 3] {
    let mut first = 0x80;
    if field.in_cdb {
        first |= 0x40;
    }
    if let Some(bit) = field.bit {
        first |= 0x08 | (bit & 7);
    }
    let [high, low] = field.byte.to_be_bytes();
    [first, high, low]
}
