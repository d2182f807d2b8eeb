//! Changes of a pool's members by administrators.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use format::DeviceId;

use super::device::{Device, Slot};
use super::members::Members;
use super::placement::MIRRORS_MAX;
use super::workers::{OPENING, ask};
use crate::devices::{DeviceError, DeviceState};
use crate::labels;
use crate::plan::DEVICES_MAX;

impl Members {
    /// Takes a device out for the administrator.
    pub(super) fn take_out(&self, number: u16, why: &str) -> Result<(), DeviceError> {
        let slot = self.slot(number)?;
        match slot.state() {
            DeviceState::In | DeviceState::CatchingUp => {}
            state => {
                let instead = "it is already out";
                return Err(DeviceError::State { number, state, instead });
            }
        }
        self.begin()?;
        let left = self.leave(&slot, io::Error::other(why.to_owned()), DeviceState::Kept);
        left.map_err(|error| {
            let are_in = self.slots().iter().filter(|slot| slot.is_in()).count();
            match self.least_there() {
                1 if are_in <= 1 => DeviceError::Last(number),
                least if are_in <= least => DeviceError::Needed { number, are_in },
                _ => error.into(),
            }
        })
    }

    /// Starts catching up of a device that is out.
    pub(super) fn take_back(&self, number: u16) -> Result<(), DeviceError> {
        self.begin()?;
        let mut change = self.change();
        let slot = self.slot(number)?;
        if self.keep(&mut change, number)? && slot.written().is_some() {
            return Ok(());
        }
        let instead = match slot.state() {
            DeviceState::In => "it already has all data",
            DeviceState::CatchingUp => "it is already catching up",
            DeviceState::Missing => "add it again by its path",
            DeviceState::Out | DeviceState::Kept => {
                return Ok(self.let_catch_up(&mut change, &slot)?);
            }
        };
        Err(DeviceError::State { number, state: slot.state(), instead })
    }

    /// Adds a device, blank or one of this pool that was missing, in the place of `old` if there is
    /// one. It then catches up.
    pub(super) fn add(
        &self,
        device: Device,
        old: Option<u16>,
        entropy: [u8; 16],
    ) -> Result<u16, DeviceError> {
        self.begin()?;
        let known = ask(&device, (), OPENING, |disk| Ok(labels::read(disk)))?;
        let mut change = self.change();
        let mut slots = self.slots().to_vec();
        let known = known.into_iter().flatten();
        let known = known.filter(|label| label.pool_id == self.pool_id()).last();
        let returns = |slot: &&Arc<Slot>| known.as_ref().is_some_and(|is| is.device == slot.id);
        let returning = slots.iter().find(returns).map(|slot| (slot.number, slot.id));
        let replaced = old.or(returning.map(|(number, _)| number));
        let (has_stripes, table) =
            (self.placement().has_stripes(), self.placement().mapped_table());
        let next = match replaced.filter(|_| has_stripes) {
            // It takes the place of the old one in each segment.
            Some(replaced) => replaced,
            None if table.is_some() => free_number(&slots),
            None => slots.last().map_or(0, |slot| slot.number + 1),
        };
        let geometry = self.placement().geometry();
        let has_bytes = device.disk.len_bytes();
        let needs_bytes = match table {
            // An additional device needs at least one part.
            Some(_) => {
                let least = geometry.part_offset_bytes(2);
                least.max(self.needed_bytes((geometry, change.bytes), next))
            }
            None => change.bytes,
        };
        if let Some(old) = old.filter(|_| has_bytes < needs_bytes && table.is_some()) {
            drop(change);
            return self.add_beside(device, old, entropy);
        }
        if has_bytes < needs_bytes {
            return Err(DeviceError::Small { has_bytes, needs_bytes });
        }
        let (number, id) = match returning.filter(|_| old.is_none()) {
            Some(found) => found,
            None => (next, DeviceId::of_member(self.pool_id(), next, entropy)),
        };
        let slot = Slot::new(number, id, Some(device), DeviceState::Out);
        slot.set_bytes(geometry.part_offset_bytes(geometry.count_in(has_bytes) as u32));
        put(&mut slots, &slot, replaced, (has_stripes, table.is_some()))?;
        self.commit(&mut change, slots.into(), BTreeMap::new())?;
        self.let_catch_up(&mut change, &slot)?;
        Ok(number)
    }

    /// Adds a device that is too small for the columns of the old one, and removes the old one,
    /// whose columns are rebuilt wherever there is room.
    fn add_beside(&self, device: Device, old: u16, entropy: [u8; 16]) -> Result<u16, DeviceError> {
        let slot = self.slot(old)?;
        if slot.written().is_some() {
            let (state, instead) = (slot.state(), "take it out first");
            return Err(DeviceError::State { number: old, state, instead });
        }
        let number = self.add(device, None, entropy)?;
        match self.empty(old) {
            // Its columns are then rebuilt when it counts as lost, as far as there is room.
            Ok(()) | Err(DeviceError::NoRoom { .. }) => Ok(number),
            Err(error) => Err(error),
        }
    }

    /// Removes a device permanently.
    pub(super) fn remove(&self, number: u16) -> Result<(), DeviceError> {
        let slot = self.slot(number)?;
        if self.placement().has_stripes() {
            return self.empty(number);
        }
        if slot.written().is_some() {
            self.take_out(number, "it is being removed")?;
        }
        self.begin()?;
        let mut change = self.change();
        let rest = self.slots().iter().filter(|slot| slot.number != number).cloned().collect();
        Ok(self.commit(&mut change, rest, BTreeMap::new())?)
    }
}

/// Adds a device to these, or replaces one, in a pool that is striped, has a map of parts, or
/// neither.
fn put(
    slots: &mut Vec<Arc<Slot>>,
    slot: &Arc<Slot>,
    replaced: Option<u16>,
    (has_stripes, has_map): (bool, bool),
) -> Result<(), DeviceError> {
    match replaced {
        Some(replaced) => {
            let at = slots.iter().position(|slot| slot.number == replaced);
            let at = at.ok_or(DeviceError::Unknown(replaced))?;
            if slots[at].written().is_some() {
                let (state, instead) = (slots[at].state(), "take it out first");
                return Err(DeviceError::State { number: replaced, state, instead });
            }
            slots.remove(at);
            let at = slots.partition_point(|other| other.number < slot.number);
            slots.insert(at, slot.clone());
        }
        None if has_map => {
            if slots.len() >= DEVICES_MAX {
                return Err(DeviceError::Full(slots.len()));
            }
            let at = slots.partition_point(|other| other.number < slot.number);
            slots.insert(at, slot.clone());
        }
        None if has_stripes => return Err(DeviceError::InStripes(slots.len())),
        None if slots.len() >= MIRRORS_MAX => return Err(DeviceError::Full(slots.len())),
        None => slots.push(slot.clone()),
    }
    Ok(())
}

/// Returns the lowest unused number.
fn free_number(slots: &[Arc<Slot>]) -> u16 {
    let taken = |number: &u16| slots.iter().any(|slot| slot.number == *number);
    (0..).find(|number| !taken(number)).unwrap_or_default()
}
