//! Flushes that fail, below the ring and below the disk.

use super::*;

/// Returns the result of one write.
fn write_one(ring: &mut Ring, count: usize, persist: Persist) -> io::Result<()> {
    ring.write(1, 0, frames(3, count), persist).unwrap();
    ring.submit().unwrap();
    collect_patiently(ring, 1).remove(0).result
}

/// A flush for earlier writes is not retried here: their owner has to repeat those writes as well.
/// The success of the next flush says nothing about them, and the count of failures shows that.
#[test]
fn a_failed_flush_of_earlier_writes_is_reported_and_counted() {
    for (_dir, disk, mut ring, _) in engines() {
        for (failed, count) in [(1, 0), (2, 2)] {
            assert!(write_one(&mut ring, 1, Persist::Nothing).is_ok());
            refuse_flushes(&disk, &[libc::EIO]);
            assert!(write_one(&mut ring, count, Persist::All).is_err(), "{count} frames");
            assert_eq!((disk.retry_count(), disk.flush_failures()), (0, failed));
            assert!(write_one(&mut ring, count, Persist::All).is_ok(), "{count} frames");
        }
        refuse_flushes(&disk, &[libc::EIO]);
        assert!(disk.flush().is_err() && disk.flush().is_ok());
        assert_eq!(disk.flush_failures(), 3);
    }
}

/// The next flush for earlier writes begins after a pause, in the ring as well, and the ring says
/// when to come back.
#[test]
fn a_flush_waits_while_flushes_fail() {
    for (_dir, disk, mut ring, _) in engines() {
        refuse_flushes(&disk, &[libc::EIO]);
        assert!(write_one(&mut ring, 0, Persist::All).is_err());
        disk.retries().at_once.store(false, std::sync::atomic::Ordering::Relaxed);
        ring.write(1, 0, frames(3, 1), Persist::Nothing).unwrap();
        assert_eq!(ring.next_retry(), None, "a plain write does not wait");
        ring.write(2, 0, Vec::new(), Persist::All).unwrap();
        assert!(ring.next_retry().is_some());
        ring.submit().unwrap();
        let ended = collect_patiently(&mut ring, 2);
        assert!(ended.iter().all(|completion| completion.result.is_ok()));
        assert!(disk.core().pause_before(Persist::All).is_none(), "it has succeeded");
    }
}

/// A write that a flush follows is repeated when that flush fails, and when another one has.
#[test]
fn a_write_is_repeated_with_its_flush() {
    for (_dir, disk, mut ring, _) in engines() {
        refuse_flushes(&disk, &[libc::EIO, libc::EIO]);
        assert!(write_one(&mut ring, iovec::IOVECS_MAX + 1, Persist::Itself).is_ok());
        assert_eq!(disk.retry_count(), 2);
        let mut calls = 0;
        let written = disk.write_and_flush(&mut || {
            calls += 1;
            disk.write(0, &frames(1, 2))?;
            if calls <= 2 {
                // Another's flush, or another's write with a flush of its own.
                refuse_flushes(&disk, if calls == 1 { &[libc::EIO] } else { &[] });
                refuse(&disk, if calls == 2 { &[libc::EIO] } else { &[] });
                disk.write_durable(65_536, &frames(9, 1)).unwrap();
            }
            Ok(())
        });
        written.unwrap();
        assert_eq!((calls, disk.retry_count()), (3, 5));
        // A permanent failure is not retried.
        let mut calls = 0;
        let error = disk.write_and_flush(&mut || {
            calls += 1;
            Err(io::Error::from_raw_os_error(libc::EIO))
        });
        assert!(error.is_err() && calls == 1);
    }
}
