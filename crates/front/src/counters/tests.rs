//! Commands are counted for their initiator, volume and port.

use super::*;

#[test]
fn success_and_failure_are_counted_separately_for_each_path() {
    let counters = Counters::new(2, vec![1]);
    let path = counters.path("iqn.a", Some(VolumeId(7)));
    assert!(Arc::ptr_eq(&path, &counters.path("iqn.a", Some(VolumeId(7)))));
    path.count(Class::CompareAndWrite, true, 512, Duration::from_micros(30));
    path.count(Class::CompareAndWrite, false, 512, Duration::from_micros(12));
    counters.path("iqn.b", None).count(Class::Other, false, 0, Duration::ZERO);
    let paths = counters.paths();
    assert_eq!(paths.len(), 2);
    let ats = paths[0].classes[Class::CompareAndWrite as usize];
    assert_eq!((ats.ok, ats.failed, ats.bytes), (1, 1, 512));
    assert_eq!((ats.ok_latency_us, ats.failed_latency_us), (30, 12));
    path.count(Class::Copy, true, 1 << 20, Duration::ZERO);
    path.count(Class::Copy, true, 4096, Duration::ZERO);
    path.count(Class::Copy, false, 1 << 30, Duration::ZERO);
    assert_eq!(counters.paths()[0].classes[Class::Copy as usize].largest_bytes, 1 << 20);
    [true, false, true, false].into_iter().for_each(|locks| path.count_reserve(locks));
    assert_eq!(counters.paths()[0].reserves, 2);
    assert_eq!(counters.totals()[Class::Other as usize].failed, 1);
    counters.path("iqn.b", Some(VolumeId(7))).count(Class::Read, true, 8, Duration::ZERO);
    path.count(Class::Read, true, 512, Duration::from_micros(3));
    let of_both = scsi::Statistics::of(&counters, VolumeId(7));
    assert_eq!((of_both.reads, of_both.read_bytes, of_both.read_us), (2, 520, 3));
    counters.wire_of(0).sent_bytes.fetch_add(5, Ordering::Relaxed);
    counters.wire_of(1).sent_bytes.fetch_add(6, Ordering::Relaxed);
    assert_eq!(counters.wire().sent_bytes, 11);
}

#[test]
fn a_copy_is_counted_at_its_source_and_destination() {
    let counters = Counters::new(1, Vec::new());
    let copy = |bytes| Copied { source: VolumeId(1), destination: VolumeId(2), bytes };
    counters.count_copy("iqn.a", &copy(8192));
    counters.count_copy("iqn.a", &copy(4096));
    counters.count_copy("iqn.a", &Copied { destination: VolumeId(1), ..copy(1) });
    let paths = counters.paths();
    let counted = |commands, bytes| CopySnapshot { commands, bytes };
    assert_eq!(paths[0].copied_from, counted(3, 12_289));
    assert_eq!((paths[0].copied_to, paths[1].copied_to), (counted(1, 1), counted(2, 12_288)));
    assert_eq!(paths[1].copied_from, counted(0, 0));
}

#[test]
fn counters_of_an_eradicated_volume_stay_with_its_initiator() {
    let counters = Counters::new(1, Vec::new());
    let key = ("iqn.a".to_owned(), Some(VolumeId(7)));
    let path = counters.path(&key.0, key.1);
    path.count(Class::Copy, true, 4096, Duration::from_micros(30));
    path.count_reserve(true);
    path.count_zeros(512);
    counters.count_copy(
        "iqn.a",
        &Copied { source: VolumeId(7), destination: key.1.unwrap(), bytes: 9 },
    );
    let session = path.clone();
    // A session still holds a reference.
    assert!(!counters.retire(&key, &path));
    drop(session);
    assert!(!counters.retire(&key, &Arc::default()));
    let before = counters.totals();
    assert!(counters.retire(&key, &path));
    assert_eq!(counters.totals(), before);
    let [rest] = &counters.paths()[..] else { panic!("one path is left") };
    assert_eq!((rest.initiator.as_str(), rest.volume), ("iqn.a", None));
    assert_eq!((rest.classes, rest.reserves, rest.zeros_bytes), (before, 1, 512));
    let copied = CopySnapshot { commands: 1, bytes: 9 };
    assert_eq!((rest.copied_from, rest.copied_to), (copied, copied));
    // It is retired once, and another volume of the initiator adds to the same sum.
    assert!(!counters.retire(&key, &path));
    let next = (key.0, Some(VolumeId(8)));
    let path = counters.path(&next.0, next.1);
    path.count(Class::Copy, true, 8192, Duration::ZERO);
    assert!(counters.retire(&next, &path));
    let copies = counters.paths()[0].classes[Class::Copy as usize];
    assert_eq!((copies.ok, copies.bytes, copies.largest_bytes), (2, 12_288, 8192));
}

#[test]
fn ports_are_counted_by_all_threads() {
    let counters = Counters::new(2, vec![9, 2]);
    for thread in [0, 1] {
        let port = counters.port_of(thread, 2).unwrap();
        port.count(Class::Write, true, 512, Duration::from_micros(7));
    }
    let write = |port: usize| counters.ports()[port][Class::Write as usize];
    assert_eq!((write(0).ok, write(1).ok, write(1).ok_latency_us), (0, 2, 14));
    assert!(counters.port_of(0, 0).is_none() && counters.port_of(0, 3).is_none());
}

#[test]
fn latencies_of_successful_commands_are_in_buckets() {
    let counters = Counters::new(2, vec![9, 2]);
    let at = |us| COMMAND_LATENCY_BOUNDS_US.iter().position(|bound| *bound == us).unwrap();
    let path = counters.path("iqn.a", Some(VolumeId(7)));
    for path in [&path, counters.port_of(0, 2).unwrap(), counters.port_of(1, 2).unwrap()] {
        for us in [100, 101, 150, 60_000_000] {
            path.count(Class::Read, true, 512, Duration::from_micros(us));
        }
        path.count(Class::Read, false, 512, Duration::from_micros(5));
    }
    assert_eq!(path.latencies(Class::Write), None);
    let reads = path.latencies(Class::Read).unwrap();
    assert_eq!((reads[at(100)], reads[at(150)], reads.last()), (1, 2, Some(&1)));
    assert_eq!(reads.iter().sum::<u64>(), 4);
    let port = |port| counters.port_latencies(Class::Read, port);
    assert_eq!((port(Some(0)), port(Some(1))[at(150)]), (CommandLatencies::default(), 4));
    assert_eq!(port(None), port(Some(1)));
    // Latencies of commands to a retired volume are kept.
    let key = ("iqn.a".to_owned(), Some(VolumeId(7)));
    assert!(counters.retire(&key, &path));
    let left = counters.path("iqn.a", None).latencies(Class::Read);
    assert_eq!(left, Some(reads));
}

#[test]
fn every_class_has_its_index() {
    for (index, class) in Class::ALL.into_iter().enumerate() {
        assert_eq!(class as usize, index);
    }
    assert_eq!(Class::of_opcode(0x93), Class::Zero);
    assert_eq!(Class::of_opcode(0x00), Class::Other);
}
