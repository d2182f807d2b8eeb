//! Asymmetric logical unit access: target port groups, their states for each logical unit, REPORT
//! and SET TARGET PORT GROUPS (SPC-4, 5.15, 6.37 and 6.45).
//!
//! A group has the ports that an administrator puts into it, as those of one controller. All groups
//! are active/optimized for every unit until a host says otherwise: states change by SET TARGET
//! PORT GROUPS only, and after the next start all are active/optimized again. A host may leave a
//! unit without an active group: the command is accepted in every state, so any path can end that.
//!
//! ```text
//! target port group descriptor                  SET TARGET PORT GROUPS descriptor
//!  0  1  PREF bit 7, state bits 3..0             0  1  state bits 3..0
//!  1  1  states that are supported               1  1  zero
//!  2  2  target port group                       2  2  target port group
//!  5  1  status: 0, or 1 where a host set it
//!  7  1  number of ports, then 4 bytes each: zero 2, relative target port identifier 2
//! ```

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use block::VolumeId;
use parking_lot::RwLock;

use crate::attention::Attention;
use crate::bytes::{be_u8, be_u16, parameter_list};
use crate::nexus::Nexus;
use crate::response::{Command, Response, Step};
use crate::sense::{Sense, SenseKey};
use crate::server::{Context, DeviceServer};
use crate::table::Outcome;

/// The state of a target port group for a logical unit (SPC-4, 5.15.2.4), by its code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum AccessState {
    #[default]
    ActiveOptimized = 0,
    ActiveNonOptimized = 1,
    Standby = 2,
    Unavailable = 3,
}

/// The bits of the states that there are: AO_SUP, AN_SUP, S_SUP, U_SUP.
const SUPPORTED: u8 = 0x0f;
/// STATUS CODE: altered by a SET TARGET PORT GROUPS command.
const SET_BY_HOST: u8 = 0x01;
const SET_HEADER_BYTES: usize = 4;
const SET_DESCRIPTOR_BYTES: usize = 4;

impl AccessState {
    fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::ActiveOptimized,
            1 => Self::ActiveNonOptimized,
            2 => Self::Standby,
            3 => Self::Unavailable,
            _ => return None,
        })
    }

    /// What a command is refused with, if the state refuses any: LOGICAL UNIT NOT ACCESSIBLE,
    /// TARGET PORT IN STANDBY STATE, or IN UNAVAILABLE STATE.
    pub(crate) fn sense(self) -> Option<Sense> {
        match self {
            Self::ActiveOptimized | Self::ActiveNonOptimized => None,
            Self::Standby => Some(Sense::new(SenseKey::NotReady, 0x04, 0x0b)),
            Self::Unavailable => Some(Sense::new(SenseKey::NotReady, 0x04, 0x0c)),
        }
    }

    /// Whether a command is served in this state (SPC-4, 5.15.2.4.4 and 5.15.2.4.5). The lists
    /// name commands that are not served at all, too (diagnostics, buffers).
    pub(crate) fn serves(self, opcode: u8, action: u8) -> bool {
        let everywhere = matches!(
            (opcode, action),
            (0x03 | 0x12 | 0xa0, _) | (0xa3, 0x0a) | (0xa4, 0x0a) | (0x3b | 0x3c, _)
        );
        // LOG, MODE, PERSISTENT RESERVE and DIAGNOSTIC commands.
        let in_standby =
            matches!(opcode, 0x15 | 0x1a | 0x1c | 0x1d | 0x4c | 0x4d | 0x55 | 0x5a | 0x5e | 0x5f);
        match self {
            Self::ActiveOptimized | Self::ActiveNonOptimized => true,
            Self::Standby => everywhere || in_standby,
            Self::Unavailable => everywhere,
        }
    }
}

/// The states that hosts have set, of all volumes.
#[derive(Debug, Default)]
pub(crate) struct AccessStates {
    /// How many volumes have any, so that the usual command takes no lock.
    used: AtomicUsize,
    volumes: RwLock<BTreeMap<VolumeId, BTreeMap<u16, AccessState>>>,
}

impl AccessStates {
    fn of_group(&self, volume: VolumeId, group: u16) -> Option<AccessState> {
        if self.used.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.volumes.read().get(&volume)?.get(&group).copied()
    }

    /// Sets states, in their order; whether any is another than before.
    fn set(&self, volume: VolumeId, states: &[(u16, AccessState)]) -> bool {
        let mut volumes = self.volumes.write();
        let of_volume = volumes.entry(volume).or_default();
        let before = of_volume.clone();
        of_volume.extend(states.iter().copied());
        let state = |map: &BTreeMap<u16, AccessState>, group: &u16| {
            map.get(group).copied().unwrap_or_default()
        };
        let changed =
            states.iter().any(|(group, _)| state(&before, group) != state(of_volume, group));
        self.used.store(volumes.len(), Ordering::Release);
        changed
    }

    /// The volume was destroyed.
    pub(crate) fn forget(&self, volume: VolumeId) {
        let mut volumes = self.volumes.write();
        volumes.remove(&volume);
        self.used.store(volumes.len(), Ordering::Release);
    }
}

impl DeviceServer {
    /// The state of the group of the port over which a nexus came.
    #[inline]
    pub(crate) fn access_state(&self, volume: VolumeId, nexus: &Nexus) -> AccessState {
        if self.access_states.used.load(Ordering::Acquire) == 0 {
            return AccessState::default();
        }
        let port = self.ports.iter().find(|port| port.relative_id == nexus.target_port());
        port.and_then(|port| self.access_states.of_group(volume, port.group)).unwrap_or_default()
    }
}

pub(crate) fn report(context: &Context<'_>, command: Command) -> Outcome {
    let (volume, cdb) = (context.volume()?, &command.cdb);
    let mut out = match cdb.u8(1) >> 5 {
        0 => vec![0; 4],
        1 => vec![0, 0, 0, 0, 0x10, 0, 0, 0],
        _ => return Err(Sense::cdb_field(1, 7)),
    };
    let mut groups: BTreeMap<u16, Vec<u16>> = BTreeMap::new();
    for port in &context.server.ports {
        groups.entry(port.group).or_default().push(port.relative_id);
    }
    for (group, ports) in &groups {
        let set = context.server.access_states.of_group(volume.id, *group);
        let (state, status) =
            (set.unwrap_or_default(), if set.is_some() { SET_BY_HOST } else { 0 });
        let [high, low] = group.to_be_bytes();
        let count = ports.len().min(255);
        out.extend([state as u8, SUPPORTED, high, low, 0, status, 0]);
        out.push(count as u8);
        for port in &ports[..count] {
            let [high, low] = port.to_be_bytes();
            out.extend([0, 0, high, low]);
        }
    }
    let length = (out.len() - 4) as u32;
    out[..4].copy_from_slice(&length.to_be_bytes());
    Ok(Step::Done(Response::parameters(&out, cdb.u32(6) as usize)))
}

/// SET TARGET PORT GROUPS (SPC-4, 6.45): all descriptors or none. A group that is not named keeps
/// its state. Every other nexus gets a unit attention if something has changed (5.15.2.6).
pub(crate) fn set(context: &Context<'_>, command: Command) -> Outcome {
    let volume = context.volume()?;
    let length = command.cdb.u32(6) as usize;
    let done = Response::good().wanting(Some(length as u64));
    if length == 0 {
        return Ok(Step::Done(done));
    }
    // A group has one state: more descriptors than there can be groups mean nothing, and are
    // refused before anything is made of them.
    let most = SET_HEADER_BYTES + SET_DESCRIPTOR_BYTES * context.server.ports.len();
    let whole = length > SET_HEADER_BYTES && length.is_multiple_of(SET_DESCRIPTOR_BYTES);
    if !whole || length > most {
        return Err(Sense::PARAMETER_LIST_LENGTH);
    }
    let list = parameter_list(&command.data_out, length)?;
    let mut states = Vec::new();
    for at in (SET_HEADER_BYTES..length).step_by(SET_DESCRIPTOR_BYTES) {
        let state = AccessState::from_code(be_u8(&list, at) & 0x0f);
        let group = be_u16(&list, at + 2);
        if !context.server.ports.iter().any(|port| port.group == group) {
            return Err(Sense::parameter(at + 2, 0));
        }
        states.push((group, state.ok_or(Sense::parameter(at, 0))?));
    }
    if context.server.access_states.set(volume.id, &states) {
        context.server.attend_others(context.nexus, volume.id, Attention::AccessState);
    }
    Ok(Step::Done(done))
}
