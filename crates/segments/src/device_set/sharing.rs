//! Which devices have a share of the pool, and how many of them are needed.

use std::sync::Arc;

use format::Geometry;

use super::device::Slot;
use super::growing::parts_in;
use super::members::Members;
use crate::devices::{DeviceState, DeviceStatus, PartsUse};

impl Members {
    /// Returns whether everything can be read if members have these states.
    pub(super) fn can_do_with(
        &self,
        slots: &[Arc<Slot>],
        state_of: impl Fn(&Slot) -> DeviceState,
    ) -> bool {
        let is_in = |slot: &&Arc<Slot>| state_of(slot) == DeviceState::In;
        let sharing = self.sharing(slots).count();
        self.sharing(slots).filter(is_in).count() >= self.placement().least_in(sharing)
            && slots.iter().any(|slot| is_in(&slot))
    }

    /// Returns the members that have a share of the pool.
    fn sharing<'a>(&self, slots: &'a [Arc<Slot>]) -> impl Iterator<Item = &'a Arc<Slot>> + use<'a> {
        let table = self.placement().table();
        let has_share = move |slot: &&Arc<Slot>| {
            table.as_ref().is_none_or(|table| table.has_share(slot.number))
        };
        slots.iter().filter(has_share)
    }

    /// Returns the status of all members, by number.
    pub(super) fn statuses(&self) -> Vec<DeviceStatus> {
        let (table, geometry) = (self.placement().mapped_table(), self.placement().geometry());
        let status = |slot: &Arc<Slot>| {
            let parts = table.as_ref().filter(|_| geometry.part_bytes > 0).map(|table| PartsUse {
                all: parts_in(geometry, slot.bytes()),
                used: table.used(slot.number),
                is_emptied: table.is_emptied(slot.number),
            });
            DeviceStatus { parts, ..slot.status() }
        };
        self.slots().iter().map(status).collect()
    }

    /// Returns how many devices must be in at least.
    pub(super) fn least_there(&self) -> usize {
        self.placement().least_in(self.sharing(&self.slots()).count())
    }

    /// Returns how many bytes of a device a pool with this geometry needs; `bytes` is the number
    /// for pools without a map.
    pub(super) fn needed_bytes(&self, (geometry, bytes): (Geometry, u64), number: u16) -> u64 {
        match self.placement().mapped_table() {
            Some(table) => geometry.part_offset_bytes(table.last_part(number) + 1),
            None => bytes,
        }
    }
}
