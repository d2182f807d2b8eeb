//! The first start in an empty directory, and the steps to a volume that a host sees.

use super::*;

#[test]
fn an_empty_directory_becomes_an_array_once() {
    let world = World::new();
    let pool = world.pool();
    std::fs::create_dir(&pool).unwrap();
    let array = world.serve(&["--capacity", "1G"]);
    let first = &array.reported["first_start"];
    assert_eq!(first["capacity_bytes"], 1 << 30);
    assert_eq!(mode(&pool.join("pool.data")), 0o600);
    assert_eq!(first["commands"].as_array().unwrap().len(), 3);
    let token = first["token"].as_str().unwrap().to_owned();
    // The token is that of an array admin, also on another machine.
    let api = array.reported["api"].as_str().unwrap();
    let fingerprint = array.reported["fingerprint"].as_str().unwrap();
    let far = ["user", "list", "--json", "--api", api, "--fingerprint", fingerprint];
    let output = world.command(&far).env("HOLDFAST_TOKEN", &token).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tokens = world.json(&["token", "list"]);
    assert_eq!((tokens.as_array().unwrap().len(), &tokens[0]["token"]), (1, &Value::Null));
    array.kill();
    // The token is stored nowhere, not even in the pool.
    for entry in std::fs::read_dir(&pool).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().is_some_and(|name| name != "pool.data") {
            let text = std::fs::read(&path).unwrap();
            assert!(!String::from_utf8_lossy(&text).contains(&token), "{}", path.display());
        }
    }
    let array = world.serve(&["--capacity", "2G"]);
    assert_eq!(array.reported["first_start"], Value::Null);
    assert_eq!(std::fs::metadata(pool.join("pool.data")).unwrap().len(), 1 << 30);
    assert_eq!(world.json(&["token", "list"]).as_array().unwrap().len(), 1);
    array.stop();
}

#[test]
fn a_directory_with_other_files_is_left_alone() {
    let world = World::new();
    let directory = world.directory.path().join("photos");
    let words = ["serve", directory.to_str().unwrap(), "--iscsi", "127.0.0.1:0"];
    assert!(world.refusal(1, &words).contains("mkdir"));
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("cat.jpg"), "cat").unwrap();
    assert!(world.refusal(1, &words).contains("cat.jpg"));
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1);
    // A taken port is reported before anything is created.
    std::fs::remove_file(directory.join("cat.jpg")).unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let busy = ["serve", directory.to_str().unwrap(), "--iscsi", &address];
    assert!(world.refusal(4, &busy).contains("--iscsi"));
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
    let both = ["serve", "x", "--pool", "y"];
    world.refusal(2, &both);
}

#[test]
fn one_verb_provisions_a_host() {
    let world = World::new();
    std::fs::create_dir(world.pool()).unwrap();
    let array = world.serve(&["--capacity", "1G"]);
    let iqn = "iqn.2026-11.com.example:web";
    let make = ["provision", "data", "--size", "10G", "--host", "web", "--iqn", iqn];
    let made = world.json(&make);
    assert_eq!((&made["lun"], &made["host"]["name"]), (&json!(1), &json!("web")));
    let naa = made["volume"]["naa"].as_str().unwrap().trim_start_matches("naa.");
    assert_eq!(made["device"], format!("/dev/disk/by-id/wwn-0x{naa}"));
    let portal = array.reported["portals"][0].as_str().unwrap();
    assert!(made["commands"][0].as_str().unwrap().contains(portal), "{made}");
    // The host exists from now on, by its name and by its iSCSI name.
    let again = ["provision", "more", "--size", "1G", "--host", "web"];
    assert!(world.text(&again).contains("as LUN 2."));
    let again = ["provision", "third", "--size", "1G", "--iqn", iqn, "--lun", "7"];
    assert_eq!(world.json(&again)["host"]["name"], "web");
    let other = ["provision", "x", "--size", "1G", "--host", "web", "--iqn", "iqn.x.y:z"];
    assert!(world.refusal(1, &other).contains("--add-iqn"));
    let nobody = ["provision", "x", "--size", "1G", "--host", "nobody"];
    assert!(world.refusal(1, &nobody).contains("--iqn"));
    // Unfinished steps are undone.
    let taken = ["provision", "x", "--size", "1G", "--iqn", iqn, "--lun", "7"];
    world.refusal(1, &taken);
    let exists =
        ["provision", "data", "--size", "1G", "--host", "new", "--iqn", "iqn.2026-11.a.b:new"];
    assert_eq!(
        world.refusal(1, &exists),
        "holdfast: Volume already exists: data. Choose another name.\n"
    );
    assert_eq!(world.json(&["volume", "list"]).as_array().unwrap().len(), 3);
    assert_eq!(world.json(&["volume", "list", "--destroyed"]), json!([]));
    assert_eq!(world.json(&["host", "list"]).as_array().unwrap().len(), 1);
    array.stop();
}

#[test]
fn a_waiting_supervisor_is_notified_when_hosts_can_connect() {
    let world = World::new();
    world.make_pool();
    let path = world.directory.path().join("notify");
    let socket = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let pool = world.pool();
    let mut command = world.command(&["serve", pool.to_str().unwrap(), "--iscsi", "127.0.0.1:0"]);
    let child = command.env("NOTIFY_SOCKET", &path).stdout(Stdio::null()).spawn().unwrap();
    let array = Array { child, reported: Value::Null };
    let reported = || {
        let mut buffer = [0; 256];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    };
    // The sockets to keep come first.
    let kept = reported();
    assert!(kept.starts_with("FDSTORE=1\nFDNAME=iscsi-127.0.0.1-"), "{kept}");
    assert_eq!(reported(), "READY=1");
    world.text(&["status"]);
    array.stop();
}

#[test]
fn a_variable_that_selects_an_array_does_not_keep_another_from_being_served() {
    let world = World::new();
    let (pool, elsewhere) = (world.pool(), world.directory.path().join("elsewhere"));
    std::fs::create_dir(&pool).unwrap();
    // As README exports it, and as in a shell that had selected another array.
    for named in [&pool, &elsewhere] {
        let words = ["serve", pool.to_str().unwrap(), "--capacity", "1G", "--iscsi", "127.0.0.1:0"];
        let mut command = world.command(&words);
        command.env("HOLDFAST_POOL", named).arg("--json").stdout(Stdio::piped());
        let array = World::started(command);
        let known = world.command(&["status", "--json"]).env("HOLDFAST_POOL", &pool).output();
        assert!(known.unwrap().status.success());
        // An option takes precedence over the environment.
        let said = ["status", "--json", "--pool", pool.to_str().unwrap()];
        let mut said = world.command(&said);
        said.env("HOLDFAST_API", "192.0.2.1:1").env("HOLDFAST_POOL", &elsewhere);
        assert!(said.output().unwrap().status.success());
        array.stop();
    }
    let inspect = ["inspect", pool.to_str().unwrap(), "--json"];
    let output = world.command(&inspect).env("HOLDFAST_POOL", &elsewhere).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Two given pools contradict each other.
    world.refusal(2, &["inspect", "x", "--pool", "y"]);
    world.refusal(2, &["status", "--ca", "x", "--fingerprint", &"00".repeat(32)]);
    let mut both = world.command(&["status", "--api", "192.0.2.1:1"]);
    both.env("HOLDFAST_CA", "x").env("HOLDFAST_FINGERPRINT", "00".repeat(32));
    let output = both.output().unwrap();
    let reported = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{reported}");
    assert!(
        reported.contains("HOLDFAST_CA") && reported.contains("HOLDFAST_FINGERPRINT"),
        "{reported}"
    );
}

#[test]
fn inspect_writes_nothing_to_a_pool_that_was_never_served() {
    use std::io::Read;

    let world = World::new();
    world.make_pool();
    // Both superblocks, and the segments in which the log begins.
    let beginning = || {
        let files = std::fs::read_dir(world.pool()).unwrap().map(|entry| entry.unwrap().path());
        let pool = files.max_by_key(|path| path.metadata().unwrap().len()).unwrap();
        let mut bytes = Vec::new();
        std::fs::File::open(pool).unwrap().take(64 << 20).read_to_end(&mut bytes).unwrap();
        bytes
    };
    let before = beginning();
    world.text(&["inspect", world.pool().to_str().unwrap()]);
    assert!(beginning() == before, "inspect has changed the pool");
}
