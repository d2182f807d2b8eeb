//! Creating a pool on several devices, and finding out from labels which devices are in.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use block::Frame;
use format::label::{Member, MemberState};
use format::{DeviceId, Label, Place, Superblock};
use parity::LibraryError;
use sys::Disk;

use super::device::{Device, Slot};
use super::maps::{self, Stored};
use super::members::Members;
use super::placement::Placement;
use super::set::DeviceSet;
use super::workers::{Asked, OPENING, ask};
use crate::devices::DeviceState;
use crate::labels;
use crate::plan::StripePlan;
use crate::root;

/// The increment of the sequence number of labels when a pool is opened although the missing
/// devices may have continued without these: the devices present then count.
const FORCED_STEP: u64 = 1 << 32;

/// Why a pool can't be opened on these devices.
#[derive(Debug, thiserror::Error)]
pub enum DeviceSetError {
    /// None of them has a label.
    #[error("{0} has no label of a pool on several devices")]
    NoLabel(String),
    /// None of them responds.
    #[error("{0} does not respond")]
    Silent(String),
    /// They belong to different pools.
    #[error("{0} and {1} are devices of two different pools")]
    OtherPool(String, String),
    /// Two devices have the label of the same device.
    #[error("{0} and {1} have the label of the same device")]
    Twice(String, String),
    /// Too few of the devices that are in are present, so the others may have continued without
    /// them.
    #[error(
        "only {there} of the {are_in} devices with valid data are present, and the others may \
         have continued without them: connect those, or open it with --devices-missing if they are \
         lost; data that only they have is then lost"
    )]
    TooFew {
        /// How many devices that are in are present.
        there: usize,
        /// How many devices are in.
        are_in: usize,
    },
    /// Too few of the devices that are in are present to reconstruct the data of the others.
    #[error(
        "{there} devices with valid data are present, and it takes {least} of this pool: connect \
         others"
    )]
    Lost {
        /// How many devices that are in are present.
        there: usize,
        /// How many are needed.
        least: usize,
    },
    /// No pool has this many devices, or with these numbers.
    #[error("the pool is on {0} devices, in a layout that this version does not support")]
    Unknown(usize),
    /// No device has the map of parts, which locates everything.
    #[error("no device that is present has the map of parts that the labels refer to")]
    NoMap,
    /// Parity can't be computed.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// All devices that are present are out.
    #[error("no device with valid data is present; {0} is out: connect the others")]
    NoneIn(String),
}

impl DeviceSet {
    /// Opens a pool on devices, in any order. Others are missing; with `may_miss` even if they may
    /// have continued without these.
    ///
    /// # Errors
    /// [`DeviceSetError`].
    pub fn open(devices: Vec<Device>, may_miss: bool) -> Result<Self, DeviceSetError> {
        Self::open_for(devices, if may_miss { Purpose::UseAnyway } else { Purpose::Use })
    }

    /// Opens a pool to read what is left of it, even if more devices are missing than it can lose.
    /// The caller must not write to it.
    ///
    /// # Errors
    /// [`DeviceSetError`]; that too few devices are present only if none of them counts.
    pub fn open_to_salvage(devices: Vec<Device>) -> Result<Self, DeviceSetError> {
        Self::open_for(devices, Purpose::Salvage)
    }

    fn open_for(devices: Vec<Device>, purpose: Purpose) -> Result<Self, DeviceSetError> {
        let (devices, silent) = answering(devices)?;
        Ok(Self::over(Arc::new(find_members(devices, purpose)?), silent))
    }
}

/// What a pool is opened for, as far as it determines which devices must be present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// For use, if the other devices can't have continued alone.
    Use,
    /// For use, regardless of what the other devices may have done.
    UseAnyway,
    /// For reading as much as possible, even with too few devices.
    Salvage,
}

/// Returns whether this device belongs to a pool on several devices.
pub fn has_labels_of_several(disk: &dyn Disk) -> bool {
    let is_of_several =
        |label: Label| label.members.len() > 1 || label.device != DeviceId::first_of(label.pool_id);
    labels::read(disk).into_iter().flatten().any(is_of_several)
}

/// Returns the label of a device that counts.
fn label_of(device: &Device) -> Option<Label> {
    labels_of(device).into_iter().max_by_key(|label| label.sequence)
}

/// Returns the newest label that counts, given the label of each device of a pool.
///
/// A change of members is durable on all devices that are in after it before it is visible. An
/// interrupted change has reached only some of them, and those without it may have continued as if
/// it had not happened. So a label counts if more than half of the devices that it says are in, and
/// that are present, have it or a newer one. No two groups that both have more than half can
/// continue without each other.
pub(super) fn newest_that_counts<'a>(labels: &[&'a Label]) -> Option<&'a Label> {
    let mut newest: Vec<&Label> = labels.to_vec();
    newest.sort_by_key(|label| std::cmp::Reverse(label.sequence));
    let counts = |label: &&&Label| {
        let is_in = |other: &&&Label| {
            let mut members = label.members.iter();
            members.any(|it| it.device == other.device && it.state == MemberState::In)
        };
        let has_it = |other: &&&Label| {
            let says_it = other.members == label.members && other.parts == label.parts;
            other.sequence > label.sequence || other.sequence == label.sequence && says_it
        };
        let there = labels.iter().filter(is_in);
        // If none of them is present, nothing shows that it was interrupted.
        there.clone().next().is_none() || 2 * there.clone().filter(has_it).count() > there.count()
    };
    newest.iter().find(counts).or(newest.first()).copied()
}

/// Reads the valid copies of a device's label; none if the device does not respond.
pub(super) fn labels_of(device: &Device) -> Vec<Label> {
    let labels = ask(device, (), OPENING, |disk| Ok(labels::read(disk)));
    labels.into_iter().flatten().flatten().collect()
}

/// Returns those of these devices that respond, and the names of the others, which count as
/// missing.
///
/// # Errors
/// [`DeviceSetError::Silent`] if none responds.
pub(super) fn answering(
    devices: Vec<Device>,
) -> Result<(Vec<Device>, Vec<String>), DeviceSetError> {
    let mut asked = Asked::new();
    let may_hang = |(_, device): &(usize, &Device)| device.workers.is_some();
    for (at, device) in devices.iter().enumerate().filter(may_hang) {
        asked.begin(at, device, (), OPENING, |disk| Ok(labels::read(disk)));
    }
    let mut silent = BTreeSet::new();
    while asked.waiting().next().is_some() {
        if asked.next().is_none() {
            asked.give_up(|at, _| silent.insert(*at));
        }
    }
    let (devices, silent): (Vec<_>, Vec<_>) =
        devices.into_iter().enumerate().partition(|(at, _)| !silent.contains(at));
    let names: Vec<_> = silent.into_iter().map(|(_, device)| device.name).collect();
    match (devices.is_empty(), names.first()) {
        (true, Some(name)) => Err(DeviceSetError::Silent(name.clone())),
        _ => Ok((devices.into_iter().map(|(_, device)| device).collect(), names)),
    }
}

/// Finds out from the labels of these devices which are in. Devices without a label are ignored,
/// because they have nothing of the pool.
///
/// # Errors
/// [`DeviceSetError`].
fn find_members(devices: Vec<Device>, purpose: Purpose) -> Result<Members, DeviceSetError> {
    let first_name = devices.first().map(|device| device.name.clone()).unwrap_or_default();
    let labelled = devices.into_iter().filter_map(|device| Some((label_of(&device)?, device)));
    let mut labelled: Vec<(Label, Device)> = labelled.collect();
    let Some((first, first_on)) = labelled.first() else {
        return Err(DeviceSetError::NoLabel(first_name));
    };
    if let Some((_, other)) = labelled.iter().find(|(label, _)| label.pool_id != first.pool_id) {
        return Err(DeviceSetError::OtherPool(first_on.name.clone(), other.name.clone()));
    }
    let all: Vec<&Label> = labelled.iter().map(|(label, _)| label).collect();
    let newest = newest_that_counts(&all).unwrap_or(first).clone();
    let last_sequence = all.iter().map(|label| label.sequence).max().unwrap_or_default();
    let is_newest = |(label, _): &&(Label, Device)| label.device == newest.device;
    let newest_on = labelled.iter().find(is_newest).map(|(_, device)| device.name.clone());
    for (at, (label, device)) in labelled.iter().enumerate() {
        let same = labelled[..at].iter().find(|(before, _)| before.device == label.device);
        if let Some((_, before)) = same {
            return Err(DeviceSetError::Twice(before.name.clone(), device.name.clone()));
        }
    }
    let mut slot_of = |member: &Member| {
        let at = labelled.iter().position(|(label, _)| label.device == member.device);
        let device = at.map(|at| labelled.swap_remove(at).1);
        let state = state_of(member, device.is_some());
        let slot = Slot::new(member.number, member.device, device, state);
        slot.set_bytes(member.bytes);
        slot
    };
    let slots: Vec<_> = newest.members.iter().map(&mut slot_of).collect();
    let are_in = newest.members.iter().filter(|member| member.state == MemberState::In).count();
    let there = slots.iter().filter(|slot| slot.is_in()).count();
    if there == 0 {
        return Err(DeviceSetError::NoneIn(newest_on.unwrap_or_default()));
    }
    let placement = placement_of(&newest, &slots)?;
    let members = Members::new(newest.pool_id, placement, slots, last_sequence);
    if purpose == Purpose::Salvage {
        return Ok(members);
    }
    if !members.can_do_with(&members.slots(), Slot::state) {
        return Err(DeviceSetError::Lost { there, least: members.least_there() });
    }
    // With more than half, the others can't have continued without these, unless two of three went
    // out in one change and are back without the third.
    let is_sure = 2 * there > are_in;
    if !is_sure && purpose == Purpose::Use {
        return Err(DeviceSetError::TooFew { there, are_in });
    }
    if !is_sure {
        members.change().sequence += FORCED_STEP;
    }
    Ok(members)
}

/// Returns the state of a member, present or not, when a pool is opened.
pub(super) fn state_of(member: &Member, is_there: bool) -> DeviceState {
    match (is_there, member.state) {
        (false, _) => DeviceState::Missing,
        (_, MemberState::In) => DeviceState::In,
        (_, MemberState::Out) => DeviceState::Out,
        (_, MemberState::Kept) => DeviceState::Kept,
    }
}

/// Returns how segments are placed on the members in a label.
pub(super) fn placement_of(
    newest: &Label,
    slots: &[Arc<Slot>],
) -> Result<Placement, DeviceSetError> {
    let unknown = || DeviceSetError::Unknown(slots.len());
    if newest.parts.sequence == 0 {
        let placement = Placement::on(newest.pool_id, slots.len())?;
        let are_numbered = slots.iter().zip(0..).all(|(slot, position)| slot.number == position);
        return match placement.has_stripes() && !are_numbered {
            true => Err(unknown()),
            false => Ok(placement),
        };
    }
    let devices = slots.iter().filter(|slot| slot.is_in()).filter_map(|slot| slot.device.as_ref());
    let named = newest.parts;
    let read = |device| ask(device, (), OPENING, move |disk| Ok(maps::read(disk, named))).ok()?;
    let map = devices.into_iter().find_map(read);
    let map = map.ok_or(DeviceSetError::NoMap)?;
    let is_known = |device: u8| slots.iter().any(|slot| slot.number == u16::from(device));
    let are_known = map.pool_id == newest.pool_id
        && (1..map.segment_count())
            .flat_map(|segment| map.parts(segment))
            .all(|part| is_known(part.device));
    match are_known {
        true => Placement::mapped(map),
        false => Err(unknown()),
    }
}

/// Creates a pool on devices with any content, with its first root. The first blocks of `wiped` are
/// zeroed, so that no earlier content is mistaken for a part of the pool. `entropy` is random. With
/// a plan the pool has a map of parts.
///
/// # Errors
/// Those of the devices; there is then no pool.
pub(super) fn make(
    devices: &[Device],
    root: &Superblock,
    (wiped, entropy): (&[Place], [u8; 16]),
    plan: Option<&StripePlan>,
) -> io::Result<()> {
    // Everything needed is checked before anything is written.
    let placement = match plan {
        Some(plan) => Placement::mapped(plan.map(root.pool_id)),
        None => Placement::on(root.pool_id, devices.len()),
    };
    let placement = placement.map_err(io::Error::other)?;
    let has_feature = match placement.has_stripes() {
        true => root.features.has_stripes() && root.features.has_parts() == plan.is_some(),
        false => root.features.has_mirrors(),
    };
    assert!(has_feature && root.features.has_labels(), "the root is of another kind of pool");
    placement.lay_out(root.geometry);
    let member = |position: usize| {
        let number = position as u16;
        let device = DeviceId::of_member(root.pool_id, number, entropy);
        let bytes = plan.map_or(root.capacity_bytes, |plan| plan.bytes_of(position));
        Member { device, bytes, number, state: MemberState::In }
    };
    let members: Vec<Member> = (0..devices.len()).map(member).collect();
    // No root is written before all devices have their labels.
    for (number, device) in (0..).zip(devices) {
        for place in wiped {
            if let Some(offset_bytes) = placement.row_on(number, *place) {
                device.disk.write(offset_bytes, &[Frame::zeros()])?;
            }
        }
        root::wipe(device.disk())?;
    }
    let map = match (plan, placement.table()) {
        (Some(_), Some(table)) => Stored::of(table.map()),
        _ => Stored::default(),
    };
    for (device, member) in devices.iter().zip(&members) {
        let label = Label {
            pool_id: root.pool_id,
            device: member.device,
            number: member.number,
            sequence: 1,
            epoch: root.epoch,
            members: members.clone(),
            parts: map.named,
        };
        map.write(device.disk())?;
        labels::write_both(device.disk(), &label)?;
    }
    devices.iter().try_for_each(|device| root::write_first(device.disk(), root))
}
