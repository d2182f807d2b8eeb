//! A mount: the state that all tasks of a host share that use one datastore.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use futures::lock::Mutex;

use super::allocate::Cursor;
use super::auto_reclaim::AutoReclaim;
use super::disk::Disk;
use super::error::DatastoreError;
use super::file;
use super::layout::{Layout, Pool};
use super::lock_record::{Holder, HostId};
use super::map::Map;
use super::pulse::Pulse;
use super::sector::{SECTOR_BYTES, Sector};
use super::views::Views;
use crate::engine::Task;

/// How a host mounts a datastore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MountOptions {
    /// Its identity: the same each time it starts.
    pub host: HostId,
    /// For how long a heartbeat must not change until its host is considered dead.
    pub liveness: Duration,
    /// The time between two of its own heartbeats.
    pub heartbeat_interval: Duration,
    /// The seed of the random numbers of its locks and pauses. Two concurrent mounts must differ.
    pub seed: u64,
}

impl MountOptions {
    /// Returns the usual ones: a beat every 3 s, dead after 16 s.
    pub fn of_host(name: &str) -> Self {
        let host = HostId::of_name(name);
        let mix = |seed: u64, byte: &u8| seed.wrapping_mul(0x100_0000_01B3) ^ u64::from(*byte);
        let seed = host.0.iter().fold(0, mix);
        Self {
            host,
            liveness: Duration::from_secs(16),
            heartbeat_interval: Duration::from_secs(3),
            seed,
        }
    }
}

/// A file that was closed. What is known about it is valid as long as its lock is unchanged.
pub(super) struct Closed {
    pub(super) image: Box<Sector>,
    pub(super) name: String,
    pub(super) map: Map,
}

/// The state of a mount.
pub(super) struct Core {
    pub(super) disk: Disk,
    pub(super) layout: Layout,
    pub(super) options: MountOptions,
    /// This host as a holder of locks.
    pub(super) me: Holder,
    /// The last beat on disk, as far as is known.
    pub(super) pulse: Cell<Pulse>,
    /// Locked for each beat.
    pub(super) beating: Mutex<()>,
    pub(super) heart: RefCell<Option<Task<()>>>,
    /// Heartbeats of others: what was seen, and since when it has not changed.
    pub(super) watched: RefCell<HashMap<u32, (Pulse, Instant)>>,
    /// Tasks take turns, because those of one host look the same in a lock on disk.
    pub(super) directory_turn: Mutex<()>,
    pub(super) descriptor_turns: Vec<Mutex<()>>,
    pub(super) data: Cursor,
    pub(super) pointers: Cursor,
    pub(super) open: RefCell<HashMap<u32, Weak<file::Inner>>>,
    /// Files that this host has closed, and what it knows about their blocks.
    pub(super) closed: RefCell<HashMap<u32, Closed>>,
    pub(super) views: Views,
    pub(super) auto_reclaim: AutoReclaim,
}

impl Core {
    pub(super) fn new(
        disk: Disk,
        layout: Layout,
        options: MountOptions,
        me: Holder,
        pulse: Pulse,
    ) -> Rc<Self> {
        let descriptor_turns = (0..layout.files).map(|_| Mutex::new(())).collect();
        Rc::new(Self {
            data: Cursor::new(&layout, Pool::Data, me.slot),
            pointers: Cursor::new(&layout, Pool::Pointer, me.slot),
            disk,
            layout,
            options,
            me,
            pulse: Cell::new(pulse),
            beating: Mutex::new(()),
            heart: RefCell::default(),
            watched: RefCell::default(),
            directory_turn: Mutex::new(()),
            descriptor_turns,
            open: RefCell::default(),
            closed: RefCell::default(),
            views: Views::default(),
            auto_reclaim: AutoReclaim::default(),
        })
    }

    pub(super) fn cursor(&self, pool: Pool) -> &Cursor {
        match pool {
            Pool::Data => &self.data,
            Pool::Pointer => &self.pointers,
        }
    }

    /// Returns the files that this host has open now.
    pub(super) fn open_files(&self) -> Vec<Rc<file::Inner>> {
        self.open.borrow().values().filter_map(Weak::upgrade).collect()
    }
}

/// Reads the superblock, and so the layout.
pub(super) async fn read_layout(disk: &Disk) -> Result<Layout, DatastoreError> {
    if disk.medium.sector_bytes() != SECTOR_BYTES {
        let text = format!("a datastore needs blocks of {SECTOR_BYTES} bytes");
        return Err(DatastoreError::Argument(text));
    }
    let sector = disk.read_sector(0).await?;
    Layout::decode(&sector, disk.medium.bytes())
}
