//! What labels say about a pool of which devices may be missing, whether or not it opens.

use std::sync::Arc;

use format::label::{Member, MemberState};
use format::{DeviceId, Label};

use super::device::{Device, Slot};
use super::members::Members;
use super::opening::{answering, labels_of, newest_that_counts, placement_of, state_of};

/// What the labels of some devices say about their pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// The pool in the newest label.
    pub pool_id: [u8; 16],
    /// The sequence number of the newest label.
    pub sequence: u64,
    /// All devices of the pool by that label, by number.
    pub members: Vec<Surveyed>,
    /// How many devices that count are needed to read everything, and how many have a share of the
    /// pool. `None` if that can't be determined.
    pub needed: Option<(usize, usize)>,
    /// Devices without a label, or with one of another pool.
    pub strangers: Vec<String>,
    /// Devices that do not respond.
    pub silent: Vec<String>,
}

/// A device of the pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surveyed {
    /// Its number in the pool.
    pub number: u16,
    /// Its permanent identity.
    pub id: DeviceId,
    /// Its state in the newest label.
    pub state: MemberState,
    /// Whether it has a share of the pool: a device that is being added or removed has none.
    pub has_share: bool,
    /// What its own label says, if the device is present.
    pub found: Option<Found>,
}

/// A device that is present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The name it was opened by.
    pub name: String,
    /// The sequence number of its own label; lower than that of others if it was left behind.
    pub sequence: u64,
    /// How many of the two copies of its label are valid.
    pub whole_labels: usize,
}

impl Surveyed {
    /// Returns whether its data counts, if it is present.
    pub fn counts(&self) -> bool {
        self.state == MemberState::In && self.has_share
    }
}

impl Survey {
    /// Reads the labels of devices, without changing anything; if there are two pools, of the one
    /// with more devices. Returns `None` if none has a label.
    pub fn of(devices: Vec<Device>) -> Option<Self> {
        let (devices, silent) = answering(devices).ok()?;
        let labelled: Vec<(Label, usize, &Device)> = devices
            .iter()
            .filter_map(|device| {
                let whole = labels_of(device);
                let count = whole.len();
                Some((whole.into_iter().max_by_key(|label| label.sequence)?, count, device))
            })
            .collect();
        let of_same = |label: &Label| {
            labelled.iter().filter(|(other, ..)| other.pool_id == label.pool_id).count()
        };
        let all = || labelled.iter().map(|(label, ..)| label);
        let pool_id = all().max_by_key(|label| (of_same(label), label.sequence))?.pool_id;
        let of_most: Vec<&Label> = all().filter(|label| label.pool_id == pool_id).collect();
        let newest = newest_that_counts(&of_most)?.clone();
        let of_pool = |label: &Label| label.pool_id == newest.pool_id;
        let found = |member: &Member| {
            let is_it = |label: &Label| of_pool(label) && label.device == member.device;
            labelled.iter().find(|(label, ..)| is_it(label))
        };
        let slots: Vec<Arc<Slot>> = newest
            .members
            .iter()
            .map(|member| {
                let device = found(member).map(|(.., device)| (*device).clone());
                let state = state_of(member, device.is_some());
                Slot::new(member.number, member.device, device, state)
            })
            .collect();
        let placement = placement_of(&newest, &slots).ok();
        let table = placement.as_ref().and_then(|placement| placement.table());
        let has_share = |number: u16| table.as_ref().is_none_or(|table| table.has_share(number));
        let surveyed = |member: &Member| Surveyed {
            number: member.number,
            id: member.device,
            state: member.state,
            has_share: has_share(member.number),
            found: found(member).map(|(label, whole_labels, device)| Found {
                name: device.name.clone(),
                sequence: label.sequence,
                whole_labels: *whole_labels,
            }),
        };
        let members: Vec<Surveyed> = newest.members.iter().map(surveyed).collect();
        let sharing = members.iter().filter(|member| member.has_share).count();
        let needed = placement.map(|placement| {
            let known = Members::new(newest.pool_id, placement, slots, newest.sequence);
            (known.least_there(), sharing)
        });
        let is_known = |device: &&Device| {
            let its = labelled.iter().find(|(.., other)| std::ptr::eq(*other, *device));
            its.is_some_and(|(label, ..)| of_pool(label))
        };
        let strangers = devices.iter().filter(|device| !is_known(device));
        let strangers = strangers.map(|device| device.name.clone()).collect();
        let (pool_id, sequence) = (newest.pool_id, newest.sequence);
        Some(Self { pool_id, sequence, members, needed, strangers, silent })
    }

    /// Returns how many devices that count are present.
    pub fn there(&self) -> usize {
        self.members.iter().filter(|member| member.counts() && member.found.is_some()).count()
    }

    /// Returns how many more devices that count are needed to read anything; `None` if that is not
    /// known.
    pub fn lacking(&self) -> Option<usize> {
        self.needed.map(|(needed, _)| needed.saturating_sub(self.there()))
    }
}
