//! Recording in the labels of devices which devices are in.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use format::label::{DEVICES_MAX, Member};
use format::{DeviceId, FormatError, Label};
use sys::Disk;

use super::device::Slot;
use super::maps::Stored;
use super::members::{Change, Members};
use super::workers::{TRANSFER, Terms, each, timed_out};
use crate::devices::DeviceState;
use crate::labels;
use crate::segments::BadLabel;

/// A device that has not taken a label within this limit has failed, too, regardless of the others.
const TERMS: Terms = Terms { of: Slot::device, limit: TRANSFER, spare: usize::MAX };

impl Members {
    /// Returns what all labels have in common.
    pub(super) fn label(
        &self,
        change: &Change,
        slots: &[Arc<Slot>],
        state_of: impl Fn(&Slot) -> DeviceState,
    ) -> Label {
        let (epoch, bytes) = change.told;
        let bytes_of = |slot: &Slot| match change.map.named.sequence {
            0 => bytes,
            _ => slot.bytes(),
        };
        let member = |slot: &Arc<Slot>| Member {
            state: state_of(slot).of_member(),
            ..slot.member(bytes_of(slot))
        };
        debug_assert!(slots.len() <= DEVICES_MAX);
        Label {
            pool_id: self.pool_id(),
            device: DeviceId::default(),
            number: 0,
            sequence: change.sequence,
            epoch,
            members: slots.iter().map(member).collect(),
            parts: change.map.named,
        }
    }

    /// Reads the labels of each device, in all copies, by number.
    pub(super) fn read_labels(&self) -> Vec<Result<Label, FormatError>> {
        let slots = self.slots();
        let silent = || Err(FormatError { what: "the device does not respond", offset: 0 });
        let there = slots.iter().filter(|slot| slot.device.is_some());
        let mut labels: BTreeMap<_, _> =
            there.map(|slot| (slot.number, [silent(), silent()])).collect();
        let calls =
            slots.iter().map(|slot| (slot.clone(), move |disk: &dyn Disk| Ok(labels::read(disk))));
        let read = each(
            calls,
            TERMS,
            |_, _| true,
            |slot, read| {
                labels.insert(slot.number, read?);
                Ok::<_, io::Error>(())
            },
        );
        debug_assert!(read.is_ok(), "no step of it can fail");
        labels.into_values().flatten().collect()
    }

    /// Rewrites wrong or missing copies of labels.
    pub(super) fn mend_labels(&self) -> Vec<BadLabel> {
        let mut change = self.change();
        if !self.has_begun() {
            return Vec::new();
        }
        let slots = self.slots();
        let label = self.label(&change, &slots, Slot::state);
        let mut all = Vec::new();
        let calls = slots.iter().map(|slot| {
            let (it, label) = (slot.clone(), labels::of_device(&label, slot.number, slot.id));
            let mend =
                move |disk: &dyn Disk| it.newer_label(&label, || Ok(labels::mend_as(disk, &label)));
            (slot.clone(), mend)
        });
        let gives_up = |slot: &Arc<Slot>, limit| {
            let why = timed_out(limit);
            self.can_do_without(&slots, slot)
                && self.leave_in(&mut change, slot, why, DeviceState::Out).is_ok()
        };
        let terms = Terms { of: Slot::readable, spare: self.spare(), ..TERMS };
        let mended = each(calls, terms, gives_up, |_, mended| {
            all.extend(mended?);
            Ok::<_, io::Error>(())
        });
        debug_assert!(mended.is_ok(), "no step of it can fail");
        all
    }
}

/// Writes both copies on each device, after the map that they refer to, where it is missing.
/// Returns the devices that refused, and why.
pub(super) fn write_labels(
    slots: &[Arc<Slot>],
    label: &Label,
    map: &Stored,
) -> Vec<(Arc<Slot>, io::Error)> {
    let failed = RefCell::<Vec<_>>::default();
    let fails = |slot: &Arc<Slot>, error| failed.borrow_mut().push((slot.clone(), error));
    let calls = slots.iter().map(|slot| {
        let (it, map) = (slot.clone(), map.clone());
        let label = labels::of_device(label, slot.number, slot.id);
        let write = move |disk: &dyn Disk| {
            it.newer_label(&label, || {
                if it.map_sequence.load(Ordering::Acquire) != map.named.sequence {
                    map.write(disk)?;
                    it.map_sequence.store(map.named.sequence, Ordering::Release);
                }
                labels::write_both(disk, &label)
            })
        };
        (slot.clone(), write)
    });
    let gives_up = |slot: &Arc<Slot>, limit| {
        fails(slot, timed_out(limit));
        true
    };
    let written = each(calls, TERMS, gives_up, |slot, written| {
        if let Err(error) = written {
            fails(slot, error);
        }
        Ok::<_, io::Error>(())
    });
    debug_assert!(written.is_ok(), "no step of it can fail");
    failed.into_inner()
}

impl Slot {
    /// Writes a label, unless the device got a newer one in the meantime.
    fn newer_label<R: Default>(
        &self,
        label: &Label,
        write: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<R> {
        let mut newest = self.label.lock().unwrap_or_else(PoisonError::into_inner);
        if *newest > label.sequence {
            return Ok(R::default());
        }
        *newest = label.sequence;
        write()
    }
}
