//! COMPARE AND WRITE commands of the last minute whose responses may have been lost.
//!
//! A host whose connection breaks does not know whether its command was done. It repeats it in a
//! new session, and if it was done the block has the new bytes now, not those that it is compared
//! with: a miscompare, after which the host gives up its lock. Such a command returns GOOD, as it
//! did the first time, if all of this holds ([`Comparisons::take_over`]):
//!
//! * it comes over the same I_T nexus (initiator, ISID and target port), for the same sectors, and
//!   compares and writes the same bytes,
//! * the sectors contain exactly what it would write, and no COMPARE AND WRITE of another host has
//!   written any of them since,
//! * it comes in another session than the one that was done: within one session nothing is lost,
//! * its initiator has not acknowledged the status ([`Comparisons::acknowledged`]),
//! * it comes within [`KEPT_MS`].
//!
//! The state for a command goes into the log together with what it writes ([`format::Compared`]),
//! and so exists even if the process ends at once. It is applied first, so that the new bytes are
//! never visible without the state. Acknowledgements are not in the log, and sessions end with the
//! process: after an opening each command counts as never acknowledged, and any session as another
//! one. The possible cost is GOOD for a repeated command whose block contains all that it would
//! write, from the nexus that has written it.
//!
//! Times are those of requests: they continue over an opening, and if a clock was set back nothing
//! counts as repeated.
//!
//! Invariants:
//! 1. For each sector, at most one command is known: the last one that has written it.
//! 2. At most [`KEPT_MAX`] are known; the oldest are dropped first.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};

use block::{DataOut, VolumeId, VolumeRequest};
use format::compared::COMPARED_BYTES;
use format::{Compared, Fingerprint, Keys};

use crate::sync::Mutex;

/// How long a command is remembered, in milliseconds.
pub(crate) const KEPT_MS: u64 = 60_000;
/// The maximum number of remembered commands. Each session acknowledges what it gets with its next
/// command.
pub(crate) const KEPT_MAX: usize = 4096;

/// A remembered command.
struct Known {
    compared: Compared,
    /// The session for its last response; none before this opening.
    session: Option<u64>,
}

#[derive(Default)]
struct Table {
    /// In the order in which they were applied.
    by_order: BTreeMap<u64, Known>,
    /// By volume and first sector.
    by_place: BTreeMap<(VolumeId, u64), u64>,
    /// Those that can still be acknowledged.
    by_command: HashMap<u64, u64>,
    next: u64,
}

/// The remembered commands.
#[derive(Default)]
pub(crate) struct Comparisons {
    table: Mutex<Table>,
    count: AtomicU64,
}

impl Table {
    fn remove(&mut self, order: u64) {
        let Some(Known { compared, .. }) = self.by_order.remove(&order) else { return };
        self.by_place.remove(&(compared.volume, compared.start));
        if self.by_command.get(&compared.command) == Some(&order) {
            self.by_command.remove(&compared.command);
        }
    }

    /// Returns those that have written some of the same sectors.
    fn overlapping(&self, of: &Compared) -> Vec<u64> {
        let first = of.start.saturating_sub(u64::from(u8::MAX));
        let end = of.start.saturating_add(u64::from(of.count));
        let near = self.by_place.range((of.volume, first)..(of.volume, end));
        let ends_behind = |order: &u64| {
            let known = self.by_order.get(order).map(|known| &known.compared);
            known.is_some_and(|known| known.start + u64::from(known.count) > of.start)
        };
        near.map(|(_, order)| *order).filter(ends_behind).collect()
    }

    fn insert(&mut self, compared: &Compared) {
        for order in self.overlapping(compared) {
            self.remove(order);
        }
        while let Some((order, oldest)) = self.by_order.first_key_value()
            && (self.by_order.len() >= KEPT_MAX || is_over(&oldest.compared, compared.at_ms))
        {
            self.remove(*order);
        }
        let order = self.next;
        self.next += 1;
        self.by_place.insert((compared.volume, compared.start), order);
        self.by_command.insert(compared.command, order);
        let session = Some(compared.session);
        self.by_order.insert(order, Known { compared: compared.clone(), session });
    }

    /// Returns the one that a command repeats, if there is one.
    fn repeated(&self, by: &Compared) -> Option<u64> {
        let order = *self.by_place.get(&(by.volume, by.start))?;
        let Known { compared, session } = self.by_order.get(&order)?;
        let is_same = compared.count == by.count
            && compared.nexus == by.nexus
            && compared.old == by.old
            && compared.new == by.new;
        let is_in_time = compared.at_ms <= by.at_ms && !is_over(compared, by.at_ms);
        let is_anew = *session != Some(by.session);
        (is_same && is_in_time && is_anew).then_some(order)
    }
}

/// Returns whether a command was too long ago.
fn is_over(compared: &Compared, now_ms: u64) -> bool {
    now_ms.saturating_sub(compared.at_ms) > KEPT_MS
}

impl Comparisons {
    fn with<T>(&self, change: impl FnOnce(&mut Table) -> T) -> T {
        let mut table = self.table.lock();
        let result = change(&mut table);
        self.count.store(table.by_order.len() as u64, Ordering::Relaxed);
        result
    }

    /// Adds a command whose entry is applied.
    pub(crate) fn note(&self, compared: &Compared) {
        self.with(|table| table.insert(compared));
    }

    /// Returns whether a command repeats one whose response was lost, given that its sectors
    /// contain what it would write. It then takes the place of the first one, so that a third one
    /// in its own session is not accepted, and it can be acknowledged.
    pub(crate) fn take_over(&self, by: &Compared) -> bool {
        self.with(|table| {
            let Some(order) = table.repeated(by) else { return false };
            let Some(known) = table.by_order.get_mut(&order) else { return false };
            let before = std::mem::replace(&mut known.compared.command, by.command);
            known.session = Some(by.session);
            if table.by_command.get(&before) == Some(&order) {
                table.by_command.remove(&before);
            }
            table.by_command.insert(by.command, order);
            true
        })
    }

    /// Records that an initiator has acknowledged the status of a command.
    pub(crate) fn acknowledged(&self, command: u64) {
        self.with(|table| {
            if let Some(order) = table.by_command.get(&command) {
                table.remove(*order);
            }
        });
    }

    /// Ends all sessions, because the pool is opened: nothing of them is acknowledged.
    pub(crate) fn forget_sessions(&self) {
        self.with(|table| {
            table.by_command.clear();
            table.by_order.values_mut().for_each(|known| known.session = None);
        });
    }

    /// Returns all remembered commands, in order.
    pub(crate) fn all(&self) -> Vec<Compared> {
        self.table.lock().by_order.values().map(|known| known.compared.clone()).collect()
    }

    /// Returns their size in a checkpoint.
    pub(crate) fn encoded_bytes(&self) -> u64 {
        match self.count.load(Ordering::Relaxed) {
            0 => 0,
            count => 12 + count * COMPARED_BYTES as u64,
        }
    }
}

/// Returns the log entry of a request that is a host's COMPARE AND WRITE.
pub(crate) fn of_request(request: &VolumeRequest, keys: &Keys) -> Option<Box<Compared>> {
    let VolumeRequest::CompareAndWrite { volume, range, expected, data, sender, .. } = request
    else {
        return None;
    };
    let sender = sender.as_deref()?;
    let count = u8::try_from(range.count.0).ok().filter(|count| *count > 0)?;
    Some(Box::new(Compared {
        volume: *volume,
        start: range.start.0,
        count,
        nexus: keys.fingerprint(sender.nexus.as_bytes()),
        old: sum(keys, expected),
        new: sum(keys, data),
        session: sender.session,
        command: sender.command,
        at_ms: sender.at_ms,
    }))
}

fn sum(keys: &Keys, data: &DataOut) -> Fingerprint {
    let piece = data.slice_from(0);
    match piece.len() == data.len() {
        true => keys.fingerprint(piece),
        false => keys.fingerprint(&data.to_vec()),
    }
}
