//! What is counted, for whom.

use super::*;

#[test]
fn success_and_failure_are_counted_apart_for_each_path() {
    let counters = Counters::new(2, 1);
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
    [0x16, 0x28, 0x56, 0x17].into_iter().for_each(|opcode| path.count_reserve(opcode));
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
fn a_copy_is_counted_where_it_read_and_where_it_wrote() {
    let counters = Counters::new(1, 0);
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
fn ports_are_counted_by_all_threads() {
    let counters = Counters::new(2, 2);
    for thread in [0, 1] {
        let port = counters.port_of(thread, 2).unwrap();
        port.count(Class::Write, true, 512, Duration::from_micros(7));
    }
    let write = |port: usize| counters.ports()[port][Class::Write as usize];
    assert_eq!((write(0).ok, write(1).ok, write(1).ok_latency_us), (0, 2, 14));
    assert!(counters.port_of(0, 0).is_none() && counters.port_of(0, 3).is_none());
}

#[test]
fn every_class_has_its_place() {
    for (index, class) in Class::ALL.into_iter().enumerate() {
        assert_eq!(class as usize, index);
    }
    assert_eq!(Class::of_opcode(0x93), Class::Zero);
    assert_eq!(Class::of_opcode(0x00), Class::Other);
}
