//! `salvage`: what it writes, reports, and refuses.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::sync::Arc;

use array::salvaged_objects;
use block::{DataOut, SectorRange, VolumeId, VolumeRequest};
use store::{OpenOptions, Store};
use sys::FileDisk;

use super::*;

const BLOCK: usize = 4096;

/// Returns incompressible blocks, no two of which are equal.
pub(super) fn noise(blocks: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let words = (0..blocks * BLOCK / 8).flat_map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.collect()
}

/// Opens the pool of a stopped array as the array does; returns the store and the names.
fn open(world: &World) -> (Store, Vec<(VolumeId, String)>) {
    let disk = Arc::new(FileDisk::open(&world.pool().join("pool.data")).unwrap());
    let store = Store::open(disk, OpenOptions::default()).unwrap();
    let names = names_of(&store);
    (store, names)
}

/// Returns the volumes and snapshots, with their names.
pub(super) fn names_of(store: &Store) -> Vec<(VolumeId, String)> {
    let config = store.config();
    let records = config.iter().map(|(key, value)| (&key[..], &value[..]));
    let names = salvaged_objects(records, &store.pool_status().pool_id).objects;
    names.into_iter().map(|(id, object)| (id, object.name)).collect()
}

pub(super) fn write(
    store: &Store,
    names: &[(VolumeId, String)],
    name: &str,
    block: u64,
    bytes: &[u8],
) {
    let volume = names.iter().find(|(_, found)| found == name).unwrap().0;
    let range = SectorRange::new(block * 8, bytes.len() as u64 / 512);
    let data = DataOut::from_bytes(bytes, 0);
    store.execute(VolumeRequest::Write { volume, range, data, fua: false }).unwrap();
}

/// Makes a stopped pool with two volumes and a snapshot, all of it in a checkpoint.
fn make(world: &World) -> Vec<u8> {
    world.make_pool();
    let array = world.serve(&[]);
    world.text(&["volume", "create", "db1", "--size", "1G"]);
    world.text(&["volume", "create", "thin", "--size", "8T"]);
    array.stop();
    let data = noise(64, 1);
    let (store, names) = open(world);
    write(&store, &names, "db1", 100, &data);
    write(&store, &names, "thin", 1 << 30, &data[..BLOCK]);
    store.checkpoint().unwrap();
    drop(store);
    let array = world.serve(&[]);
    world.text(&["snapshot", "create", "db1", "--suffix", "before"]);
    array.stop();
    let (store, names) = open(world);
    write(&store, &names, "db1", 110, &noise(1, 2));
    store.checkpoint().unwrap();
    data
}

fn salvage(world: &World, to: &str, more: &[&str]) -> (i32, String, String) {
    let pool = world.pool();
    let to = world.directory.path().join(to);
    let words = ["salvage", pool.to_str().unwrap(), "--to", to.to_str().unwrap()];
    let words: Vec<&str> = words.iter().chain(more).copied().collect();
    let output = world.output(&words);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn report(world: &World, to: &str) -> Value {
    let bytes = fs::read(world.directory.path().join(to).join("salvage.json")).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

/// Flips a bit of the pool in a byte.
fn damage(world: &World, at: u64) {
    let file =
        fs::File::options().read(true).write(true).open(world.pool().join("pool.data")).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
}

/// Returns the offsets and contents of the blocks of the pool that `is_it` accepts.
fn find(world: &World, is_it: impl Fn(&[u8]) -> bool) -> Vec<(u64, Vec<u8>)> {
    let bytes = fs::read(world.pool().join("pool.data")).unwrap();
    let blocks = (0..).step_by(BLOCK).zip(bytes.chunks_exact(BLOCK));
    blocks.filter(|(_, block)| is_it(block)).map(|(at, block)| (at, block.to_vec())).collect()
}

#[test]
fn a_sound_pool_is_salvaged_completely() {
    let world = World::new();
    let data = make(&world);
    let before = fs::read(world.pool().join("pool.data")).unwrap();
    let (code, reported, error) = salvage(&world, "out", &[]);
    assert_eq!((code, &error[..]), (0, ""), "{reported}");
    assert!(
        reported.contains("Everything was intact.") && reported.contains("db1.before"),
        "{reported}"
    );
    let out = world.directory.path().join("out");
    let mut expected = vec![0; 1 << 20];
    expected[100 * BLOCK..164 * BLOCK].copy_from_slice(&data);
    let snapshot = fs::File::open(out.join("db1.before.raw")).unwrap();
    let read = |file: &fs::File, at: u64| {
        let mut held = vec![0; 1 << 20];
        file.read_exact_at(&mut held, at).unwrap();
        held
    };
    assert!(read(&snapshot, 0) == expected);
    expected[110 * BLOCK..111 * BLOCK].copy_from_slice(&noise(1, 2));
    let db1 = fs::File::open(out.join("db1.raw")).unwrap();
    assert!(read(&db1, 0) == expected);
    let thin = fs::File::open(out.join("thin.raw")).unwrap();
    assert!(read(&thin, (1 << 30) * BLOCK as u64)[..BLOCK] == data[..BLOCK]);
    let kept = thin.metadata().unwrap();
    assert_eq!((db1.metadata().unwrap().len(), kept.len()), (1 << 30, 8 << 40));
    assert!(kept.blocks() * 512 <= 1 << 20, "{} blocks", kept.blocks());
    assert_eq!(mode(&out.join("db1.raw")), 0o600);
    assert_eq!(fs::read_dir(&out).unwrap().count(), 4, "something besides images and the report");
    let report = report(&world, "out");
    assert_eq!((&report["whole"], &report["log_cut"]), (&json!(true), &json!(null)));
    // The pool is unchanged, and the array continues.
    assert!(before == fs::read(world.pool().join("pool.data")).unwrap());
    world.serve(&[]).stop();
}

#[test]
fn lost_ranges_are_holes_and_are_listed() {
    let world = World::new();
    let data = make(&world);
    let found = find(&world, |block| *block == data[5 * BLOCK..6 * BLOCK]);
    assert_eq!(found.len(), 1);
    damage(&world, found[0].0 + 77);
    let (code, reported, _) = salvage(&world, "out", &[]);
    assert_eq!(code, 1, "{reported}");
    assert!(reported.contains("Data is lost"), "{reported}");
    let out = world.directory.path().join("out");
    for name in ["db1", "db1.before"] {
        let list = fs::read_to_string(out.join(format!("{name}.lost"))).unwrap();
        assert_eq!(list, format!("# first byte, bytes, why\n{} 4096 data\n", 105 * BLOCK));
        let image = fs::File::open(out.join(format!("{name}.raw"))).unwrap();
        let mut held = vec![0; 2 * BLOCK];
        image.read_exact_at(&mut held, 105 * BLOCK as u64).unwrap();
        assert!(held[..BLOCK] == [0; BLOCK] && held[BLOCK..] == data[6 * BLOCK..7 * BLOCK]);
    }
    let report = report(&world, "out");
    let lost: Vec<u64> = report["objects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|object| object["lost_bytes"].as_u64().unwrap())
        .collect();
    assert_eq!((lost.iter().sum::<u64>(), lost.len()), (8192, 3));
    assert!(!out.join("thin.lost").exists());
}

#[test]
fn a_log_is_cut_only_on_request() {
    let world = World::new();
    make(&world);
    let (store, names) = open(&world);
    for at in 0..4 {
        write(&store, &names, "db1", 200 + at, &noise(1, 10 + at));
    }
    drop(store);
    let lsn = |block: &[u8]| u64::from_le_bytes(block[8..16].try_into().unwrap());
    let records = find(&world, |block| block.starts_with(b"HFLR"));
    let mut newest: Vec<(u64, u64)> = records.iter().map(|(at, block)| (lsn(block), *at)).collect();
    newest.sort_unstable();
    // The next one has a copy of its header and entries.
    let [.., (damaged, at), (_, next), _] = newest[..] else { panic!("{newest:?}") };
    damage(&world, at + 8);
    damage(&world, next + 8);
    // The array reports that the pool is damaged, and does not continue without acknowledged
    // writes.
    let pool = world.pool();
    let serve = ["serve", "--pool", pool.to_str().unwrap(), "--iscsi", "127.0.0.1:0"];
    assert!(world.refusal(1, &serve).contains("damaged"));
    let (code, reported, error) = salvage(&world, "out", &[]);
    assert_eq!((code, &reported[..], error.lines().count()), (1, "", 1), "{error}");
    assert!(
        error.contains("--cut-log") && error.contains(&format!("record {damaged} ")),
        "{error}"
    );
    assert!(!world.directory.path().join("out").exists());
    let (code, reported, _) = salvage(&world, "out", &["--cut-log"]);
    assert_eq!(code, 1, "{reported}");
    let image = fs::File::open(world.directory.path().join("out/db1.raw")).unwrap();
    let mut held = vec![0; 4 * BLOCK];
    image.read_exact_at(&mut held, 200 * BLOCK as u64).unwrap();
    for (at, block) in (0..4).zip(held.chunks_exact(BLOCK)) {
        assert!(if at < 1 { block == noise(1, 10 + at) } else { block == [0; BLOCK] }, "{at}");
    }
    let report = report(&world, "out");
    assert_eq!((&report["whole"], &report["log_cut"]["lsn"]), (&json!(false), &json!(damaged)));
}

#[test]
fn salvage_refuses_places_that_it_could_damage() {
    let world = World::new();
    make(&world);
    let pool = world.pool();
    let inside = pool.join("a/b");
    for to in [&pool, &inside] {
        let words = ["salvage", pool.to_str().unwrap(), "--to", to.to_str().unwrap()];
        assert!(world.refusal(1, &words).contains("it is on the pool"));
    }
    let full = world.directory.path().join("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("mine"), "x").unwrap();
    let words = ["salvage", pool.to_str().unwrap(), "--to", full.to_str().unwrap()];
    assert!(world.refusal(1, &words).contains("not empty"));
    world.refusal(2, &["salvage", pool.to_str().unwrap()]);
    let none = ["salvage", "nowhere", "--to", full.to_str().unwrap()];
    assert!(world.refusal(1, &none).contains("there is no pool"));
    let asked = ["salvage", pool.to_str().unwrap(), "--to", "x", "--superblock", "2"];
    world.refusal(2, &asked);
    let array = world.serve(&[]);
    let (code, _, error) = salvage(&world, "out", &[]);
    assert!(code == 1 && error.contains("in use"), "{error}");
    array.stop();
}

/// The pool's file can't be opened for writing. Root could open it, so `salvage` runs as another
/// user if the test is root.
#[test]
fn a_pool_that_is_read_only_is_salvaged() {
    let world = World::new();
    let data = make(&world);
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let top = world.directory.path();
    mode(top, 0o755);
    mode(&world.pool(), 0o755);
    mode(&world.pool().join("pool.data"), 0o444);
    let above = top.join("for-all");
    fs::create_dir(&above).unwrap();
    mode(&above, 0o777);
    let (pool, to) = (world.pool(), above.join("out"));
    let run = |words: &[&str]| {
        let mut command = world.command(words);
        if fs::metadata(top).unwrap().uid() == 0 {
            command.uid(65_534).gid(65_534);
        }
        command.output().unwrap()
    };
    let output = run(&["salvage", pool.to_str().unwrap(), "--to", to.to_str().unwrap()]);
    let reported = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{reported}");
    mode(&to, 0o755);
    let image = fs::File::open(to.join("db1.raw")).unwrap();
    let mut held = vec![0; BLOCK];
    image.read_exact_at(&mut held, 105 * BLOCK as u64).unwrap();
    assert!(held == data[5 * BLOCK..6 * BLOCK]);
    assert!(run(&["inspect", pool.to_str().unwrap()]).status.success());
}
