//! A pool in stripes over six devices: any two fail, or are missing, and all data can still be
//! read.

use std::sync::Arc;

use block::{SectorRange, VolumeReply, VolumeRequest};
use segments::{Device, DeviceSet};
use store::{OpenOptions, Store};
use sys::FileDisk;

use super::salvage::{names_of, noise, write};
use super::*;

const SIX: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
/// The number of blocks of 4 KiB that are written to the volume.
const BLOCKS: usize = 1500;
/// The number of blocks in each write.
const BLOCKS_AT_ONCE: usize = 100;

impl World {
    /// Opens the devices of the pool of a stopped array at these places.
    fn stopped(&self, names: &[&str]) -> Arc<DeviceSet> {
        let device = |name: &&str| {
            let file = FileDisk::open(self.place(&format!("{name}/pool.data")).as_ref()).unwrap();
            Device::of_file(Arc::new(file), (*name).to_owned())
        };
        Arc::new(DeviceSet::open(names.iter().map(device).collect(), false).unwrap())
    }

    /// Checks that the written data can be read, and that all checksums match, with only these
    /// places. Nothing is written, so that the other devices stay current.
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
        let reported = self.json(&words.collect::<Vec<_>>());
        assert_eq!(reported["findings"], json!([]), "{names:?}: {reported}");
        assert!(reported["names"].as_object().unwrap().len() >= volumes, "{reported}");
    }
}

impl World {
    /// Creates a volume, and writes to it while the array is stopped; returns the written data.
    fn fill(&self, names: &[&str]) -> Vec<u8> {
        let array = self.serve_on(names, &[]);
        self.text(&["volume", "create", "v", "--size", "1G"]);
        array.stop();
        let store = Store::open(self.stopped(names), OpenOptions::default()).unwrap();
        let (known, data) = (names_of(&store), noise(BLOCKS, 1));
        for (at, bytes) in data.chunks(BLOCKS_AT_ONCE * 4096).enumerate() {
            write(&store, &known, "v", (at * BLOCKS_AT_ONCE) as u64, bytes);
        }
        data
    }

    /// Waits until these are the devices, all are in, and none is being emptied.
    fn wait_until_settled(&self, numbers: &[u64]) {
        loop {
            let found = self.json(&["device", "list"]);
            let found = found.as_array().unwrap();
            let is_settled = |device: &&Value| {
                device["state"] == "in" && device["parts"]["is_emptied"] == json!(false)
            };
            let settled = found.iter().filter(is_settled).filter_map(|it| it["number"].as_u64());
            if found.len() == numbers.len() && settled.collect::<Vec<_>>() == numbers {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

/// One of five is removed, because four of them have room for its content; another one is added,
/// and the pool grows onto it.
#[test]
fn a_device_is_removed_and_another_one_added_and_the_pool_grows() {
    let world = World::new();
    let five = &SIX[..5];
    let places = world.places(five);
    let words = ["pool", "create", "--capacity", "1G", "--spares", "1"].into_iter();
    let made = world.json(&words.chain(places.iter().map(String::as_str)).collect::<Vec<_>>());
    assert_eq!((&made["capacity_bytes"], &made["spares"]), (&json!(1 << 30), &json!(1)));
    let data = world.fill(five);

    let array = world.serve_on(five, &[]);
    let reported = world.text(&["device", "remove", "1"]);
    assert!(reported.contains("Device 1 is being emptied"), "{reported}");
    world.wait_until_settled(&[0, 2, 3, 4]);
    // Now each of the others is required.
    let refused = world.refusal(1, &["device", "remove", "2"]);
    assert!(refused.contains("add one first"), "{refused}");
    array.stop();
    world.verify(&["a", "c", "d", "e"], &data, 1);
    world.verify(&["c", "d", "e"], &data, 1);

    let four = ["a", "c", "d", "e"];
    let array = world.serve_on(&four, &[]);
    for (name, number) in [("g", 1), ("h", 5)] {
        let place = world.place(name);
        std::fs::create_dir(&place).unwrap();
        let added = world.json(&["device", "add", &place]);
        assert_eq!(added["number"], json!(number), "{added}");
    }
    world.wait_until_settled(&[0, 1, 2, 3, 4, 5]);
    // Until the share of the new devices is moved to them, there is no room to grow.
    let grown = || world.output(&["pool", "grow", "--capacity", "1100M"]).status.success();
    while !grown() {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    array.stop();
    world.verify(&["a", "c", "d", "e", "g", "h"], &data, 1);
    world.verify(&["c", "d", "g", "h"], &data, 1);
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

    // It continues from where it was stopped: the two devices that were taken out stay out.
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

    // Two of the original devices are missing at the start.
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
}

/// With two devices missing, everything is salvaged; with three, what is left, and the losses are
/// reported.
#[test]
fn a_pool_in_stripes_is_salvaged_from_the_devices_that_are_left() {
    let world = World::new();
    world.make_on(&SIX);
    let data = world.fill(&SIX);
    let lacking = |bytes: &[u8]| bytes.iter().zip(&data).filter(|(a, b)| a != b).count();
    for missing in [2, 3] {
        let (places, to) = (world.places(&SIX[missing..]), world.place(&format!("to-{missing}")));
        let mut words = vec!["salvage", "--json", "--to", &to];
        words.extend(places.iter().map(String::as_str));
        let mut done = world.output(&words);
        if missing == 3 && done.stdout.is_empty() {
            words.push("--cut-log");
            done = world.output(&words);
        }
        let reported: Value = serde_json::from_slice(&done.stdout).unwrap();
        assert_eq!(done.status.code(), Some(i32::from(missing > 2)), "{reported}");
        assert_eq!(reported["whole"], missing == 2, "{reported}");
        let salvaged = std::fs::read(format!("{to}/v.raw")).unwrap();
        let wrong = lacking(&salvaged[..data.len()]);
        assert_eq!(wrong > 0, missing > 2, "{wrong} bytes of {}", data.len());
        let lost = reported["losses"].to_string();
        assert_eq!(lost.contains("4 are needed for the whole pool"), missing > 2, "{lost}");
    }
}
