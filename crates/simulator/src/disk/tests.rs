//! The disk itself: what it keeps and loses, and its faults.

use super::*;

fn disk_with_two_writes() -> SimDisk {
    let disk = SimDisk::new(1 << 20, 1);
    disk.write(0, &[FrameMut::from_bytes(&[1; 4096]).freeze()]).unwrap();
    disk.flush().unwrap();
    disk.write(0, &[FrameMut::from_bytes(&[2; 4096]).freeze()]).unwrap();
    disk
}

fn block_of(disk: &SimDisk, number: u64) -> Vec<u8> {
    let mut frames = [FrameMut::stale()];
    disk.read(number * BLOCK, &mut frames).unwrap();
    frames[0].to_vec()
}

fn first_block(disk: &SimDisk) -> Vec<u8> {
    block_of(disk, 0)
}

#[test]
fn a_crash_keeps_what_was_flushed_and_tears_the_rest_by_sectors() {
    let disk = disk_with_two_writes();
    assert_eq!(first_block(&disk), vec![2; 4096]);
    disk.crash(Survival::Nothing, &mut Rng::new(1));
    assert_eq!(first_block(&disk), vec![1; 4096]);
    let disk = disk_with_two_writes();
    disk.crash(Survival::Sectors, &mut Rng::new(5));
    let found = first_block(&disk);
    assert!(found.contains(&1) && found.contains(&2));
    assert!(found.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
}

#[test]
fn the_fuse_fails_every_io_from_then_on_until_the_crash() {
    let disk = disk_with_two_writes();
    disk.set_fuse(Some(disk.io_count() + 1));
    assert!(disk.flush().is_err() && disk.flush().is_err() && disk.is_dead());
    disk.crash(Survival::Nothing, &mut Rng::new(1));
    assert_eq!(first_block(&disk), vec![1; 4096]);
    assert!(disk.flush().is_ok());
}

#[test]
fn a_faulty_write_is_acknowledged_but_lost_misplaced_or_torn() {
    for (fault, here, there) in [
        (WriteFault::Lost, vec![1; 4096], vec![0; 4096]),
        (WriteFault::Misdirected(9), vec![1; 4096], vec![3; 4096]),
    ] {
        let disk = disk_with_two_writes();
        disk.crash(Survival::Nothing, &mut Rng::new(1));
        disk.set_write_fault(&[], fault);
        disk.write(0, &[FrameMut::from_bytes(&[3; 4096]).freeze()]).unwrap();
        disk.flush().unwrap();
        disk.crash(Survival::Nothing, &mut Rng::new(1));
        assert_eq!((block_of(&disk, 0), block_of(&disk, 9)), (here, there), "{fault:?}");
        assert_eq!(disk.struck().map(|struck| struck.offset_bytes), Some(0));
    }
    let disk = disk_with_two_writes();
    disk.set_write_fault(&[], WriteFault::Shorn);
    disk.write(0, &[FrameMut::from_bytes(&[3; 4096]).freeze()]).unwrap();
    let found = block_of(&disk, 0);
    assert!(found.contains(&2) && found.contains(&3));
}

#[test]
fn a_failing_read_succeeds_within_its_retries_despite_other_reads() {
    let disk = SimDisk::new(1 << 20, 1);
    let mut inner = disk.inner();
    inner.faults.transient_reads_per_mille = 900;
    let mut refused = 0;
    for place in 0..200 {
        let mut failed = 0;
        for _ in 0..sys::READ_TRIES_MAX {
            failed += u32::from(inner.refuses_read(place));
            // Another reader of the same, and one of something else.
            inner.refuses_read(place);
            inner.refuses_read(1000 + place);
        }
        assert!(failed < sys::READ_TRIES_MAX);
        refused += failed;
    }
    assert!(refused > 200);
}
