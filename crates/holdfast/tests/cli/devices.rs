//! A pool on several devices: created, served with all and with some, and changed while it is
//! served.

use super::*;

/// How long a device may take to catch up.
const CATCH_UP: Duration = Duration::from_secs(60);

impl World {
    pub(super) fn place(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().unwrap().to_owned()
    }

    pub(super) fn places(&self, names: &[&str]) -> Vec<String> {
        names.iter().map(|name| self.place(name)).collect()
    }

    /// Creates a pool in these directories.
    pub(super) fn make_on(&self, names: &[&str]) -> Value {
        let places = self.places(names);
        let words = ["pool", "create", "--capacity", "1G"].into_iter();
        self.json(&words.chain(places.iter().map(String::as_str)).collect::<Vec<_>>())
    }

    pub(super) fn serve_on(&self, names: &[&str], more: &[&str]) -> Array {
        let places = self.places(names);
        let mut command = self.command(&["serve", "--iscsi", "127.0.0.1:0", "--json"]);
        command.args(more).args(&places).stdout(Stdio::piped());
        Self::started(command)
    }

    /// Returns the numbers and the states of the devices.
    fn states(&self) -> Vec<(u64, String)> {
        let devices = self.json(&["device", "list"]);
        let devices = devices.as_array().unwrap().iter();
        devices
            .map(|device| {
                let state = device["state"].as_str().unwrap().to_owned();
                (device["number"].as_u64().unwrap(), state)
            })
            .collect()
    }

    pub(super) fn wait_for(&self, states: &[(u64, &str)]) {
        let start = Instant::now();
        let wanted: Vec<_> = states.iter().map(|(n, state)| (*n, (*state).to_owned())).collect();
        while self.states() != wanted {
            assert!(start.elapsed() < CATCH_UP, "{:?}, not {wanted:?}", self.states());
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

#[test]
fn a_pool_on_several_devices_is_created_completely_or_not_at_all() {
    let world = World::new();
    let made = world.make_on(&["a", "b", "c"]);
    assert_eq!(
        (&made["capacity_bytes"], &made["devices"][2]),
        (&json!(1 << 30), &json!(world.place("c/pool.data")))
    );
    assert_eq!(mode(&world.directory.path().join("c/pool.data")), 0o600);
    let create = |names: &[&str], code| {
        let places = world.places(names);
        let words = ["pool", "create", "--capacity", "1G"].into_iter();
        let words: Vec<&str> = words.chain(places.iter().map(String::as_str)).collect();
        world.refusal(code, &words)
    };
    // Directories that were created for the other devices are removed.
    assert!(create(&["d", "e", "b"], 1).contains("there is a pool"));
    assert!(!world.directory.path().join("d").exists());
    assert!(create(&["d", "d"], 2).contains("given twice"));
    let many: Vec<String> = (0..49).map(|number| format!("m{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(create(&many, 2).contains("1 to 48 devices"));
    assert!(create(&many[..7], 1).contains("at least"), "five parts of 1 GiB are too small");
    assert!(!world.directory.path().join("m0").exists());
    let one = world.place("one");
    let trial = ["pool", "create", &one, "--devices", "3", "--capacity", "1G"];
    assert_eq!(world.json(&trial)["devices"][1], json!(world.place("one/pool.2.data")));
    world.refusal(2, &["pool", "create", &one, &world.place("d"), "--devices", "2"]);
    // A directory stands for all of its files.
    assert!(
        world.text(&["inspect", &one]).contains("nothing is wrong") || {
            world.json(&["inspect", &one])["findings"].as_array().unwrap().is_empty()
        }
    );
    let array = world.serve_on(&["one"], &[]);
    assert_eq!(world.states().len(), 3);
    array.stop();
}

#[test]
fn a_device_fails_and_is_replaced_while_hosts_continue() {
    let world = World::new();
    world.make_on(&["a", "b", "c"]);
    let array = world.serve_on(&["c", "a", "b"], &[]);
    world.wait_for(&[(0, "in"), (1, "in"), (2, "in")]);
    world.text(&["volume", "create", "before", "--size", "1G"]);
    assert!(world.text(&["device", "fail", "1"]).contains("device return 1"));
    assert_eq!(world.states()[1], (1, "out".into()));
    assert!(world.text(&["device", "list"]).contains("an administrator took it out"));
    world.text(&["volume", "create", "meanwhile", "--size", "1G"]);
    assert!(world.refusal(1, &["device", "fail", "1"]).contains("Device 1 is out"));
    assert!(world.refusal(1, &["device", "fail", "7"]).contains("holdfast device list"));
    // The other verbs find the array by each of its places.
    let place = world.place("b");
    assert_eq!(world.json(&["volume", "list", "--pool", &place]).as_array().unwrap().len(), 2);
    let new = world.place("d");
    assert!(world.refusal(1, &["device", "add", &new]).contains("mkdir"));
    std::fs::create_dir(&new).unwrap();
    assert!(world.refusal(1, &["device", "add", &new]).contains("3 devices"));
    assert!(!Path::new(&new).join("pool.data").exists(), "what was made is gone");
    assert!(world.refusal(1, &["device", "replace", "0", &new]).contains("take it out first"));
    assert!(world.refusal(1, &["device", "add", &world.place("a")]).contains("already exists"));
    assert!(world.text(&["device", "replace", "1", &new]).contains("Device 1 is out"));
    assert_eq!(world.states()[2].0, 3);
    assert!(world.text(&["device", "remove", "2"]).contains("removed from the pool"));
    assert!(world.text(&["device", "identify", "3"]).contains("No locate light"));
    let drives = world.json(&["api", "GET", "/api/2.26/drives?sort=name"]);
    assert_eq!(drives["items"][0]["name"], "CH0.BAY0");
    let alerts = || world.json(&["alert", "list"]).as_array().unwrap().len();
    let start = Instant::now();
    while alerts() == 0 && !world.states().iter().all(|(_, state)| state == "in") {
        assert!(start.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(200));
    }
    array.stop();
}

#[test]
fn a_returning_device_catches_up() {
    let world = World::new();
    world.make_on(&["a", "b"]);
    let array = world.serve_on(&["a", "b"], &[]);
    world.text(&["device", "fail", "0"]);
    assert!(world.refusal(1, &["device", "fail", "1"]).contains("add another one first"));
    world.text(&["volume", "create", "v", "--size", "1G"]);
    assert!(world.text(&["device", "return", "0"]).contains("catching up"));
    world.wait_for(&[(0, "in"), (1, "in")]);
    std::fs::create_dir(world.place("c")).unwrap();
    world.text(&["device", "add", &world.place("c")]);
    world.wait_for(&[(0, "in"), (1, "in"), (2, "in")]);
    world.text(&["device", "remove", "1"]);
    array.stop();
    // Everything is on the device that was added last.
    let array = world.serve_on(&["a", "c"], &[]);
    world.text(&["device", "remove", "0"]);
    assert_eq!(world.json(&["volume", "list"]).as_array().unwrap().len(), 1);
    array.stop();
    let array = world.serve_on(&["c"], &[]);
    assert_eq!(world.json(&["volume", "list"]).as_array().unwrap().len(), 1);
    array.stop();
}

#[test]
fn some_devices_may_be_missing_at_the_start_and_more_only_on_request() {
    let world = World::new();
    world.make_on(&["a", "b", "c"]);
    let array = world.serve_on(&["a", "b", "c"], &[]);
    world.text(&["volume", "create", "v", "--size", "1G"]);
    array.stop();
    let hidden = |name: &str| world.place(&format!("{name}-"));
    let hide = |name: &str| std::fs::rename(world.place(name), hidden(name)).unwrap();
    hide("a");
    let array = world.serve_on(&["a", "b", "c"], &[]);
    world.wait_for(&[(0, "missing"), (1, "in"), (2, "in")]);
    world.text(&["volume", "create", "w", "--size", "1G"]);
    assert!(world.refusal(1, &["device", "return", "0"]).contains("add it again by its path"));
    array.stop();
    hide("c");
    let places = world.places(&["a", "b", "c"]);
    let words = ["serve", "--iscsi", "127.0.0.1:0"].into_iter();
    let words: Vec<&str> = words.chain(places.iter().map(String::as_str)).collect();
    let output = world.output(&words);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("--devices-missing"), "{error}");
    assert!(world.text(&["inspect", &places[1]]).contains("segment"), "to look needs no option");
    let array = world.serve_on(&["b"], &["--devices-missing"]);
    assert_eq!(world.json(&["volume", "list"]).as_array().unwrap().len(), 2);
    // It is the same device as before, whatever its path.
    world.text(&["device", "add", &hidden("a")]);
    assert_eq!(world.states()[0].0, 0);
    assert_ne!(world.states()[0].1, "missing");
    array.stop();
}

/// Like a device that returns wrong bytes for a while: it is present, and shows nothing of the
/// pool.
#[test]
fn a_device_with_an_unreadable_label_is_added_once_it_is_readable() {
    use std::os::unix::fs::FileExt;
    let world = World::new();
    world.make_on(&["a", "b", "c"]);
    let path = world.place("c") + "/pool.data";
    let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
    // The positions of labels, by docs/on-disk-format.md.
    let labels = [2 << 20, 10 << 20].map(|offset| {
        let mut label = vec![0; 4096];
        file.read_exact_at(&mut label, offset).unwrap();
        file.write_all_at(&[0xEE; 4096], offset).unwrap();
        (offset, label)
    });
    file.sync_all().unwrap();
    let array = world.serve_on(&["a", "b", "c"], &[]);
    world.wait_for(&[(0, "in"), (1, "in"), (2, "missing")]);
    for (offset, label) in labels {
        file.write_all_at(&label, offset).unwrap();
    }
    world.text(&["device", "add", &world.place("c")]);
    world.wait_for(&[(0, "in"), (1, "in"), (2, "in")]);
    array.stop();
}

#[test]
fn devices_of_different_pools_are_no_pool() {
    let world = World::new();
    world.make_on(&["a", "b"]);
    world.make_on(&["c", "d"]);
    world.make_on(&["e"]);
    world.make_on(&["f"]);
    let refused = |names: &[&str]| {
        let places = world.places(names);
        let words = ["serve", "--iscsi", "127.0.0.1:0"].into_iter();
        world.refusal(1, &words.chain(places.iter().map(String::as_str)).collect::<Vec<_>>())
    };
    assert!(refused(&["a", "c"]).contains("two different pools"));
    assert!(refused(&["e", "f"]).contains("give it alone"));
    let salvaged = world.place("salvaged");
    let (a, b) = (world.place("a"), world.place("b"));
    let reported = world.json(&["salvage", &a, &b, "--to", &salvaged]);
    assert_eq!(reported["whole"], true, "{reported}");
}

/// Six devices in stripes: any two may fail, and are replaced.
#[test]
fn a_striped_pool_continues_without_two_of_its_devices() {
    let world = World::new();
    let names = ["a", "b", "c", "d", "e", "f"];
    let made = world.make_on(&names);
    assert_eq!(made["capacity_bytes"], json!(1 << 30));
    let file = world.directory.path().join("f/pool.data");
    assert_eq!(std::fs::metadata(file).unwrap().len(), 256 << 20, "four have the data");
    let array = world.serve_on(&names, &[]);
    world.text(&["volume", "create", "before", "--size", "1G"]);
    for number in ["1", "4"] {
        world.text(&["device", "fail", number]);
        world.text(&["volume", "create", &format!("without-{number}"), "--size", "1G"]);
    }
    let refused = world.refusal(1, &["device", "fail", "0"]);
    assert!(refused.contains("none can be spared"), "{refused}");
    std::fs::create_dir(world.place("g")).unwrap();
    std::fs::create_dir(world.place("h")).unwrap();
    let refused = world.refusal(1, &["device", "remove", "2"]);
    assert!(refused.contains("for 0 of the pool's 15 segments: add one first"), "{refused}");
    let reported = world.text(&["device", "replace", "1", &world.place("g")]);
    assert!(reported.contains("catching up") && !reported.contains("is out"), "{reported}");
    world.text(&["device", "replace", "4", &world.place("h")]);
    world.wait_for(&[0, 1, 2, 3, 4, 5].map(|number| (number, "in")));
    array.stop();
    let places = world.places(&["a", "g", "c", "d", "h", "f"]);
    let inspect = |places: &[&String]| {
        let words = ["inspect", "--data"].into_iter();
        world.json(&words.chain(places.iter().map(|place| place.as_str())).collect::<Vec<_>>())
    };
    // Any four of them suffice, and no three.
    for left in [[0, 1, 2, 3], [1, 4, 5, 2], [0, 2, 3, 5]] {
        let report = inspect(&left.map(|at| &places[at]));
        assert_eq!(report["findings"], json!([]));
        assert_eq!(report["names"].as_object().unwrap().len(), 3);
    }
    let three: Vec<&str> = places[..3].iter().map(String::as_str).collect();
    let words: Vec<&str> = ["inspect"].into_iter().chain(three).collect();
    let refused = world.output(&words);
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(1) && error.contains("it takes 4"), "{error}");
    // Two are missing at the start, and the array serves.
    let array = world.serve_on(&["a", "c", "h", "f"], &[]);
    world.wait_for(&[(0, "in"), (1, "missing"), (2, "in"), (3, "missing"), (4, "in"), (5, "in")]);
    assert_eq!(world.json(&["volume", "list"]).as_array().unwrap().len(), 3);
    array.stop();
}
