//! Reads that fail at first.

use super::*;

/// A read that fails a few times and then succeeds has not failed, regardless of how it was issued;
/// one that fails each time fails once.
#[test]
fn a_failed_read_is_retried() {
    for (_dir, disk, mut ring, _told) in engines() {
        disk.write(0, &frames(1, 5)).unwrap();
        let refuse_reads = |errors: &[i32]| {
            refuse(&disk, &[]);
            disk.retries().read_faults.lock().unwrap().extend(errors);
        };
        let blank = || (0..5).map(|_| FrameMut::stale()).collect::<Vec<FrameMut>>();
        refuse_reads(&[libc::EIO, libc::EIO, libc::ETIMEDOUT]);
        ring.read(1, 0, blank()).unwrap();
        ring.submit().unwrap();
        let ended = collect_patiently(&mut ring, 1).pop().unwrap();
        ended.result.unwrap();
        let Buffers::Read(read) = ended.buffers else { panic!("it was a read") };
        let read: Vec<Frame> = read.into_iter().map(FrameMut::freeze).collect();
        assert!(read == frames(1, 5));
        refuse_reads(&[libc::EIO; 3]);
        disk.read_patiently(0, &mut blank()).unwrap();
        assert_eq!(disk.retry_count(), 6);

        refuse_reads(&[libc::EIO; 8]);
        ring.read(2, 0, blank()).unwrap();
        ring.submit().unwrap();
        let ended = collect_patiently(&mut ring, 1).pop().unwrap();
        assert_eq!(ended.result.unwrap_err().raw_os_error(), Some(libc::EIO));
        assert!(disk.read_patiently(0, &mut blank()).is_err());
        assert_eq!((ring.in_flight(), disk.retry_count()), (0, 6));
        disk.read_patiently(0, &mut blank()).unwrap();
    }
}

/// A waiting caller gets completions, and is not blocked where nothing is in flight.
#[test]
fn waiting_ends_when_a_read_completes() {
    for (_dir, disk, mut ring, _told) in engines() {
        disk.write(0, &frames(1, 5)).unwrap();
        ring.wait().unwrap();
        for number in 0..5 {
            ring.read(number, number * 4096, vec![FrameMut::stale()]).unwrap();
        }
        ring.submit().unwrap();
        let (mut ended, mut turns) = (Vec::new(), 0);
        while ring.in_flight() > 0 {
            ring.wait().unwrap();
            ring.complete(&mut ended).unwrap();
            turns += 1;
            assert!(turns <= 10, "it returns although nothing has ended");
        }
        assert_eq!(ended.len(), 5);
    }
}
