//! The root of a pool on several devices: each device that is in has one.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use format::{FormatError, Superblock};
use sys::Disk;

use super::device::Slot;
use super::members::Members;
use super::workers::TRANSFER;
use crate::root::{self, Found, Roots};
use crate::segments::RootError;

/// The state of the roots since they were read.
#[derive(Debug)]
pub(super) struct PoolRoots {
    newest: Superblock,
    /// By device number and attempt to catch up: a device that begins to catch up has no root.
    of: BTreeMap<(u16, u64), Roots>,
}

impl PoolRoots {
    /// Reads the newest valid root on the devices that are in, and the state of all roots. A device
    /// shorter than the root says goes out.
    ///
    /// # Errors
    /// If there is none, or no device is long enough.
    pub(super) fn read(members: &Members) -> Result<Self, RootError> {
        let (mut found, mut none) = (Vec::new(), None);
        let slots = members.slots();
        let calls = slots.iter().map(|slot| (slot.clone(), |disk: &dyn Disk| Ok(Found::on(disk))));
        members.each(calls, Slot::readable, TRANSFER, |slot, on_device| {
            let on_device = on_device?;
            match on_device.newest() {
                Ok(newest) if newest.pool_id == members.pool_id() => {}
                Ok(_) => none = Some(RootError::None("the root is of another pool".into())),
                Err(error) => none = Some(error),
            }
            found.push((slot.clone(), on_device));
            Ok::<_, RootError>(())
        })?;
        let of_pool = |found: &&Superblock| found.pool_id == members.pool_id();
        let whole = found.iter().filter_map(|(_, found)| found.newest().ok()).filter(of_pool);
        let Some(newest) = whole.max_by_key(|root| root.sequence).cloned() else {
            let nothing = || RootError::None("no device is in".into());
            return Err(none.unwrap_or_else(nothing));
        };
        let (columns, expected) = (newest.geometry.columns, members.placement().columns());
        if columns != expected {
            let text = format!("the root has {columns} data columns, its devices have {expected}");
            return Err(RootError::None(text));
        }
        let (table, geometry) = (members.placement().mapped_table(), newest.geometry);
        let has_map = table.is_some();
        let mapped_count = table.map_or(u32::MAX, |table| table.map().segment_count());
        if newest.features.has_parts() != has_map || mapped_count < geometry.segment_count {
            let text = "the root and the map of parts have different segments";
            return Err(RootError::None(text.into()));
        }
        members.note_root(newest.capacity_bytes, newest.epoch);
        for (slot, _) in &found {
            let has_bytes = slot.device.as_ref().map_or(0, |device| device.disk.len_bytes());
            let of = (geometry, newest.capacity_bytes);
            let wants_bytes = members.needed_bytes(of, slot.number);
            if has_bytes < wants_bytes {
                let text = format!("it has {has_bytes} bytes, but the pool needs {wants_bytes}");
                let short = |_| RootError::Short { wants_bytes, has_bytes };
                members.fail(slot, std::io::Error::other(text)).map_err(short)?;
            }
        }
        let of = found.iter().map(|(slot, found)| (key(slot), found.judged(&newest))).collect();
        Ok(Self { newest, of })
    }

    /// Returns the newest root.
    pub(super) fn newest(&self) -> &Superblock {
        &self.newest
    }

    /// Calls the same on each device that is written to. A device that fails goes out.
    fn on_each(
        &mut self,
        members: &Members,
        call: impl FnOnce(&mut Roots, &dyn Disk) -> Result<(), RootError> + Clone + Send + 'static,
    ) -> Result<(), RootError> {
        let slots = members.slots();
        let calls = slots.iter().filter(|slot| slot.written().is_some()).map(|slot| {
            let known = self.of.get(&key(slot)).copied();
            let (mut roots, call) = (known.unwrap_or(Roots::none_of(&self.newest)), call.clone());
            let call = move |disk: &dyn Disk| {
                let called = call(&mut roots, disk);
                Ok((roots, called))
            };
            (slot.clone(), call)
        });
        let calls: Vec<_> = calls.collect();
        members.each(calls, Slot::written, TRANSFER, |slot, ended| {
            let (roots, called) = ended?;
            self.of.insert(key(slot), roots);
            match called {
                Err(RootError::Io(error)) => Ok(members.fail(slot, error)?),
                called => called,
            }
        })
    }

    pub(super) fn swap(
        &mut self,
        members: &Members,
        expected: u64,
        next: &Superblock,
    ) -> Result<(), RootError> {
        if self.newest.sequence != expected {
            return Err(RootError::Overtaken { expected, found: self.newest.sequence });
        }
        let root = next.clone();
        self.on_each(members, move |roots, disk| roots.replace(disk, &root))?;
        self.newest = next.clone();
        Ok(())
    }

    pub(super) fn settle(&mut self, members: &Members) {
        let settled = self.on_each(members, |roots, disk| {
            roots.settle(disk);
            Ok(())
        });
        debug_assert!(settled.is_ok(), "no step of it can fail");
    }

    pub(super) fn mend(
        &mut self,
        members: &Members,
        copy: usize,
        root: &Superblock,
    ) -> Result<(), RootError> {
        let mended = root.clone();
        self.on_each(members, move |roots, disk| roots.mend(disk, copy, &mended))?;
        self.newest = root.clone();
        Ok(())
    }

    /// Rewrites missing roots, as [`crate::Segments::mend_roots`].
    pub(super) fn mend_each(&mut self, members: &Members) -> (usize, Vec<bool>) {
        let (copy, mut mended) = ((self.newest.sequence % 2) as usize, Vec::new());
        for slot in members.slots().iter().filter(|slot| slot.is_in()) {
            let (newest, known) = (self.newest.clone(), self.of.get(&key(slot)).copied());
            let mut roots = known.unwrap_or(Roots::none_of(&newest));
            let mend = move |disk: &dyn Disk| {
                let found = &root::read_copies(disk)[copy];
                let is_whole = found.as_ref().is_ok_and(|it| it.sequence == newest.sequence);
                let mended = (!is_whole).then(|| roots.mend(disk, copy, &newest));
                Ok((roots, mended))
            };
            // A device that does not respond goes out.
            if let Ok((roots, Some(written))) = members.one(slot, TRANSFER, mend) {
                self.of.insert(key(slot), roots);
                mended.push(written.is_ok());
            }
        }
        (copy, mended)
    }

    /// Writes the root to a device that has caught up.
    pub(super) fn write_to(
        &mut self,
        members: &Members,
        slot: &Arc<Slot>,
    ) -> Result<(), RootError> {
        let newest = self.newest.clone();
        let write = move |disk: &dyn Disk| {
            let mut roots = Roots::none_of(&newest);
            let written = roots.write_newest(disk, &newest);
            Ok((roots, written))
        };
        let (roots, written) = members.one(slot, TRANSFER, write)?;
        written?;
        self.of.insert(key(slot), roots);
        Ok(())
    }
}

fn key(slot: &Slot) -> (u16, u64) {
    (slot.number, slot.attempts.load(Ordering::Acquire))
}

/// Returns all copies of the root: for each copy the best one of all devices that are in, and a
/// stand-in if there is one.
pub(super) fn copies(members: &Members) -> Vec<Result<Superblock, FormatError>> {
    let slots = members.slots();
    let calls = slots.iter().map(|slot| {
        let read = |disk: &dyn Disk| {
            let copies = root::read_copies(disk);
            let stand_in = root::read_stand_in(disk, &copies).map(Ok);
            Ok(copies.into_iter().chain(stand_in).collect::<Vec<_>>())
        };
        (slot.clone(), read)
    });
    let mut best: Option<Vec<Result<Superblock, FormatError>>> = None;
    let read = members.each(calls, Slot::readable, TRANSFER, |_, found| {
        match &mut best {
            Some(best) => better(best, found?),
            None => best = Some(found?),
        }
        Ok::<_, io::Error>(())
    });
    debug_assert!(read.is_ok(), "no step of it can fail");
    let none = || Err(FormatError { what: "no device is in", offset: 0 });
    best.unwrap_or_else(|| vec![none(), none()])
}

/// Returns the newer of each copy.
fn better(
    best: &mut Vec<Result<Superblock, FormatError>>,
    found: Vec<Result<Superblock, FormatError>>,
) {
    for (at, copy) in found.into_iter().enumerate() {
        let rank =
            |copy: &Result<Superblock, FormatError>| copy.as_ref().map_or(0, |copy| copy.sequence);
        match best.get_mut(at) {
            Some(known) if rank(&copy) > rank(known) => *known = copy,
            Some(_) => {}
            None => best.push(copy),
        }
    }
}
