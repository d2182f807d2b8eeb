use std::sync::Arc;
use std::time::Instant;

use super::*;
use crate::prepare::Preparer;

fn frames(seed: u8, count: usize) -> Vec<Frame> {
    (0..count)
        .map(|index| {
            let mut frame = FrameMut::zeroed();
            frame.fill(seed.wrapping_add(index as u8));
            frame[0] = index as u8;
            frame.freeze()
        })
        .collect()
}

fn read(disk: &FileDisk, offset_bytes: u64, count: usize) -> Vec<Frame> {
    let mut frames: Vec<FrameMut> = (0..count).map(|_| FrameMut::stale()).collect();
    disk.read(offset_bytes, &mut frames).unwrap();
    frames.into_iter().map(FrameMut::freeze).collect()
}

#[test]
fn written_data_is_read_in_any_length() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("disk");
    let disk = FileDisk::create(&path, 32 << 20).unwrap();
    for (count, offset) in [(1, 0), (7, 8192), (1024, 1 << 20), (2500, 16 << 20)] {
        let data = frames(count as u8, count);
        disk.write_durable(offset, &data).unwrap();
        assert_eq!(read(&disk, offset, count), data);
    }
    drop(disk);
    let disk = FileDisk::open(&path).unwrap();
    assert_eq!(disk.len_bytes(), 32 << 20);
    assert_eq!(read(&disk, 16 << 20, 2500), frames(2500usize as u8, 2500));
    assert_eq!(read(&disk, 12 << 20, 1), vec![Frame::zeros()]);
}

/// The file keeps its length, and the bytes next to the range.
#[test]
fn discarded_space_returns_to_the_filesystem() {
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("disk");
    let disk = FileDisk::create(&path, 8 << 20).unwrap();
    disk.write_durable(0, &frames(1, 2048)).unwrap();
    let taken_bytes = || std::fs::metadata(&path).unwrap().blocks() * 512;
    let before = taken_bytes();
    assert!(disk.discard(2 << 20, 4 << 20).unwrap());
    assert!(taken_bytes() <= before - (4 << 20), "{} of {before}", taken_bytes());
    assert_eq!(disk.len_bytes(), 8 << 20);
    let (all, zeros) = (frames(1, 2048), vec![Frame::zeros(); 1024]);
    assert_eq!(read(&disk, 0, 512), all[..512]);
    assert_eq!(read(&disk, 2 << 20, 1024), zeros);
    assert_eq!(read(&disk, 6 << 20, 512), all[1536..]);
    disk.write_durable(3 << 20, &all[..4]).unwrap();
    assert_eq!(read(&disk, 3 << 20, 4), all[..4]);
    for (offset, len) in [(8 << 20, 4096), (4096, 8 << 20), (512, 4096), (0, 512)] {
        assert!(disk.discard(offset, len).is_err(), "{len} bytes at {offset}");
    }
}

#[test]
fn unaligned_ranges_and_ranges_past_the_end_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let disk = FileDisk::create(&dir.path().join("disk"), 1 << 20).unwrap();
    let one = frames(1, 1);
    for offset in [1 << 20, 512, u64::MAX - 4095] {
        let error = disk.write(offset, &one).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{offset}");
        assert!(disk.read(offset, &mut [FrameMut::stale()]).is_err());
    }
    assert!(disk.write((1 << 20) - 4096, &one).is_ok());
    assert!(FileDisk::create(&dir.path().join("odd"), 1000).is_err());
}

#[test]
fn a_file_has_one_owner_and_is_not_created_twice() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("disk");
    let disk = FileDisk::create(&path, 1 << 20).unwrap();
    let error = FileDisk::open(&path).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    assert!(error.to_string().contains("in use"), "{error}");
    assert_eq!(FileDisk::create(&path, 1 << 20).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    drop(disk);
    FileDisk::open(&path).unwrap();
}

#[test]
fn a_file_that_does_not_fit_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("disk");
    let error = FileDisk::create(&path, 1 << 60).unwrap_err();
    assert!(error.to_string().contains("could not reserve"), "{error}");
    assert!(!path.exists());
}

#[test]
fn preparing_never_touches_data() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("disk");
    let disk = FileDisk::create(&path, 8 << 20).unwrap();
    let data = frames(9, 3);
    disk.write_durable((2 << 20) + 4096, &data).unwrap();
    if disk.untouched_bytes() == 0 {
        eprintln!("this filesystem does not report written extents: nothing to prepare");
        return;
    }
    assert_eq!(disk.untouched_bytes(), 7 << 20);
    assert_eq!(disk.prepare_ahead(0, 4 << 20).unwrap(), 3 << 20);
    assert_eq!(disk.prepare_ahead(0, 4 << 20).unwrap(), 0);
    assert_eq!(read(&disk, (2 << 20) + 4096, 3), data);
    drop(disk);
    // Prepared and written ranges are known again after an opening.
    let disk = FileDisk::open(&path).unwrap();
    assert_eq!(disk.untouched_bytes(), 4 << 20);
    assert_eq!(disk.prepare_ahead(0, 8 << 20).unwrap(), 4 << 20);
    assert_eq!(read(&disk, (2 << 20) + 4096, 3), data);
}

#[test]
fn data_wins_over_zeros_written_concurrently() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(FileDisk::create(&dir.path().join("disk"), 64 << 20).unwrap());
    let background = Preparer::start(disk.clone(), 32 << 20, |text| panic!("{text}")).unwrap();
    let data = frames(77, 64);
    for unit in 0..64u64 {
        disk.write_durable(unit * UNIT_BYTES + 65536, &data).unwrap();
        assert_eq!(read(&disk, unit * UNIT_BYTES + 65536, 64), data);
    }
    drop(background);
    for unit in 0..64u64 {
        assert_eq!(read(&disk, unit * UNIT_BYTES + 65536, 64), data, "unit {unit}");
        assert_eq!(read(&disk, unit * UNIT_BYTES, 1), vec![Frame::zeros()]);
    }
}

/// Not a test of behaviour: prints the gain from preparing here. `--ignored --nocapture` runs it.
#[test]
#[ignore = "a measurement"]
fn measure_preparing() {
    let dir = tempfile::tempdir_in(std::env::var("MEASURE_DIR").unwrap_or(".".into())).unwrap();
    let two = frames(5, 2);
    for prepared in [false, true] {
        let path = dir.path().join(format!("disk-{prepared}"));
        let disk = FileDisk::create(&path, 128 << 20).unwrap();
        let start = Instant::now();
        if prepared {
            disk.prepare_ahead(0, 128 << 20).unwrap();
            println!("preparing 128 MiB: {:?}", start.elapsed());
        }
        let start = Instant::now();
        let count = 4000;
        for index in 0..count {
            disk.write_durable(index * 8192, &two).unwrap();
        }
        let each = start.elapsed() / count as u32;
        println!("prepared {prepared}: {each:?} a durable 8 KiB write");
    }
}

#[test]
fn a_file_grows_while_it_is_used_and_never_shrinks() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("disk");
    let disk = FileDisk::create(&path, 1 << 20).unwrap();
    let frames = [FrameMut::from_bytes(&[7; 4096]).freeze()];
    assert!(disk.write(1 << 20, &frames).is_err());
    disk.grow(2 << 20).unwrap();
    disk.grow(1 << 20).unwrap();
    assert_eq!(disk.len_bytes(), 2 << 20);
    disk.write_durable((2 << 20) - 4096, &frames).unwrap();
    assert!(disk.grow(4097).is_err());
    assert!(disk.grow(u64::MAX - 4095).is_err(), "larger than any disk");
    drop(disk);
    let disk = FileDisk::open(&path).unwrap();
    assert_eq!(disk.len_bytes(), 2 << 20);
    let mut read = [FrameMut::zeroed()];
    disk.read((2 << 20) - 4096, &mut read).unwrap();
    assert_eq!(read[0][..], frames[0][..]);
}

/// A refused change changes nothing: the filesystem is as full as before.
#[test]
fn a_growth_that_does_not_fit_takes_no_space() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("disk");
    let disk = FileDisk::create(&path, 1 << 20).unwrap();
    let sizes = || {
        let metadata = std::fs::metadata(&path).unwrap();
        (metadata.len(), metadata.blocks())
    };
    let before = sizes();
    let error = disk.grow(1 << 46).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert!(error.to_string().contains("could not reserve"), "{error}");
    assert_eq!(sizes(), before);
    // The space that was allocated before it ran out is given back.
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let refused = reserve_or_give_back(&file, 1 << 20, || {
        file.set_len(64 << 20)?;
        Err(io::Error::from_raw_os_error(libc::ENOSPC))
    });
    assert!(refused.is_err());
    assert_eq!((sizes(), disk.len_bytes()), (before, 1 << 20));
}

#[test]
fn a_read_only_file_is_never_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("disk");
    let data = frames(5, 3);
    FileDisk::create(&path, 1 << 20).unwrap().write_durable(8192, &data).unwrap();
    let mut permissions = std::fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&path, permissions).unwrap();
    let disk = FileDisk::open_read_only(&path).unwrap();
    assert_eq!(read(&disk, 8192, 3), data);
    let error = disk.write(8192, &frames(6, 1)).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EBADF));
    assert_eq!(disk.retry_count(), 0);
    assert_eq!(read(&disk, 8192, 3), data);
    let error = FileDisk::open_read_only(&path).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "it is locked nevertheless");
}
