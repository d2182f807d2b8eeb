//! Creating a pool, and opening one: the newest checkpoint, and the log after it.
//!
//! | found | done |
//! |---|---|
//! | two valid superblocks | the one with the higher sequence number counts |
//! | one valid superblock | it counts; the other was torn while it was written |
//! | none | this is not a pool, or it is too damaged to be opened |
//! | a record with the expected LSN, previous seal and own seal | its entries are applied |
//! | no such record here, but at the start of the next segment | the log continues there |
//! | no such record at either location | the log ends here |
//! | records after the last known flush with wrong payload | the log ends before the first |
//! | and a record of a later epoch in the next segment | the log continues there instead |
//! | such a record that is right only on some devices | it is made right on all |
//!
//! * `recovery`: from a checkpoint to a store; `replay`: following the log; `fetching`: reading
//!   what many records need at once; `relief`: intermediate checkpoints,
//! * `follower`: the same in advance, for a pool that another process still uses.

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

/// The purpose of a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// Reading: nothing is written.
    Look,
    /// Use.
    Use,
    /// Use, with more capacity.
    Grow { capacity_bytes: u64 },
}

impl Store {
    /// Creates a pool on `disk`. `entropy` is random: the pool's id and keys are derived from it.
    pub fn create(disk: &dyn sys::Disk, entropy: &[u8; 64]) -> Result<(), StoreError> {
        let geometry = Geometry::for_capacity(disk.len_bytes());
        let version = FormatVersion::default();
        Self::create_divided(disk, entropy, geometry, (version, Features::KNOWN))
    }

    /// Creates a pool with segments of this size, any number of them, for tests: small ones reach
    /// each boundary soon. It must be opened with options that fit it ([`crate::Tuning`]).
    pub fn create_with_segments(
        disk: &dyn sys::Disk,
        entropy: &[u8; 64],
        segment_bytes: u64,
    ) -> Result<(), StoreError> {
        Self::create_as(disk, entropy, segment_bytes, FormatVersion::default())
    }

    /// Creates a pool of this version, as [`Store::create_with_segments`]: for tests of upgrading.
    pub fn create_as(
        disk: &dyn sys::Disk,
        entropy: &[u8; 64],
        segment_bytes: u64,
        version: FormatVersion,
    ) -> Result<(), StoreError> {
        Self::create_with(disk, entropy, segment_bytes, (version, Features::latest_of(version)))
    }

    /// Creates a pool with exactly these features, as [`Store::create_as`].
    pub fn create_with(
        disk: &dyn sys::Disk,
        entropy: &[u8; 64],
        segment_bytes: u64,
        of: (FormatVersion, Features),
    ) -> Result<(), StoreError> {
        let geometry = Geometry::of_segments(segment_bytes, disk.len_bytes());
        Self::create_divided(disk, entropy, geometry, of)
    }

    /// Creates a pool on 1 to 48 devices. Up to three are mirrors, of which it uses as much as the
    /// smallest has; from four on it is striped, and uses all of each. `entropy` as for
    /// [`Store::create`].
    pub fn create_on(devices: &[Device], entropy: &[u8; 64]) -> Result<(), StoreError> {
        match devices.len() {
            ..=3 => Self::create_mirrored(devices, entropy, Geometry::for_capacity),
            _ => Self::create_in_stripes(devices, entropy, (0, None, None)),
        }
    }

    /// Creates a pool with segments of this size, as [`Store::create_on`]: for tests.
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

    /// Creates a striped pool on 4 to 48 devices, with room to rebuild the columns of this many
    /// lost ones. The capacity and the size of parts are passed to [`StripePlan::new`].
    ///
    /// # Errors
    /// If there is no such plan; those of the devices.
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

    /// Opens a pool: recovers it, and begins the next epoch.
    pub fn open(disk: impl Into<Shared>, options: OpenOptions) -> Result<Store, StoreError> {
        let disk = disk.into();
        // What a crash has left in the device's own cache becomes durable before it is believed.
        // Nothing was read yet, so that after a flush that fails another one is as good.
        disk.write_and_flush(&mut || Ok(()))?;
        let mut store = Self::recover(disk, options, Purpose::Use)?;
        store.begin_epoch()?;
        Ok(store)
    }

    /// Opens a pool like [`Store::open`] that another process has used until now, and that a
    /// [`Follower`] has followed: if its state can be used, only the log after it is read. Returns
    /// whether it was used.
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

    /// Opens a pool that is not in use and grows it to `capacity_bytes`, and its disk if it is
    /// smaller. Everything that recovery must write goes to the new segments first, so this also
    /// works if a pool is too full for [`Store::open`].
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

    /// Recovers a pool in memory, without writing anything.
    pub fn load(disk: impl Into<Shared>, options: OpenOptions) -> Result<Store, StoreError> {
        Self::recover(disk.into(), options, Purpose::Look)
    }

    fn recover(disk: Shared, options: OpenOptions, purpose: Purpose) -> Result<Store, StoreError> {
        Recovery::begin(disk, options, purpose)?.finish(purpose != Purpose::Look)
    }

    /// Begins an epoch: from here on records of the previous one are refused, and the pool has its
    /// next incarnation and, if it is upgraded, its new version. Both copies of the superblock say
    /// so before the first record is written: otherwise the loss of one could make these records
    /// appear to be of a later epoch.
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
        // A label that can't be rewritten does not prevent using the pool: scrubbing reports it.
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

/// Returns the first superblock of a new pool.
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

/// Returns the version and features of a pool on several devices with this layout.
fn of_several(feature: u64) -> (FormatVersion, Features) {
    let incompatible = Features::KNOWN.incompatible | feature;
    (FormatVersion::default(), Features { incompatible, ..Features::KNOWN })
}

/// Returns the part of the entropy from which ids of devices are derived.
fn random_of(entropy: &[u8; 64]) -> [u8; 16] {
    let mut random = [0; 16];
    random.copy_from_slice(&entropy[48..]);
    random
}

/// Returns where the first records can be: old content there is wiped, so that it is not taken for
/// one.
fn first_records() -> [Place; 2] {
    [1, 2].map(|segment| Place::of_block(segment, 0))
}
