//! A COMPARE AND WRITE that was done, in the log and in checkpoints.

use block::VolumeId;

use crate::FormatError;
use crate::checksum::Fingerprint;
use crate::codec::Reader;

/// Bytes of the encoded form.
pub const COMPARED_BYTES: usize = 89;

/// A COMPARE AND WRITE that was done, recorded so that it is recognized if its initiator repeats it
/// because the response was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// The volume.
    pub volume: VolumeId,
    /// The first sector.
    pub start: u64,
    /// The number of sectors, from 1.
    pub count: u8,
    /// The fingerprint of the I_T nexus's name.
    pub nexus: Fingerprint,
    /// The fingerprint of what it compared with.
    pub old: Fingerprint,
    /// The fingerprint of what it wrote.
    pub new: Fingerprint,
    /// Its session. The number is meaningless after the epoch of its record.
    pub session: u64,
    /// The command; the same holds.
    pub command: u64,
    /// When it was received, in milliseconds since 1970.
    pub at_ms: u64,
}

impl Compared {
    /// Appends the encoded form, [`COMPARED_BYTES`] bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let Self { volume, start, count, nexus, old, new, session, command, at_ms } = self;
        out.extend_from_slice(&volume.0.to_le_bytes());
        out.extend_from_slice(&start.to_le_bytes());
        out.push(*count);
        for sum in [nexus, old, new] {
            out.extend_from_slice(&sum.0);
        }
        for number in [session, command, at_ms] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }

    /// Takes one off the front.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, FormatError> {
        let (volume, start) = (VolumeId(reader.u64()?), reader.u64()?);
        let count = reader.u8()?;
        if count == 0 {
            return Err(reader.error("a COMPARE AND WRITE of no sectors"));
        }
        let (nexus, old) = (Fingerprint(reader.array()?), Fingerprint(reader.array()?));
        let new = Fingerprint(reader.array()?);
        let (session, command, at_ms) = (reader.u64()?, reader.u64()?, reader.u64()?);
        Ok(Self { volume, start, count, nexus, old, new, session, command, at_ms })
    }
}
