//! Making a pool, and opening one: the newest checkpoint, and the log behind it.
//!
//! | found | done |
//! |---|---|
//! | two valid superblocks | the one with the higher sequence counts |
//! | one valid superblock | it counts; the other was torn while it was written |
//! | none | this is not a pool, or damaged beyond what can be opened |
//! | a record with the expected LSN, chain and seal | its entries are applied |
//! | no such record here, but at the start of the following segment | the log went on there |
//! | no such record at either place | the log ends here |
//! | records behind the last known flush whose payload is wrong | the log ends before the first |
//! | and a record of a later epoch in the following segment | the log went on there instead |
//! | such a record that is right on some devices and not on others | it is made right on all |
//!
//! * `recovery`: from a checkpoint to a store, `replay`: following the log, `fetching`: what its
//!   records need is read for many of them at once, `relief`: checkpoints in the midst of that,
//! * `follower`: the same beforehand, for a pool that somebody else still uses.

pub(crate) mod fetching;
pub mod follower;
mod recovery;
pub(crate) mod relief;
pub(crate) mod replay;

use std::sync::atomic::Ordering;

use format::{Features, FormatError, FormatVersion, Geometry, Place, Superblock};
use segments::{Device, DeviceSet, Local, Shared, StripePlan};

use crate::log::incarnation;
use crate::opening::follower::Follower;
use crate::opening::recovery::Recovery;
use crate::upkeep::Store;
use crate::upkeep::upgrade::to_latest;
use crate::{OpenOptions, StoreError};

/// What a pool is recovered for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// To be looked at: nothing is written.
    Look,
    /// To be used.
    Use,
    /// To be used, with more capacity.
    Grow { capacity_bytes: u64 },
}

impl Store {
    /// Makes a pool on `disk`. `entropy` is random: the pool's name and its keys come from it.
    pub fn create(disk: &dyn sys::Disk, entropy: &[u8; 64]) -> Result<(), StoreError> {
        let geometry = Geometry::for_capacity(disk.len_bytes());
        let version = FormatVersion::default();
        Self::create_divided(disk, entropy, geometry, (version, Features::KNOWN))
    }

    /// Makes a pool of segments of this size, however many that are, for tests: with small ones
    /// each boundary is met soon. It opens with options that fit it ([`crate::Tuning`]) and no
    /// others.
    pub fn create_with_segments(
        disk: &dyn sys::Disk,
        entropy: &[u8; 64],
        segment_bytes: u64,
    ) -> Result<(), StoreError> {
        Self::create_as(disk, entropy, segment_bytes, FormatVersion::default())
    }

    /// As [`Store::create_with_segments`], of this version: for tests of upgrading.
    pub fn create_as(
        disk: &dyn sys::Disk,
        entropy: &[u8; 64],
        segment_bytes: u64,
        version: FormatVersion,
    ) -> Result<(), StoreError> {
        Self::create_with(disk, entropy, segment_bytes, (version, Features::latest_of(version)))
    }

    /// As [`Store::create_as`], with these features and no others.
    pub fn create_with(
        disk: &dyn sys::Disk,
        entropy: &[u8; 64],
        segment_bytes: u64,
        of: (FormatVersion, Features),
    ) -> Result<(), StoreError> {
        let geometry = Geometry::of_segments(segment_bytes, disk.len_bytes());
        Self::create_divided(disk, entropy, geometry, of)
    }

    /// Makes a pool on 1 to 48 devices. Up to three each have all of it, so that it has as much of
    /// each as the shortest holds; from four on it is in stripes, with all that there is of each.
    /// `entropy` as for [`Store::create`].
    pub fn create_on(devices: &[Device], entropy: &[u8; 64]) -> Result<(), StoreError> {
        match devices.len() {
            ..=3 => Self::create_mirrored(devices, entropy, Geometry::for_capacity),
            _ => Self::create_in_stripes(devices, entropy, (0, None, None)),
        }
    }

    /// As [`Store::create_on`], of segments of this size: for tests.
    pub fn create_on_with_segments(
        devices: &[Device],
        entropy: &[u8; 64],
        segment_bytes: u64,
    ) -> Result<(), StoreError> {
        let geometry = |len_bytes| Geometry::of_segments(segment_bytes, len_bytes);
        match devices.len() {
            ..=3 => Self::create_mirrored(devices, entropy, geometry),
            _ => Self::create_in_stripes(devices, entropy, (0, None, Some(segment_bytes))),
        }
    }

    /// Makes a pool in stripes on 4 to 48 devices, with room to make the columns of so many lost
    /// ones again, the capacity, and parts of the size that [`StripePlan::new`] is to be given.
    ///
    /// # Errors
    /// If there can't be such a plan; what the devices say.
    pub fn create_in_stripes(
        devices: &[Device],
        entropy: &[u8; 64],
        (spares, capacity_bytes, part_bytes): (usize, Option<u64>, Option<u64>),
    ) -> Result<(), StoreError> {
        let len_bytes: Vec<u64> = devices.iter().map(|it| it.disk().len_bytes()).collect();
        let plan = StripePlan::new(&len_bytes, spares, capacity_bytes, part_bytes);
        let plan = plan.map_err(|error| StoreError::Size(error.to_string()))?;
        let of = of_several(Features::STRIPES | Features::PARTS);
        let pool_bytes = plan.geometry.pool_bytes();
        let superblock = first_superblock(pool_bytes, entropy, Ok(plan.geometry), of)?;
        let with = (&first_records()[..], random_of(entropy));
        Ok(DeviceSet::make_planned(devices, &superblock, with, &plan)?)
    }

    fn create_mirrored(
        devices: &[Device],
        entropy: &[u8; 64],
        geometry: impl FnOnce(u64) -> Result<Geometry, FormatError>,
    ) -> Result<(), StoreError> {
        let len_bytes = devices.iter().map(|device| device.disk().len_bytes()).min().unwrap_or(0);
        let of = of_several(Features::MIRRORS);
        let superblock = first_superblock(len_bytes, entropy, geometry(len_bytes), of)?;
        Ok(DeviceSet::make(devices, &superblock, &first_records(), random_of(entropy))?)
    }

    fn create_divided(
        disk: &dyn sys::Disk,
        entropy: &[u8; 64],
        geometry: Result<Geometry, FormatError>,
        of: (FormatVersion, Features),
    ) -> Result<(), StoreError> {
        let superblock = first_superblock(disk.len_bytes(), entropy, geometry, of)?;
        Ok(Local::make(disk, &superblock, &first_records())?)
    }

    /// Opens a pool: recovers it, and takes the next epoch.
    pub fn open(disk: impl Into<Shared>, options: OpenOptions) -> Result<Store, StoreError> {
        let disk = disk.into();
        // What a crash has left in the device's own cache becomes durable before it is believed.
        // Nothing was read yet, so that after a flush that fails another one is as good.
        disk.write_and_flush(&mut || Ok(()))?;
        let mut store = Self::recover(disk, options, Purpose::Use)?;
        store.begin_epoch()?;
        Ok(store)
    }

    /// As [`Store::open`], of a pool that another process has used until now, and that a
    /// [`Follower`] has followed: where that has what recovery needs, only the log behind it is
    /// read. Whether it had.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn take_over(
        disk: impl Into<Shared>,
        options: OpenOptions,
        follower: Follower,
    ) -> Result<(Store, bool), StoreError> {
        let disk = disk.into();
        disk.write_and_flush(&mut || Ok(()))?;
        let root = disk.read_root()?;
        disk.lay_out(root.geometry);
        let followed = follower.recovery_on(&disk, &root, &options);
        let was_followed = followed.is_some();
        let recovery = match followed {
            Some(recovery) => recovery,
            None => Recovery::begin(disk, options, Purpose::Use)?,
        };
        let mut store = recovery.finish(true)?;
        store.begin_epoch()?;
        Ok((store, was_followed))
    }

    /// Opens a pool that nobody uses and makes it hold `capacity_bytes`, and its disk longer where
    /// it is shorter. All that recovery has to write goes to the new segments first: so this also
    /// works where a pool is so full that [`Store::open`] finds no way on.
    ///
    /// # Errors
    /// As [`Store::grow`], and those of opening.
    pub fn open_grown(
        disk: impl Into<Shared>,
        options: OpenOptions,
        capacity_bytes: u64,
    ) -> Result<Store, StoreError> {
        let disk = disk.into();
        disk.write_and_flush(&mut || Ok(()))?;
        let mut store = Self::recover(disk, options, Purpose::Grow { capacity_bytes })?;
        store.finish_growing()?;
        store.begin_epoch()?;
        Ok(store)
    }

    /// Recovers a pool in memory, and writes nothing.
    pub fn load(disk: impl Into<Shared>, options: OpenOptions) -> Result<Store, StoreError> {
        Self::recover(disk.into(), options, Purpose::Look)
    }

    fn recover(disk: Shared, options: OpenOptions, purpose: Purpose) -> Result<Store, StoreError> {
        Recovery::begin(disk, options, purpose)?.finish(purpose != Purpose::Look)
    }

    /// From here on records of the epoch before are refused, and the pool is of the version that it
    /// is to have, in its next incarnation. Both copies say so before the first record is written:
    /// the loss of one must not make these records those of a later epoch.
    fn begin_epoch(&mut self) -> Result<(), StoreError> {
        let mut checkpointer = self.checkpointing.lock();
        let old = checkpointer.superblock().clone();
        let (sequence, epoch) = (old.sequence + 1, old.epoch + 1);
        let mut superblock = Superblock { sequence, epoch, ..old };
        let incarnation = incarnation::begin(&mut superblock, self.options.takes_over);
        let (upgrades, version) = (self.options.upgrade, superblock.version);
        if upgrades {
            to_latest(&mut superblock, incarnation);
        }
        self.world.medium.disk.fence(superblock.epoch)?;
        // One that can't be mended keeps nobody from the pool: scrubbing reports it.
        self.world.medium.disk.mend_labels(&superblock);
        let mut writer = self.writer.lock();
        writer.log.begin_epoch(epoch);
        writer.state.segments.epoch = epoch;
        if self.options.discard {
            writer.state.segments.enable_discard();
        }
        checkpointer.write_superblock(&self.world.medium, superblock)?;
        if upgrades {
            self.world.upgraded(&mut writer, version);
        }
        self.incarnation.store(incarnation, Ordering::Release);
        Ok(())
    }
}

/// That of a pool that is made.
fn first_superblock(
    len_bytes: u64,
    entropy: &[u8; 64],
    geometry: Result<Geometry, FormatError>,
    (version, features): (FormatVersion, Features),
) -> Result<Superblock, StoreError> {
    let geometry = geometry.map_err(|error| StoreError::Size(error.what.to_string()))?;
    let mut pool_id = [0; 16];
    pool_id.copy_from_slice(&entropy[..16]);
    let mut root_key = [0; 32];
    root_key.copy_from_slice(&entropy[16..48]);
    let first = Superblock::of_new_pool(pool_id, root_key, len_bytes, geometry);
    Ok(Superblock { version, features, ..first })
}

/// The version and features of a pool on several devices, which is laid on them like this.
fn of_several(feature: u64) -> (FormatVersion, Features) {
    let incompatible = Features::KNOWN.incompatible | feature;
    (FormatVersion::default(), Features { incompatible, ..Features::KNOWN })
}

/// What of the entropy ids of devices are made of.
fn random_of(entropy: &[u8; 64]) -> [u8; 16] {
    let mut random = [0; 16];
    random.copy_from_slice(&entropy[48..]);
    random
}

/// Where the first record must not be found by accident: what was there before is wiped.
fn first_records() -> [Place; 2] {
    [1, 2].map(|segment| Place::of_block(segment, 0))
}
