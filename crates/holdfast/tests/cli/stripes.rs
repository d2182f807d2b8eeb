//! A pool in stripes over six devices: any two fail, or are missing, and all is still there.

use std::sync::Arc;

use block::{SectorRange, VolumeReply, VolumeRequest};
use segments::{Device, DeviceSet};
use store::{OpenOptions, Store};
use sys::FileDisk;

use super::salvage::{names_of, noise, write};
use super::*;

const SIX: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
/// Blocks of 4 KiB that are written of the volume.
const BLOCKS: usize = 1500;
/// In each write.
const BLOCKS_AT_ONCE: usize = 100;

impl World {
    /// What the pool of an array that was stopped is on, as far as these of its places have it.
    fn stopped(&self, names: &[&str]) -> Arc<DeviceSet> {
        let device = |name: &&str| {
            let file = FileDisk::open(self.place(&format!("{name}/pool.data")).as_ref()).unwrap();
            Device::of_file(Arc::new(file), (*name).to_owned())
        };
        Arc::new(DeviceSet::open(names.iter().map(device).collect(), false).unwrap())
    }

    /// What was written is there, and all else is as its checksums say, with these places alone.
    /// Nothing is written, so that the others stay what they are.
    fn verify(&self, names: &[&str], data: &[u8], volumes: usize) {
        let store = Store::load(self.stopped(names), OpenOptions::default()).unwrap();
        let known = names_of(&store);
        let volume = known.iter().find(|(_, name)| name == "v").unwrap().0;
        for (at, expected) in data.chunks(BLOCKS_AT_ONCE * 4096).enumerate() {
            let first = (at * BLOCKS_AT_ONCE * 8) as u64;
            let range = SectorRange::new(first, expected.len() as u64 / 512);
            match store.execute(VolumeRequest::Read { volume, range }) {
                Ok(VolumeReply::Data(found)) => {
                    assert!(found.to_vec() == expected, "{names:?}: write {at}");
                }
                other => panic!("{names:?}: write {at}: {other:?}"),
            }
        }
        drop(store);
        let places = self.places(names);
        let words = ["inspect", "--data"].into_iter().chain(places.iter().map(String::as_str));
        let told = self.json(&words.collect::<Vec<_>>());
        assert_eq!(told["findings"], json!([]), "{names:?}: {told}");
        assert!(told["names"].as_object().unwrap().len() >= volumes, "{told}");
    }
}

#[test]
fn two_of_six_devices_fail_and_are_replaced_and_two_others_are_missing_then() {
    let world = World::new();
    let made = world.make_on(&SIX);
    assert_eq!((&made["capacity_bytes"], &made["may_fail"]), (&json!(1 << 30), &json!(2)));
    let array = world.serve_on(&SIX, &[]);
    world.text(&["volume", "create", "v", "--size", "1G"]);
    array.stop();
    let store = Store::open(world.stopped(&SIX), OpenOptions::default()).unwrap();
    let (names, data) = (names_of(&store), noise(BLOCKS, 1));
    for (at, bytes) in data.chunks(BLOCKS_AT_ONCE * 4096).enumerate() {
        write(&store, &names, "v", (at * BLOCKS_AT_ONCE) as u64, bytes);
    }
    drop(store);

    let array = world.serve_on(&SIX, &[]);
    world.text(&["device", "fail", "1"]);
    world.text(&["device", "fail", "4"]);
    world.text(&["volume", "create", "without-two", "--size", "1G"]);
    array.stop();
    world.verify(&["a", "c", "d", "f"], &data, 2);

    // From where it was stopped: the two that were taken out stay so.
    let array = world.serve_on(&SIX, &[]);
    for (number, name) in [("1", "g"), ("4", "h")] {
        let place = world.place(name);
        std::fs::create_dir(&place).unwrap();
        world.text(&["device", "replace", number, &place]);
    }
    world.text(&["volume", "create", "meanwhile", "--size", "1G"]);
    world.wait_for(&[0, 1, 2, 3, 4, 5].map(|number| (number, "in")));
    array.stop();
    for four in [["g", "h", "c", "d"], ["a", "g", "h", "f"]] {
        world.verify(&four, &data, 3);
    }

    // Two of those that were there all the time are missing at the start.
    let array = world.serve_on(&["c", "g", "d", "h"], &[]);
    assert_eq!(world.json(&["volume", "list"]).as_array().unwrap().len(), 3);
    array.stop();
    world.verify(&["c", "g", "d", "h"], &data, 3);
    let places = world.places(&["c", "g", "d"]);
    let words = ["serve", "--devices-missing", "--iscsi", "127.0.0.1:0"].into_iter();
    let words: Vec<&str> = words.chain(places.iter().map(String::as_str)).collect();
    let refused = world.output(&words);
    let error = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{error}");
    assert!(error.contains("it takes 4 of this pool"), "{error}");
    let out = world.place("salvaged");
    assert!(world.refusal(1, &["salvage", &places[0], "--to", &out]).contains("in stripes"));
}
