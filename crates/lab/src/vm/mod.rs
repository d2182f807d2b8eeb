//! Virtual machines, as storage sees them: a few files, and what administrators do with them.

mod reclaim;

use std::cell::RefCell;

use crate::datastore::{AllocateAs, BLOCK_BYTES, File, Mode, Placement};
use crate::disk::{DiskError, Place, Provisioning, VirtualDisk};
use crate::guest::GuestDisk;
use crate::mover::Mover;
pub use reclaim::{BLOCKS_DEFAULT, ReclaimPlan, Reclaimed, reclaim};

/// The size of the configuration, and of each log: files of one block.
const SMALL_FILE_BYTES: u64 = BLOCK_BYTES;

/// The plan of a machine's disk.
#[derive(Clone, Copy, Debug)]
pub struct DiskPlan {
    /// Its size.
    pub bytes: u64,
    /// Its kind.
    pub provisioning: Provisioning,
}

/// A virtual machine.
#[derive(Debug)]
pub struct Vm {
    name: String,
    place: Place,
    disks: Vec<GuestDisk>,
    running: RefCell<Option<Running>>,
}

/// What a machine has open while it is powered on.
#[derive(Debug)]
struct Running {
    files: Vec<File>,
    memory_bytes: u64,
}

impl Vm {
    /// Creates a machine with empty disks.
    ///
    /// # Errors
    /// Those of the datastore and of the device.
    pub async fn create(place: &Place, name: &str, disks: &[DiskPlan]) -> Result<Self, DiskError> {
        make_small_file(place, &format!("{name}.vmx")).await?;
        let mut made = Vec::new();
        for (index, plan) in disks.iter().enumerate() {
            let disk = disk_name(name, index);
            let disk = VirtualDisk::create(place, &disk, plan.bytes, plan.provisioning).await?;
            made.push(GuestDisk::new(disk));
        }
        Ok(Self::of(place, name, made))
    }

    fn of(place: &Place, name: &str, disks: Vec<GuestDisk>) -> Self {
        let (name, place) = (name.to_owned(), place.clone());
        Self { name, place, disks, running: RefCell::default() }
    }

    /// Deploys or clones a machine: its disks are copied, as they are or as another kind.
    ///
    /// # Errors
    /// Those of the datastores and of the devices.
    pub async fn deploy(
        &self,
        mover: &Mover,
        place: &Place,
        name: &str,
        provisioning: Option<Provisioning>,
    ) -> Result<Self, DiskError> {
        make_small_file(place, &format!("{name}.vmx")).await?;
        let mut made = Vec::new();
        for (index, disk) in self.disks.iter().enumerate() {
            let source = disk.base();
            let kind = provisioning.unwrap_or(source.provisioning());
            let copy = disk_name(name, index);
            let copy = VirtualDisk::create_unzeroed(place, &copy, source.bytes(), kind).await?;
            mover.copy(&source, &copy).await?;
            made.push(GuestDisk::new(copy));
        }
        Ok(Self::of(place, name, made))
    }

    /// Clones a running machine: a snapshot contains what its guest writes meanwhile.
    ///
    /// # Errors
    /// Those of the datastores and of the devices.
    pub async fn clone_hot(
        &self,
        mover: &Mover,
        place: &Place,
        name: &str,
    ) -> Result<Self, DiskError> {
        self.take_snapshot().await?;
        let clone = self.deploy(mover, place, name, None).await;
        self.remove_snapshot().await?;
        clone
    }

    /// Takes a snapshot of all its disks.
    ///
    /// # Errors
    /// Those of the datastore.
    pub async fn take_snapshot(&self) -> Result<(), DiskError> {
        make_small_file(&self.place, &format!("{}.vmsn", self.name)).await?;
        for disk in &self.disks {
            disk.take_snapshot().await?;
        }
        Ok(())
    }

    /// Removes the snapshot of all its disks.
    ///
    /// # Errors
    /// Those of the datastore and of the device.
    pub async fn remove_snapshot(&self) -> Result<(), DiskError> {
        for disk in &self.disks {
            disk.remove_snapshot().await?;
        }
        self.place.datastore.delete(&format!("{}.vmsn", self.name)).await?;
        Ok(())
    }

    /// Powers it on: its configuration is locked, a swap file of `memory_bytes` and a log are
    /// created.
    ///
    /// # Errors
    /// Those of the datastore.
    pub async fn power_on(&self, memory_bytes: u64) -> Result<(), DiskError> {
        let datastore = &self.place.datastore;
        let name = &self.name;
        let config = datastore.open(&format!("{name}.vmx"), Mode::Exclusive).await?;
        let swap = datastore.create(&format!("{name}.vswp"), memory_bytes).await?;
        let blocks = memory_bytes.div_ceil(BLOCK_BYTES);
        swap.allocate(0, blocks, AllocateAs::ToBeZeroed, Placement::Contiguous).await?;
        let log = datastore.create(&format!("{name}.log"), SMALL_FILE_BYTES).await?;
        log.allocate(0, 1, AllocateAs::Present, Placement::AsItComes).await?;
        let files = vec![config, swap, log];
        *self.running.borrow_mut() = Some(Running { files, memory_bytes });
        Ok(())
    }

    /// Powers it off: swap file and log are deleted.
    ///
    /// # Errors
    /// Those of the datastore.
    pub async fn power_off(&self) -> Result<(), DiskError> {
        let Some(running) = self.running.take() else { return Ok(()) };
        for file in running.files {
            file.close().await?;
        }
        for kind in ["vswp", "log"] {
            self.place.datastore.delete(&format!("{}.{kind}", self.name)).await?;
        }
        Ok(())
    }

    /// Moves it to another datastore, powered on or off. A running one continues there with a new
    /// swap file and a new log.
    ///
    /// # Errors
    /// Those of the datastores and of the devices.
    pub async fn migrate(&mut self, mover: &Mover, place: &Place) -> Result<(), DiskError> {
        make_small_file(place, &format!("{}.vmx", self.name)).await?;
        for disk in &self.disks {
            let kind = disk.base().provisioning();
            disk.migrate(mover, place, kind).await?;
        }
        let memory_bytes = self.running.borrow().as_ref().map(|running| running.memory_bytes);
        self.power_off().await?;
        self.place.datastore.delete(&format!("{}.vmx", self.name)).await?;
        self.place = place.clone();
        match memory_bytes {
            Some(memory_bytes) => self.power_on(memory_bytes).await,
            None => Ok(()),
        }
    }

    /// Deletes the virtual machine and its disks. This frees their blocks in the datastore; a later
    /// reclaim (UNMAP) frees them in the array.
    ///
    /// # Errors
    /// Those of the datastore.
    pub async fn delete(self) -> Result<(), DiskError> {
        self.power_off().await?;
        for disk in &self.disks {
            let base = disk.base();
            base.close().await?;
            self.place.datastore.delete(&base.name()).await?;
        }
        self.place.datastore.delete(&format!("{}.vmx", self.name)).await?;
        Ok(())
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its datastore.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Returns its disks.
    pub fn disks(&self) -> &[GuestDisk] {
        &self.disks
    }
}

fn disk_name(vm: &str, index: usize) -> String {
    match index {
        0 => format!("{vm}.vmdk"),
        index => format!("{vm}_{index}.vmdk"),
    }
}

async fn make_small_file(place: &Place, name: &str) -> Result<(), DiskError> {
    let file = place.datastore.create(name, SMALL_FILE_BYTES).await?;
    file.allocate(0, 1, AllocateAs::Present, Placement::AsItComes).await?;
    Ok(file.close().await?)
}
