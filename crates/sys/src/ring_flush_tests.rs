//! Flushes that fail, below the ring and below the disk.

use super::*;

/// The result of one write.
fn write_one(ring: &mut Ring, count: usize, persist: Persist) -> io::Result<()> {
    ring.write(1, 0, frames(3, count), persist).unwrap();
    ring.submit().unwrap();
    collect_patiently(ring, 1).remove(0).result
}

/// A flush for earlier writes is not tried again: those would have to be written again as well. Nor
/// does a later one say that they are durable.
#[test]
fn a_failed_flush_of_earlier_writes_is_a_failure_for_good() {
    for (dir, disk, mut ring, _) in engines() {
        for count in [0, 2] {
            assert!(write_one(&mut ring, 1, Persist::Nothing).is_ok());
            refuse_flushes(&disk, if count == 0 { &[libc::EIO] } else { &[] });
            assert!(write_one(&mut ring, count, Persist::All).is_err(), "{count} frames");
            assert_eq!(disk.retry_count(), 0);
        }
        assert!(disk.flush().is_err());
        assert!(write_one(&mut ring, 1, Persist::Itself).is_ok(), "that speaks for itself");
        drop((ring, disk));
        let disk = FileDisk::open(&dir.path().join("disk")).unwrap();
        assert!(disk.flush().is_ok(), "an opening begins anew");
    }
}

/// A write that a flush follows is written again when that fails, and when another's has failed.
#[test]
fn a_write_is_repeated_with_its_flush() {
    for (_dir, disk, mut ring, _) in engines() {
        refuse_flushes(&disk, &[libc::EIO, libc::EIO]);
        assert!(write_one(&mut ring, IOVECS_MAX + 1, Persist::Itself).is_ok());
        assert_eq!(disk.retry_count(), 2);
        let mut calls = 0;
        let written = disk.write_and_flush(&mut || {
            calls += 1;
            disk.write(0, &frames(1, 2))?;
            if calls <= 2 {
                // Another's flush, or another's write with a flush of its own.
                refuse_flushes(&disk, if calls == 1 { &[libc::EIO] } else { &[] });
                refuse(&disk, if calls == 2 { &[libc::EIO] } else { &[] });
                assert_eq!(disk.put(65_536, &frames(9, 1), Persist::Itself).is_ok(), calls == 1);
                assert!(disk.flush().is_err());
            }
            Ok(())
        });
        written.unwrap();
        assert_eq!((calls, disk.retry_count()), (3, 4));
        // What fails for good does not go round again.
        let mut calls = 0;
        let error = disk.write_and_flush(&mut || {
            calls += 1;
            Err(io::Error::from_raw_os_error(libc::EIO))
        });
        assert!(error.is_err() && calls == 1);
    }
}
