//! Guests that unmap while they write, next to a disk that gets the blocks they free, and while
//! their disk is moved.

use std::cell::Cell;
use std::rc::Rc;

use anyhow::{Context, Result, bail, ensure};
use lab::datastore::{BLOCK_BYTES, DatastoreError};
use lab::disk::{DiskError, Place, Provisioning, VirtualDisk};
use lab::engine::Engine;
use lab::guest::GuestDisk;
use lab::host::{Class, Device, Host};
use lab::mover::Mover;
use lab::random::Random;

use super::places::{fresh, leave, must_hold};
use super::{FOUR, KIB, LOOKS, MIB, THREE, connect, wait};
use crate::array::Array;
use crate::target::Target;

/// The blocks of the guest's disk.
const BLOCKS: u64 = 6;
/// The guest's tasks that write, and those that unmap.
const WRITERS: u64 = 4;
const UNMAPPERS: u64 = 3;
/// The free blocks for both disks: what one frees the other gets at once.
const FREE: u64 = BLOCKS + 2;
/// How often the other disk gets a block and frees it.
const ROUNDS: u64 = 100;

/// A block is not freed before requests that have looked up its location have ended.
pub fn in_order(array: &Array, target: &Target) -> Result<String> {
    let mut engine = Engine::new();
    let host = connect(&engine, array, target)?;
    wait(&mut engine, async move {
        let place = fresh(&host, THREE).await?;
        let disk = VirtualDisk::create(&place, "guest", BLOCKS * MIB, Provisioning::Thin).await?;
        let last = (BLOCKS - 1) * MIB;
        disk.write(last, &letters(last, MIB)).await?;
        let has_ended = Rc::new(Cell::new(false));
        let (own, ended) = (disk.clone(), has_ended.clone());
        let writing = host.reactor().spawn(async move {
            // All blocks but the last are allocated on demand: its turn is long after its look-up.
            let end = own.write(0, &letters(0, BLOCKS * MIB)).await;
            ended.set(true);
            end
        });
        let commands = |device: &Device| device.totals().of(Class::Zero).good.count;
        let before = commands(&place.device);
        while commands(&place.device) == before {
            host.reactor().step_back().await;
        }
        ensure!(!has_ended.get(), "the write ended before the guest could unmap");
        let released = disk.unmap(last, MIB).await?;
        ensure!(has_ended.get(), "a block was released before a write to it ended");
        ensure!(released == MIB, "{released} bytes were released");
        writing.await?;
        let mut expected = letters(0, BLOCKS * MIB);
        expected[last as usize..].fill(0);
        must_hold(&disk, &expected).await?;
        leave(&[place]).await
    })?;
    Ok(String::new())
}

/// Another disk gets a freed block at once: neither may find the other's data in its own.
pub fn beside_another(array: &Array, target: &Target) -> Result<String> {
    let mut engine = Engine::new();
    let host = connect(&engine, array, target)?;
    let reactor = engine.reactor();
    let released = wait(&mut engine, async move {
        let place = fresh(&host, THREE).await?;
        let make = |name| VirtualDisk::create(&place, name, BLOCKS * MIB, Provisioning::Thin);
        let (disk, other) = (GuestDisk::new(make("guest").await?), make("other").await?);
        let rest = place.datastore.free_blocks().await? - FREE;
        let rest =
            VirtualDisk::create(&place, "rest", rest * MIB, Provisioning::ZeroedThick).await?;
        let (is_over, released) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(0)));
        let mut tasks = Vec::new();
        for seed in 0..WRITERS {
            tasks.push(reactor.spawn(write_and_read(disk.clone(), is_over.clone(), seed)));
        }
        for seed in 0..UNMAPPERS {
            let (disk, is_over, released) = (disk.clone(), is_over.clone(), released.clone());
            tasks.push(reactor.spawn(unmap(disk, is_over, released, !seed)));
        }
        let end = use_again(&other).await;
        is_over.set(true);
        for task in tasks {
            task.await?;
        }
        end?;
        rest.close().await?;
        leave(&[place]).await?;
        Ok(released.get() / MIB)
    })?;
    ensure!(released > 30, "only {released} blocks were released: there was hardly a race");
    Ok(format!("{released} blocks released"))
}

/// Returns what the guest writes: a different letter in each block.
fn letters(offset: u64, bytes: u64) -> Vec<u8> {
    (offset..offset + bytes).map(|at| b'A' + (at / MIB) as u8).collect()
}

/// Writes, and reads its own data or zeros. A range covers several blocks, of which the first may
/// have to be allocated: much can happen to the last ones until their turn.
async fn write_and_read(disk: GuestDisk, is_over: Rc<Cell<bool>>, seed: u64) -> Result<()> {
    let mut random = Random::new(seed + 1);
    while !is_over.get() {
        let bytes = MIB + random.below(3 * MIB / (4 * KIB)) * 4 * KIB;
        let offset = random.below((BLOCKS * MIB - bytes) / (4 * KIB)) * 4 * KIB;
        let data = letters(offset, bytes);
        write(&disk.base(), offset, &data).await?;
        let held = disk.read(offset, bytes).await?;
        let wrong = held.iter().zip(&data).find(|(held, data)| **held != 0 && held != data);
        ensure!(wrong.is_none(), "read data and the data that the guest writes there: {wrong:?}");
    }
    Ok(())
}

async fn unmap(
    disk: GuestDisk,
    is_over: Rc<Cell<bool>>,
    released: Rc<Cell<u64>>,
    seed: u64,
) -> Result<()> {
    let mut random = Random::new(seed);
    while !is_over.get() {
        let count = 1 + random.below(3);
        let offset = random.below(BLOCKS - count + 1) * MIB;
        let bytes = disk.unmap(offset, count * MIB).await?;
        released.set(released.get() + bytes);
        // A task with nothing to free does not wait for the array.
        disk.base().place().device.host().reactor().step_back().await;
    }
    Ok(())
}

/// Writes as soon as there is space.
async fn write(disk: &VirtualDisk, offset: u64, data: &[u8]) -> Result<()> {
    for _ in 0..LOOKS {
        match disk.write(offset, data).await {
            Err(DiskError::Datastore(DatastoreError::Full)) => {}
            end => return Ok(end?),
        }
        disk.place().device.host().reactor().step_back().await;
    }
    bail!("no block becomes free")
}

/// Fills blocks, checks that they contain what it has written, and frees them.
async fn use_again(disk: &VirtualDisk) -> Result<()> {
    for round in 0..ROUNDS {
        let block = round % BLOCKS;
        let data = vec![b'a' + (round % 20) as u8; BLOCK_BYTES as usize];
        write(disk, block * BLOCK_BYTES, &data).await?;
        for _ in 0..4 {
            let held = disk.read(block * BLOCK_BYTES, BLOCK_BYTES).await?;
            let wrong = held.iter().zip(&data).position(|(held, data)| held != data);
            ensure!(wrong.is_none(), "round {round}: the other disk's data at byte {wrong:?}");
        }
        let released = disk.unmap(block * BLOCK_BYTES, BLOCK_BYTES).await?;
        ensure!(released == BLOCK_BYTES, "round {round}: {released} bytes were released");
    }
    Ok(())
}

/// The blocks of a disk that is moved: three windows. Each of the areas has one of the guest's
/// tasks.
const MOVED_BLOCKS: u64 = 192;
const AREA_BLOCKS: u64 = 48;
/// One of this many blocks is used.
const STRIDE: u64 = 4;
/// How often it is moved.
const MOVES: usize = 4;

/// A guest writes, unmaps and reads while its disk is moved: it always finds what it must.
pub fn while_moving(array: &Array, target: &Target) -> Result<String> {
    let mut engine = Engine::new();
    let host = connect(&engine, array, target)?;
    // By the host, and sequentially, so that the guest has enough time.
    host.set(|settings| (settings.accelerated_move, settings.copies_in_flight) = (false, 1));
    let requests = wait(&mut engine, async move { move_about(&host).await })?;
    ensure!(requests > 100, "only {requests} requests while the disk moved");
    Ok(format!("{requests} requests meanwhile"))
}

async fn move_about(host: &Host) -> Result<u64> {
    let places: [Place; 2] = [fresh(host, THREE).await?, fresh(host, FOUR).await?];
    let thin = Provisioning::Thin;
    let disk = VirtualDisk::create(&places[0], "moved", MOVED_BLOCKS * MIB, thin).await?;
    let disk = GuestDisk::new(disk);
    let is_over = Rc::new(Cell::new(false));
    let mut tasks = Vec::new();
    for first in (0..MOVED_BLOCKS).step_by(AREA_BLOCKS as usize) {
        let mut area = Area {
            disk: disk.clone(),
            first,
            held: vec![0; (AREA_BLOCKS * MIB) as usize],
            random: Random::new(first + 1),
        };
        area.fill().await?;
        let is_over = is_over.clone();
        tasks.push(host.reactor().spawn(async move { area.work(&is_over).await }));
    }
    let end = async {
        for turn in 0..MOVES {
            disk.migrate(&Mover::new(host), &places[(turn + 1) % 2], thin).await?;
        }
        anyhow::Ok(())
    };
    let end = end.await;
    is_over.set(true);
    let (mut requests, mut held) = (0, Vec::new());
    for task in tasks {
        let (count, area) = task.await?;
        requests += count;
        held.extend(area);
    }
    end?;
    must_hold(&disk.base(), &held).await?;
    leave(&places).await?;
    Ok(requests)
}

/// A part of the disk, and its expected content.
struct Area {
    disk: GuestDisk,
    first: u64,
    held: Vec<u8>,
    random: Random,
}

impl Area {
    async fn fill(&mut self) -> Result<()> {
        for block in (0..AREA_BLOCKS).step_by(STRIDE as usize) {
            self.write(block, 64 * KIB).await?;
        }
        Ok(())
    }

    async fn work(mut self, is_over: &Cell<bool>) -> Result<(u64, Vec<u8>)> {
        let (mut requests, reactor) = (0, self.disk.base().place().device.host().reactor().clone());
        while !is_over.get() {
            self.request().await?;
            requests += 1;
            reactor.step_back().await;
        }
        Ok((requests, self.held))
    }

    async fn request(&mut self) -> Result<()> {
        let block = self.random.below(AREA_BLOCKS / STRIDE) * STRIDE;
        let at = (block * MIB) as usize;
        let offset = (self.first + block) * MIB;
        match self.random.below(5) {
            0 | 1 => self.write(block, 32 * KIB).await,
            2 => {
                let count = self.random.below(AREA_BLOCKS - block + 1).min(3 * STRIDE);
                self.disk.unmap(offset, count * MIB).await?;
                self.held[at..at + (count * MIB) as usize].fill(0);
                Ok(())
            }
            _ => {
                let read = self.disk.read(offset, 64 * KIB).await?;
                let is_right = read == self.held[at..at + read.len()];
                ensure!(is_right, "block {} differs from its expected content", self.first + block);
                Ok(())
            }
        }
    }

    async fn write(&mut self, block: u64, bytes: u64) -> Result<()> {
        let at = (block * MIB) as usize;
        let data = &mut self.held[at..at + bytes as usize];
        self.random.fill(data);
        let offset = (self.first + block) * MIB;
        self.disk.write(offset, data).await.with_context(|| format!("block {block}"))
    }
}
