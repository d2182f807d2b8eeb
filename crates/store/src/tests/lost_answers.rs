//! COMPARE AND WRITE commands that are retried because their response was lost.

use block::request::Sender;
use block::{DataOut, SectorRange, VolumeError, VolumeId, VolumeRequest};

use super::{MIB, MemoryDisk, assert_sound, distinct, pool, read, volume, write};
use crate::world::comparisons::{KEPT_MAX, KEPT_MS};
use crate::{Change, Durability, OpenOptions, Store, VolumeChange};

const START: u64 = 13;
const HOST: &str = "iqn.2026-01.com.example:a,i,0x000000000001,t,0x0001";
const BEGAN_MS: u64 = 1_700_000_000_000;

/// A host's command, the first of its session, whose response is lost.
#[derive(Clone, Debug)]
struct Command {
    volume: VolumeId,
    start: u64,
    old: Vec<u8>,
    new: Vec<u8>,
    nexus: &'static str,
    session: u64,
    command: u64,
    at_ms: u64,
    fua: bool,
}

impl Command {
    fn sector(volume: VolumeId, start: u64, old: &[u8], new: &[u8]) -> Self {
        let (old, new) = (old.to_vec(), new.to_vec());
        let (session, command, at_ms, fua) = (1, 1, BEGAN_MS, false);
        Self { volume, start, old, new, nexus: HOST, session, command, at_ms, fua }
    }

    /// Returns the same command, sent a moment later in the next session.
    fn again(&self) -> Self {
        let (session, command, at_ms) = (self.session + 1, self.command + 1, self.at_ms + 50);
        Self { session, command, at_ms, ..self.clone() }
    }

    fn run(&self, store: &Store) -> Result<(), VolumeError> {
        let range = SectorRange::new(self.start, self.old.len() as u64 / 512);
        let phase = range.start.offset_in_block_bytes();
        let Self { session, command, at_ms, .. } = *self;
        let sender = Sender { nexus: self.nexus.into(), session, command, at_ms };
        let request = VolumeRequest::CompareAndWrite {
            volume: self.volume,
            range,
            expected: DataOut::from_bytes(&self.old, phase),
            data: DataOut::from_bytes(&self.new, phase),
            fua: self.fua,
            sender: Some(Box::new(sender)),
        };
        store.execute(request).map(drop)
    }

    /// Asserts that it does not count as a retry, and has changed nothing.
    fn miscompares(&self, store: &Store) {
        let count = self.old.len() as u64 / 512;
        let before = read(store, self.volume, self.start, count);
        let result = self.run(store);
        assert!(matches!(result, Err(VolumeError::Miscompare { .. })), "{result:?} of {self:?}");
        assert_eq!(read(store, self.volume, self.start, count), before);
    }
}

/// A host has taken a lock of one sector, and has lost the response.
fn lost() -> (std::sync::Arc<MemoryDisk>, Store, Command) {
    let (disk, store) = pool(256 << 20);
    let id = volume(&store, MIB);
    write(&store, id, 0, &distinct(64, 1)).unwrap();
    let free = read(&store, id, START, 1);
    let take = Command::sector(id, START, &free, &distinct(1, 2));
    take.run(&store).unwrap();
    (disk, store, take)
}

/// Returns how many commits the pool has written.
fn commits(store: &Store) -> u64 {
    store.writer.lock().log.commit_count()
}

#[test]
fn a_repeated_command_is_good_and_writes_nothing() {
    let (_disk, store, take) = lost();
    let before = commits(&store);
    take.again().run(&store).unwrap();
    // Any number of responses may be lost.
    take.again().again().run(&store).unwrap();
    assert_eq!(commits(&store), before);
    assert_eq!(read(&store, take.volume, START, 1), take.new);
    assert_sound(&store);
}

#[test]
fn a_repeated_command_of_many_sectors_is_recognized() {
    let (_disk, store) = pool(256 << 20);
    let id = volume(&store, MIB);
    write(&store, id, 0, &distinct(512, 1)).unwrap();
    let take = Command::sector(id, START, &read(&store, id, START, 255), &distinct(255, 2));
    take.run(&store).unwrap();
    take.again().run(&store).unwrap();
    let mut other = take.again();
    other.new[254 * 512] ^= 1;
    other.miscompares(&store);
}

#[test]
fn a_command_of_another_initiator_isid_or_port_is_not_a_repeat() {
    let (_disk, store, take) = lost();
    for nexus in [
        "iqn.2026-01.com.example:b,i,0x000000000001,t,0x0001",
        "iqn.2026-01.com.example:a,i,0x000000000002,t,0x0001",
        "iqn.2026-01.com.example:a,i,0x000000000001,t,0x0002",
    ] {
        Command { nexus, ..take.again() }.miscompares(&store);
    }
    take.again().run(&store).unwrap();
}

#[test]
fn a_command_for_another_volume_lba_or_length_is_not_a_repeat() {
    let (_disk, store, take) = lost();
    let other = store.allocate_volume_id();
    let clone = VolumeChange::Clone { source: take.volume, id: other, snapshot: false };
    store.change(Change { volumes: vec![clone], ..Change::default() }).unwrap();
    // All of these blocks hold what the command would write.
    Command { volume: other, ..take.again() }.miscompares(&store);
    write(&store, take.volume, START + 8, &take.new).unwrap();
    Command { start: START + 8, ..take.again() }.miscompares(&store);
    write(&store, take.volume, START + 1, &take.new).unwrap();
    let twice = |bytes: &[u8]| bytes.repeat(2);
    Command { old: twice(&take.old), new: twice(&take.new), ..take.again() }.miscompares(&store);
    take.again().run(&store).unwrap();
}

#[test]
fn a_command_with_other_data_is_not_a_repeat() {
    let (_disk, store, take) = lost();
    let mut old = take.old.clone();
    old[511] ^= 1;
    Command { old, ..take.again() }.miscompares(&store);
    let mut new = take.new.clone();
    new[0] ^= 1;
    Command { new, ..take.again() }.miscompares(&store);
    take.again().run(&store).unwrap();
}

#[test]
fn a_command_for_a_changed_block_is_not_a_repeat() {
    let (_disk, store, take) = lost();
    write(&store, take.volume, START, &distinct(1, 3)).unwrap();
    take.again().miscompares(&store);
    // The rest of its block does not matter.
    write(&store, take.volume, START, &take.new).unwrap();
    write(&store, take.volume, START + 1, &distinct(1, 4)).unwrap();
    take.again().run(&store).unwrap();
}

/// Another host has broken the lock, and the old content was written again: a command that comes
/// now does not hold the lock.
#[test]
fn a_command_is_not_a_repeat_after_another_hosts_compare() {
    let (_disk, store, take) = lost();
    let nexus = "iqn.2026-01.com.example:b,i,0x000000000001,t,0x0001";
    let broken = Command { nexus, ..Command::sector(take.volume, START, &take.new, &take.old) };
    let wider = read(&store, take.volume, START - 2, 4);
    let mut after = wider.clone();
    after[2 * 512..3 * 512].copy_from_slice(&take.old);
    for command in [broken, Command { nexus, ..Command::sector(take.volume, 11, &wider, &after) }] {
        let command = Command { session: 9, command: 90, at_ms: take.at_ms + 1, ..command };
        command.run(&store).unwrap();
        write(&store, take.volume, START, &take.new).unwrap();
        take.again().miscompares(&store);
        write(&store, take.volume, START, &take.old).unwrap();
        take.run(&store).unwrap();
    }
}

/// The same with one sector of many; those beside it do not matter.
#[test]
fn only_an_overlapping_compare_ends_the_recognition() {
    let (_disk, store, take) = lost();
    let id = take.volume;
    let wide = Command::sector(id, 20, &read(&store, id, 20, 9), &distinct(9, 6));
    wide.run(&store).unwrap();
    let other = |at: u64| Command {
        nexus: "another",
        session: 9,
        command: 90 + at,
        ..Command::sector(id, at, &read(&store, id, at, 1), &distinct(1, 70 + at))
    };
    other(19).run(&store).unwrap();
    other(29).run(&store).unwrap();
    wide.again().run(&store).unwrap();
    other(28).run(&store).unwrap();
    write(&store, id, 20, &wide.new).unwrap();
    wide.again().again().miscompares(&store);
}

#[test]
fn a_command_with_an_acknowledged_status_is_not_a_repeat() {
    let (_disk, store, take) = lost();
    store.acknowledged(take.command + 1);
    take.again().run(&store).unwrap();
    // Now the command belongs to the session that got its response: an acknowledgement by the first
    // session no longer counts.
    store.acknowledged(take.command);
    take.again().again().run(&store).unwrap();
    store.acknowledged(take.again().again().command);
    take.again().again().again().miscompares(&store);
}

#[test]
fn a_command_is_recognized_for_a_minute_and_not_before_its_time() {
    let (_disk, store, take) = lost();
    let at = |at_ms: u64| Command { at_ms, ..take.again() };
    at(take.at_ms + KEPT_MS + 1).miscompares(&store);
    at(take.at_ms - 1).miscompares(&store);
    at(take.at_ms + KEPT_MS).run(&store).unwrap();
    // A repetition does not renew the time limit.
    Command { session: 7, ..at(take.at_ms + KEPT_MS + 1) }.miscompares(&store);
}

#[test]
fn a_command_of_the_same_session_is_not_a_repeat() {
    let (_disk, store, take) = lost();
    Command { session: take.session, ..take.again() }.miscompares(&store);
    take.again().run(&store).unwrap();
    // As in the session that retried it, though its answer was GOOD.
    Command { command: 77, ..take.again() }.miscompares(&store);
}

#[test]
fn a_command_without_a_sender_is_never_a_repeat() {
    let (_disk, store) = pool(256 << 20);
    let id = volume(&store, MIB);
    let take = Command::sector(id, START, &[0; 512], &distinct(1, 2));
    let request = VolumeRequest::CompareAndWrite {
        volume: id,
        range: SectorRange::new(START, 1),
        expected: DataOut::from_bytes(&take.old, 2560),
        data: DataOut::from_bytes(&take.new, 2560),
        fua: false,
        sender: None,
    };
    store.execute(request).unwrap();
    assert!(store.world.comparisons.all().is_empty());
    take.again().miscompares(&store);
}

/// With and without a checkpoint in between, and over two crashes: no earlier session is a current
/// one, regardless of its number.
#[test]
fn a_repeated_command_is_recognized_after_the_process_was_killed() {
    for checkpoints in [[false, false], [true, false], [false, true], [true, true]] {
        let (mut disk, mut store, take) = lost();
        for checkpoint in checkpoints {
            if checkpoint {
                store.checkpoint().unwrap();
            }
            disk = disk.copy();
            store = Store::open(disk.clone(), OpenOptions::default()).unwrap();
        }
        Command { nexus: "another", ..take.again() }.miscompares(&store);
        Command { at_ms: take.at_ms + KEPT_MS + 1, ..take.again() }.miscompares(&store);
        // An acknowledgement of now concerns no earlier command.
        store.acknowledged(take.command);
        Command { session: take.session, ..take.again() }.run(&store).unwrap();
        Command { session: take.session, ..take.again() }.miscompares(&store);
        assert_sound(&store);
    }
}

/// An acknowledged command is in no checkpoint, and one that the log restores is harmless: the same
/// command of the same nexus, whose block holds what it would write.
#[test]
fn an_acknowledgement_survives_the_process_after_a_checkpoint() {
    let (disk, store, take) = lost();
    store.acknowledged(take.command);
    let crashed = Store::open(disk.copy(), OpenOptions::default()).unwrap();
    take.again().run(&crashed).unwrap();
    store.checkpoint().unwrap();
    let crashed = Store::open(disk.copy(), OpenOptions::default()).unwrap();
    take.again().miscompares(&crashed);
}

#[test]
fn the_entry_is_in_the_record_of_the_write() {
    let (_disk, store, take) = lost();
    let (before, bytes) = (commits(&store), store.pool_status().log_bytes);
    let free = Command { session: 2, ..Command::sector(take.volume, START, &take.new, &take.old) };
    free.run(&store).unwrap();
    assert_eq!(commits(&store), before + 1);
    // A block of header and one of data, as without it.
    assert_eq!(store.pool_status().log_bytes, bytes + 8192);
}

/// With early acknowledgement the block that a retried command finds may not be durable yet: with
/// FUA it completes once the block is durable.
#[test]
fn a_repeated_command_with_fua_waits_for_the_flush() {
    let disk = MemoryDisk::new(256 << 20);
    Store::create(&*disk, &[7; 64]).unwrap();
    let options = OpenOptions { durability: Durability::Flush, ..OpenOptions::default() };
    let store = Store::open(disk, options).unwrap();
    let id = volume(&store, MIB);
    let take = Command::sector(id, START, &[0; 512], &distinct(1, 2));
    take.run(&store).unwrap();
    take.again().run(&store).unwrap();
    let is_flushed = || {
        let writer = store.writer.lock();
        writer.log.flushed_lsn() + 1 == writer.log.end().lsn
    };
    assert!(!is_flushed());
    Command { fua: true, ..take.again().again() }.run(&store).unwrap();
    assert!(is_flushed());
}

/// The first may still be in flight when the second comes: what it writes is never visible before
/// it is known.
#[test]
fn of_two_racing_commands_the_later_one_is_a_repeat() {
    let (_disk, store) = pool(256 << 20);
    let id = volume(&store, MIB);
    for round in 0..400 {
        let take = Command::sector(id, round, &[0; 512], &distinct(1, round + 1));
        let again = Command { at_ms: take.at_ms, ..take.again() };
        std::thread::scope(|scope| {
            let first = scope.spawn(|| take.run(&store));
            again.run(&store).unwrap();
            first.join().unwrap().unwrap();
        });
        assert_eq!(read(&store, id, round, 1), take.new);
    }
}

#[test]
fn the_number_of_remembered_commands_is_bounded() {
    let (disk, store) = pool(256 << 20);
    let id = volume(&store, 16 * MIB);
    let at = |n: u64| Command {
        command: n,
        ..Command::sector(id, n, &[0; 512], &[n.to_le_bytes(), [7; 8]].concat().repeat(32))
    };
    for n in 0..KEPT_MAX as u64 + 2 {
        at(n).run(&store).unwrap();
    }
    assert_eq!(store.world.comparisons.all().len(), KEPT_MAX);
    let last = at(KEPT_MAX as u64 + 1);
    at(1).again().miscompares(&store);
    at(2).again().run(&store).unwrap();
    last.again().run(&store).unwrap();
    store.checkpoint().unwrap();
    drop(store);
    let store = Store::open(disk, OpenOptions::default()).unwrap();
    assert_eq!(store.world.comparisons.all().len(), KEPT_MAX);
    at(3).again().run(&store).unwrap();
    // Expired ones make room at once.
    let later = Command { at_ms: BEGAN_MS + KEPT_MS + 1, ..at(8000) };
    later.run(&store).unwrap();
    assert_eq!(store.world.comparisons.all().len(), 1);
}
