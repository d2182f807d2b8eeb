//! What a target knows of hosts, as it is kept in the key-value space.
//!
//! ```text
//! key (big endian)              value
//! 'S' 'i'                       version 1, incarnation 8: see below
//! 'S' 'v' volume 8, part 2      what is kept of a volume: one of the parts, from 0
//! 'S' 'k', 'S' 't'              ROD tokens: see `target_state/tokens.rs`
//!
//! a part
//!  0  1  version: 1
//!  1  1  flags: 1 kept through a loss of power (APTPL), 2 a nexus holds it by RESERVE
//!  2  2  how many parts there are; what follows up to byte 35 is the same in all
//!  4  8  incarnation in which it was written
//! 12  4  PRGENERATION
//! 16 16  how often, 4 each: access states changed, reservations were preempted, released,
//!        registrations were preempted
//! 32  1  type of the persistent reservation; 0: none
//! 33  2  its holder: which of all registrations, from 0; 65535: all of them, or none
//! 35  2  access states in this part: all are in part 0
//! 37  2  registrations in this part
//! 39     access states: target port group 2, state 1
//!        in part 0, if a nexus holds it by RESERVE: that nexus
//!        registrations: nexus, key 8
//!
//! a nexus: target port 2, what tells the host's ports apart 16, length of its name 1, the name
//! ```
//!
//! The superblock counts incarnations; in pools of version 2 the epoch is their number. Before that
//! programs counted power ons in 'S' 'i' and wrote that number: it is a lower bound, and goes with
//! the next state that is kept. In a pool of version 2 it is the number of the incarnation that has
//! last kept any, for such a program.
//!
//! A part has at most [`PART_REGISTRATIONS`] registrations, so that it fits a value of the
//! key-value space, however long names are.

pub mod tokens;

use block::VolumeId;

use crate::FormatError;
use crate::codec::Reader;

/// The first byte of each key.
pub const TARGET_STATE_KEY: u8 = b'S';
/// The maximum number of registrations in a part.
pub const PART_REGISTRATIONS: usize = 200;
/// The maximum number of registrations of a volume.
pub const REGISTRATIONS_MAX: usize = 512;
/// The maximum number of access states of a volume: each has a target port group with at least one
/// port.
pub const ACCESS_STATES_MAX: usize = 256;
/// The number of kinds of counted events.
pub const EVENTS: usize = 4;

const VERSION: u8 = 1;
const APTPL: u8 = 1;
const EXCLUSIVE: u8 = 2;
const NO_HOLDER: u16 = u16::MAX;
const HEADER_BYTES: usize = 39;
const NEXUS_BYTES_MAX: usize = 19 + u8::MAX as usize;

// The longest part fits a value.
const _: () = assert!(
    HEADER_BYTES
        + 3 * ACCESS_STATES_MAX
        + NEXUS_BYTES_MAX
        + PART_REGISTRATIONS * (NEXUS_BYTES_MAX + 8)
        <= crate::entry::CONFIG_VALUE_BYTES_MAX
);

/// A key of the target's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateKey {
    /// The counter that earlier programs used instead of the superblock's incarnation.
    Incarnation,
    /// The state of a volume.
    Volume {
        /// The volume.
        volume: VolumeId,
        /// The part.
        part: u16,
    },
    /// The key and counter for making ROD tokens.
    TokenMaker,
    /// The ROD token with this identifier.
    Token(u64),
}

impl StateKey {
    /// Encodes it.
    pub fn encode(self) -> Vec<u8> {
        match self {
            Self::Incarnation => vec![TARGET_STATE_KEY, b'i'],
            Self::TokenMaker => vec![TARGET_STATE_KEY, b'k'],
            Self::Token(id) => [&[TARGET_STATE_KEY, b't'], &id.to_be_bytes()[..]].concat(),
            Self::Volume { volume, part } => {
                let mut key = vec![TARGET_STATE_KEY, b'v'];
                key.extend_from_slice(&volume.0.to_be_bytes());
                key.extend_from_slice(&part.to_be_bytes());
                key
            }
        }
    }

    /// Decodes a key.
    ///
    /// # Errors
    /// If such a key is never written.
    pub fn decode(key: &[u8]) -> Result<Self, FormatError> {
        let mut reader = Reader::new(key);
        let found = match reader.array()? {
            [TARGET_STATE_KEY, b'i'] => Self::Incarnation,
            [TARGET_STATE_KEY, b'k'] => Self::TokenMaker,
            [TARGET_STATE_KEY, b't'] => Self::Token(u64::from_be_bytes(reader.array()?)),
            [TARGET_STATE_KEY, b'v'] => Self::Volume {
                volume: VolumeId(u64::from_be_bytes(reader.array()?)),
                part: u16::from_be_bytes(reader.array()?),
            },
            _ => return Err(reader.error("an unknown key of the target's state")),
        };
        end(&reader)?;
        Ok(found)
    }
}

/// Encodes the value of [`StateKey::Incarnation`].
pub fn encode_incarnation(incarnation: u64) -> Vec<u8> {
    let mut out = vec![VERSION];
    out.extend_from_slice(&incarnation.to_le_bytes());
    out
}

/// Decodes the value of [`StateKey::Incarnation`].
///
/// # Errors
/// If it is not valid.
pub fn decode_incarnation(value: &[u8]) -> Result<u64, FormatError> {
    let mut reader = Reader::new(value);
    version(&mut reader)?;
    let incarnation = reader.u64()?;
    end(&reader)?;
    Ok(incarnation)
}

/// The two ends of an I_T nexus.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NexusName {
    /// The number of the target's port.
    pub target_port: u16,
    /// What distinguishes the ports of the host.
    pub id: [u8; 16],
    /// The host's name, up to 255 bytes.
    pub host: String,
}

/// The registration of a nexus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The registered nexus.
    pub nexus: NexusName,
    /// Its reservation key.
    pub key: u64,
}

/// The state of a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostState {
    /// The incarnation in which it was written.
    pub incarnation: u64,
    /// Whether registrations and the reservation persist through a power loss.
    pub aptpl: bool,
    /// PRGENERATION.
    pub generation: u32,
    /// Counters of the events that hosts are notified of.
    pub events: [u32; EVENTS],
    /// The type of the persistent reservation, not 0.
    pub type_code: Option<u8>,
    /// The index of the registration that holds it, unless all do.
    pub holder: Option<u16>,
    /// The nexus that holds the volume by RESERVE.
    pub exclusive: Option<NexusName>,
    /// The states that hosts have set, by target port group.
    pub access: Vec<(u16, u8)>,
    /// The registrations.
    pub registrations: Vec<Registration>,
}

impl HostState {
    /// Returns how many parts it takes.
    pub fn part_count(&self) -> u16 {
        self.registrations.len().div_ceil(PART_REGISTRATIONS).max(1) as u16
    }

    /// Encodes it, a value for each part.
    ///
    /// # Panics
    /// If there are too many of anything, or a name is too long.
    pub fn encode(&self) -> Vec<Vec<u8>> {
        assert!(self.registrations.len() <= REGISTRATIONS_MAX, "more registrations than fit");
        assert!(self.access.len() <= ACCESS_STATES_MAX, "more access states than fit");
        assert!(self.type_code != Some(0), "a type of 0 means none");
        let mut chunks = self.registrations.chunks(PART_REGISTRATIONS);
        (0..self.part_count())
            .map(|part| self.encode_part(part, chunks.next().unwrap_or_default()))
            .collect()
    }

    fn encode_part(&self, part: u16, registrations: &[Registration]) -> Vec<u8> {
        let (access, exclusive) = match part {
            0 => (&self.access[..], self.exclusive.as_ref()),
            _ => (&[][..], None),
        };
        let is_held = self.exclusive.is_some();
        let flags = u8::from(self.aptpl) * APTPL + u8::from(is_held) * EXCLUSIVE;
        let mut out = vec![VERSION, flags];
        out.extend_from_slice(&self.part_count().to_le_bytes());
        out.extend_from_slice(&self.incarnation.to_le_bytes());
        out.extend_from_slice(&self.generation.to_le_bytes());
        self.events.iter().for_each(|count| out.extend_from_slice(&count.to_le_bytes()));
        out.push(self.type_code.unwrap_or(0));
        out.extend_from_slice(&self.holder.unwrap_or(NO_HOLDER).to_le_bytes());
        out.extend_from_slice(&(access.len() as u16).to_le_bytes());
        out.extend_from_slice(&(registrations.len() as u16).to_le_bytes());
        assert_eq!(out.len(), HEADER_BYTES, "the header has one length");
        for (group, state) in access {
            out.extend_from_slice(&group.to_le_bytes());
            out.push(*state);
        }
        exclusive.into_iter().for_each(|nexus| nexus.encode(&mut out));
        for Registration { nexus, key } in registrations {
            nexus.encode(&mut out);
            out.extend_from_slice(&key.to_le_bytes());
        }
        out
    }

    /// Decodes all parts, in order.
    ///
    /// # Errors
    /// If a part is damaged, missing, redundant, or of another state.
    pub fn decode<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Result<Self, FormatError> {
        let mut whole: Option<(Self, u16)> = None;
        let mut count = 0;
        for raw in parts {
            let mut reader = Reader::new(raw);
            let (part, stated) = Self::decode_part(&mut reader, count == 0)?;
            count += 1;
            match &mut whole {
                None => whole = Some((part, stated)),
                Some((first, of_first)) => {
                    let registrations = std::mem::take(&mut first.registrations);
                    let rest = Self { exclusive: None, access: Vec::new(), ..first.clone() };
                    let own = Self { registrations: Vec::new(), ..part.clone() };
                    if (own, stated) != (rest, *of_first) {
                        return Err(reader.error("a part of another volume's state"));
                    }
                    first.registrations = registrations;
                    first.registrations.extend(part.registrations);
                }
            }
        }
        let error = |what| FormatError { what, offset: 0 };
        let (whole, stated) = whole.ok_or_else(|| error("a state without parts"))?;
        if stated != count || whole.part_count() != count {
            return Err(error("a wrong number of parts"));
        }
        if whole.registrations.len() > REGISTRATIONS_MAX {
            return Err(error("more registrations than fit"));
        }
        if whole.holder.is_some_and(|at| usize::from(at) >= whole.registrations.len()) {
            return Err(error("a holder that is not registered"));
        }
        Ok(whole)
    }

    fn decode_part(reader: &mut Reader<'_>, is_first: bool) -> Result<(Self, u16), FormatError> {
        version(reader)?;
        let flags = reader.u8()?;
        if flags & !(APTPL | EXCLUSIVE) != 0 {
            return Err(reader.error("unknown flags"));
        }
        let parts = reader.u16()?;
        let (incarnation, generation) = (reader.u64()?, reader.u32()?);
        let mut events = [0; EVENTS];
        for count in &mut events {
            *count = reader.u32()?;
        }
        let type_code = Some(reader.u8()?).filter(|code| *code != 0);
        let holder = Some(reader.u16()?).filter(|holder| *holder != NO_HOLDER);
        let (access_count, count) = (usize::from(reader.u16()?), usize::from(reader.u16()?));
        if access_count > ACCESS_STATES_MAX || count > PART_REGISTRATIONS {
            return Err(reader.error("more than fits a part"));
        }
        if !is_first && access_count > 0 {
            return Err(reader.error("access states after the first part"));
        }
        let access = (0..access_count).map(|_| Ok((reader.u16()?, reader.u8()?)));
        let access = access.collect::<Result<_, FormatError>>()?;
        let is_held = is_first && flags & EXCLUSIVE != 0;
        let exclusive = is_held.then(|| NexusName::decode(reader)).transpose()?;
        let registration = |_| {
            let nexus = NexusName::decode(reader)?;
            Ok(Registration { nexus, key: reader.u64()? })
        };
        let registrations = (0..count).map(registration).collect::<Result<_, FormatError>>()?;
        end(reader)?;
        let aptpl = flags & APTPL != 0;
        let part = Self {
            incarnation,
            aptpl,
            generation,
            events,
            type_code,
            holder,
            exclusive,
            access,
            registrations,
        };
        Ok((part, parts))
    }
}

impl NexusName {
    fn encode(&self, out: &mut Vec<u8>) {
        assert!(self.host.len() <= usize::from(u8::MAX), "a name is too long");
        out.extend_from_slice(&self.target_port.to_le_bytes());
        out.extend_from_slice(&self.id);
        out.push(self.host.len() as u8);
        out.extend_from_slice(self.host.as_bytes());
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, FormatError> {
        let (target_port, id) = (reader.u16()?, reader.array()?);
        let length = usize::from(reader.u8()?);
        let host = str::from_utf8(reader.bytes(length)?);
        let host = host.map_err(|_| reader.error("a name that is not UTF-8"))?.to_owned();
        Ok(Self { target_port, id, host })
    }
}

fn version(reader: &mut Reader<'_>) -> Result<(), FormatError> {
    match reader.u8()? {
        VERSION => Ok(()),
        _ => Err(reader.error("an unknown version of the target's state")),
    }
}

fn end(reader: &Reader<'_>) -> Result<(), FormatError> {
    match reader.remaining() {
        0 => Ok(()),
        _ => Err(reader.error("bytes after the end")),
    }
}

#[cfg(test)]
mod tests;
