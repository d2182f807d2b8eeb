//! Reads that fail at first, and succeed when they are tried again.

use std::sync::Arc;

use block::{DataOut, SectorCount, SectorRange, VolumeReply, VolumeRequest};
use simulator::disk::{Faults, SimDisk};
use store::{Change, OpenOptions, Store, VolumeChange};

/// Every read may fail a few times, without consequences: neither for data, nor for the metadata
/// that an opening, a request, a checkpoint, reclaim or scrubbing needs.
#[test]
fn a_read_that_succeeds_on_retry_is_not_an_error() {
    for seed in 0..20 {
        let disk = Arc::new(SimDisk::new(256 << 20, seed));
        Store::create(&*disk, &[7; 64]).unwrap();
        disk.set_faults(Faults { transient_reads_per_mille: 300, ..Faults::default() });
        let options = OpenOptions { memory_bytes: 2 << 20, ..OpenOptions::default() };
        let store = Store::open(disk.clone(), options.clone()).unwrap();
        let volume = store.allocate_volume_id();
        let volumes = vec![VolumeChange::Create { id: volume, size: SectorCount(300 * 2048) }];
        store.change(Change { volumes, ..Change::default() }).unwrap();
        let range = |mib: u64| SectorRange::new(mib * 2048 + 3, 10);
        let bytes = |mib: u64| vec![(mib % 255) as u8 + 1; 5120];
        for mib in 0..300 {
            let data = DataOut::from_bytes(&bytes(mib), range(mib).start.offset_in_block_bytes());
            let write = VolumeRequest::Write { volume, range: range(mib), data, fua: false };
            store.execute(write).unwrap();
            if mib % 100 == 50 {
                store.checkpoint().unwrap();
                while store.reclaim_segment().unwrap() {}
            }
        }
        drop(store);
        let store = Store::open(disk, options).unwrap();
        for mib in 0..300 {
            match store.execute(VolumeRequest::Read { volume, range: range(mib) }) {
                Ok(VolumeReply::Data(data)) => assert!(data.to_vec() == bytes(mib), "MiB {mib}"),
                other => panic!("seed {seed}, MiB {mib}: {other:?}"),
            }
        }
        store.scrub_start(1);
        while store.scrub_step(10_000, 6).unwrap() != store::ScrubStep::Complete {}
        assert_eq!(store.damage().findings, []);
    }
}
