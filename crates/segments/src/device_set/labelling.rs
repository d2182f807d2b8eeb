//! Having devices say who is in.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use format::label::{DEVICES_MAX, Member};
use format::{DeviceId, Label};

use super::device::{Device, Slot};
use super::maps::Stored;
use super::members::{Change, Members};
use crate::devices::DeviceState;
use crate::labels;
use crate::segments::BadLabel;

/// A device that has not taken a label by then has failed too.
const LABEL_DEADLINE: Duration = Duration::from_secs(2);

impl Members {
    /// What labels say, of no device in particular.
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

    /// Writes the copies of labels anew that are not what they have to be.
    pub(super) fn mend_labels(&self) -> Vec<BadLabel> {
        let change = self.change();
        if !self.has_begun() {
            return Vec::new();
        }
        let slots = self.slots();
        let label = self.label(&change, &slots, Slot::state);
        let readable = slots.iter().filter_map(|slot| Some((slot, slot.readable()?)));
        let mended = readable.flat_map(|(slot, device)| {
            labels::mend_as(device.disk(), &labels::of_device(&label, slot.number, slot.id))
        });
        mended.collect()
    }
}

/// Writes both copies on each device, and before that the map that they name, where it is not
/// there. Which of them did not take it, and why.
pub(super) fn write_labels(
    slots: &[Arc<Slot>],
    label: &Label,
    map: &Stored,
) -> Vec<(Arc<Slot>, io::Error)> {
    let asked = slots.iter().filter_map(|slot| {
        let label = labels::of_device(label, slot.number, slot.id);
        Some((slot.clone(), slot.device.clone()?, label))
    });
    let asked: Vec<_> = asked.collect();
    if asked.iter().any(|(_, device, _)| device.file.is_none()) {
        let write = |(slot, device, label): (Arc<Slot>, Device, Label)| {
            write_one(&slot, &device, &label, map).err().map(|error| (slot, error))
        };
        return asked.into_iter().filter_map(write).collect();
    }
    // Side by side, and waited for as long as a device may take: one that hangs holds up its own
    // thread only.
    let (sender, receiver) = mpsc::channel();
    let mut waiting: BTreeMap<u16, Arc<Slot>> = BTreeMap::new();
    for (slot, device, label) in asked {
        let (sender, number, map) = (sender.clone(), slot.number, map.clone());
        waiting.insert(number, slot.clone());
        std::thread::spawn(move || {
            // Nobody waits any more if it took too long.
            let _ = sender.send((number, write_one(&slot, &device, &label, &map)));
        });
    }
    let (start, mut failed) = (Instant::now(), Vec::new());
    while !waiting.is_empty() {
        match receiver.recv_timeout(LABEL_DEADLINE.saturating_sub(start.elapsed())) {
            Ok((number, result)) => {
                let slot = waiting.remove(&number);
                failed.extend(slot.zip(result.err()));
            }
            Err(_) => break,
        }
    }
    let late = |slot| (slot, io::Error::new(io::ErrorKind::TimedOut, "it did not take a label"));
    failed.extend(waiting.into_values().map(late));
    failed
}

fn write_one(slot: &Slot, device: &Device, label: &Label, map: &Stored) -> io::Result<()> {
    if slot.map_sequence.load(Ordering::Acquire) != map.named.sequence {
        map.write(device.disk())?;
        slot.map_sequence.store(map.named.sequence, Ordering::Release);
    }
    labels::write_both(device.disk(), label)
}
