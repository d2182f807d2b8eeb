//! Verbs that use REST 2.x: host groups, tags, schedules, limits, connections; and the output forms
//! of all verbs.

use super::*;

/// Returns a running array with two volumes and two hosts.
fn populated() -> (World, Array) {
    let world = World::new();
    world.make_pool();
    let array = world.serve(&[]);
    for volume in ["v", "w"] {
        world.text(&["volume", "create", volume, "--size", "1G"]);
    }
    for host in ["a", "b"] {
        world.text(&["host", "create", host, "--iqn", &format!("iqn.2026-11.com.example:{host}")]);
    }
    (world, array)
}

#[test]
fn volume_groups_are_renamed_and_end_with_their_volumes() {
    let (world, array) = populated();
    assert!(world.text(&["volume-group", "create", "vg"]).contains("create vg/NAME"));
    assert_eq!(
        world.refusal(1, &["volume-group", "create", "VG"]),
        "holdfast: Volume group already exists: VG. Choose another name.\n"
    );
    world.text(&["volume", "create", "vg/db", "--size", "1G"]);
    world.text(&["volume", "rename", "v", "vg/v"]);
    let refused = world.refusal(1, &["volume", "create", "none/db", "--size", "1G"]);
    assert!(refused.contains("Volume group does not exist: none"), "{refused}");
    assert_eq!(world.json(&["volume", "show", "VG/db"])["name"], "vg/db");
    world.text(&["connect", "vg/db", "a"]);
    world.text(&["snapshot", "create", "vg/db", "--suffix", "one"]);
    let limited = ["volume-group", "limit", "vg", "--iops", "500", "--bandwidth", "1M"];
    assert!(world.text(&limited).contains("500 commands/s, 1 MiB/s"));
    world.text(&["volume-group", "rename", "vg", "team"]);
    world.text(&["volume-group", "limit", "team", "--bandwidth", "none"]);
    assert_eq!(world.json(&["volume-group", "limit", "team"])["iops"], 500);
    assert_eq!(world.json(&["snapshot", "list"])[0]["name"], "team/db.one");
    let listed = world.json(&["volume-group", "list"]);
    assert_eq!((&listed[0]["name"], &listed[0]["volume_count"]), (&json!("team"), &json!(2)));
    assert!(world.text(&["volume-group", "list"]).contains("2 GiB"));
    let refused = world.refusal(1, &["volume-group", "destroy", "team"]);
    assert!(refused.contains("existing connections"), "{refused}");
    world.text(&["disconnect", "team/db", "a"]);
    assert!(world.text(&["volume-group", "destroy", "team"]).contains("recover team"));
    array.kill();
    let array = world.serve(&[]);
    assert_eq!(world.json(&["volume-group", "list", "--destroyed"])[0]["name"], "team");
    world.text(&["volume-group", "recover", "team"]);
    assert_eq!(world.json(&["volume", "list"]).as_array().unwrap().len(), 3);
    // Moves it out of the group, by its full name.
    world.text(&["volume", "rename", "team/v", "v"]);
    world.text(&["volume-group", "destroy", "team", "--eradicate"]);
    assert_eq!(world.json(&["volume-group", "list", "--destroyed"]), json!([]));
    assert_eq!(world.json(&["volume", "list"])[0]["name"], "v");
    world.refusal(1, &["volume-group", "eradicate", "team"]);
    array.stop();
}

#[test]
fn pods_are_name_spaces_of_volumes() {
    let (world, array) = populated();
    assert!(world.text(&["pod", "create", "p"]).contains("create p::NAME"));
    let taken = "holdfast: Pod already exists: P. Choose another name.\n";
    assert_eq!(world.refusal(1, &["pod", "create", "P"]), taken);
    world.text(&["volume", "create", "p::v", "--size", "1G"]);
    let refused = world.refusal(1, &["volume", "create", "none::v", "--size", "1G"]);
    assert!(refused.contains("Pod does not exist: none"), "{refused}");
    world.text(&["connect", "p::v", "a"]);
    world.text(&["snapshot", "create", "p::v", "--suffix", "one"]);
    world.text(&["volume", "clone", "p::v.one", "p::w"]);
    world.text(&["pod", "rename", "p", "q"]);
    assert_eq!(world.json(&["snapshot", "list"])[0]["name"], "q::v.one");
    assert_eq!(world.json(&["volume", "show", "Q::V"])["name"], "q::v");
    let listed = world.json(&["pod", "list"]);
    assert_eq!((&listed[0]["name"], &listed[0]["volume_count"]), (&json!("q"), &json!(2)));
    world.text(&["disconnect", "q::v", "a"]);
    let refused = world.refusal(1, &["pod", "destroy", "q"]);
    assert!(refused.contains("Pod q has volumes."), "{refused}");
    assert!(world.text(&["pod", "destroy", "q", "--with-volumes"]).contains("recover q"));
    array.kill();
    let array = world.serve(&[]);
    assert_eq!(world.json(&["pod", "list", "--destroyed"])[0]["name"], "q");
    world.text(&["pod", "recover", "q"]);
    assert_eq!(world.json(&["volume", "show", "q::w"])["name"], "q::w");
    world.text(&["pod", "destroy", "q", "--with-volumes", "--eradicate"]);
    assert_eq!(world.json(&["pod", "list", "--destroyed"]), json!([]));
    assert_eq!(world.json(&["volume", "list"])[0]["name"], "v");
    world.refusal(1, &["pod", "eradicate", "q", "--with-volumes"]);
    array.stop();
}

#[test]
fn host_groups_are_connected_as_one() {
    let (world, array) = populated();
    assert!(world.text(&["host-group", "create", "g"]).contains("host-group add g HOST"));
    assert_eq!(
        world.refusal(1, &["host-group", "create", "g"]),
        "holdfast: Host group already exists: g. Choose another name.\n"
    );
    world.text(&["host-group", "add", "g", "a", "b"]);
    assert_eq!(
        world.refusal(1, &["host-group", "add", "g", "none"]),
        "holdfast: Host does not exist: none. The list of hosts shows their names.\n"
    );
    let made = world.json(&["connect", "v", "--host-group", "g", "--lun", "9"]);
    assert_eq!((&made[0]["host_group"], &made[0]["lun"]), (&json!("g"), &json!(9)));
    assert!(world.text(&["connect", "w", "--host-group", "g"]).contains("as LUN "));
    world.refusal(2, &["connect", "w"]);
    world.refusal(2, &["connect", "w", "a", "--host-group", "g"]);
    let of_a = world.json(&["connection", "list", "--host", "a"]);
    assert_eq!(of_a.as_array().unwrap().len(), 2);
    let of_v = world.text(&["connection", "list", "--volume", "v", "--host-group", "g"]);
    assert_eq!(of_v.lines().count(), 3, "{of_v}");
    world.text(&["host-group", "remove", "g", "b"]);
    world.text(&["host-group", "rename", "g", "h"]);
    let shown = world.json(&["host-group", "show", "h"]);
    assert_eq!((&shown["hosts"], &shown["host_count"]), (&json!(["a"]), &json!(1)));
    assert_eq!(shown["connections"].as_array().unwrap().len(), 2);
    assert!(world.text(&["host-group", "list"]).contains("VOLUMES"));
    assert!(world.refusal(1, &["host-group", "delete", "h"]).contains('h'));
    for volume in ["v", "w"] {
        world.text(&["disconnect", volume, "--host-group", "h"]);
    }
    world.text(&["host-group", "remove", "h", "a"]);
    world.text(&["host-group", "delete", "h"]);
    assert_eq!(world.json(&["host-group", "list"]), json!([]));
    let portal = array.reported["portals"][0].as_str().unwrap();
    assert!(world.text(&["port", "list"]).contains(portal));
    assert!(world.text(&["controller", "list"]).contains(portal));
    array.stop();
}

#[test]
fn tags_and_limits_are_kept_with_volumes() {
    let (world, array) = populated();
    world.text(&["tag", "set", "v", "os=linux", "note=a, b=c", "--namespace", "x"]);
    world.text(&["snapshot", "create", "v", "--suffix", "s"]);
    world.text(&["tag", "set", "v.s", "why=test", "--not-copied"]);
    array.kill();
    let array = world.serve(&[]);
    let tags = world.json(&["tag", "list", "v"]);
    assert_eq!(tags.as_array().unwrap().len(), 2);
    assert_eq!((&tags[0]["key"], &tags[0]["value"]), (&json!("note"), &json!("a, b=c")));
    let all = world.json(&["tag", "list"]);
    let of: Vec<_> = all.as_array().unwrap().iter().map(|tag| tag["of"].clone()).collect();
    assert!(of.contains(&json!("v.s")) && of.contains(&json!("v")), "{all}");
    world.text(&["tag", "delete", "v", "os", "--namespace", "x"]);
    assert_eq!(world.json(&["tag", "list", "v", "--namespace", "x"]).as_array().unwrap().len(), 1);
    world.refusal(1, &["tag", "set", "none", "a=b"]);
    world.refusal(2, &["tag", "set", "v", "a"]);

    assert_eq!(world.json(&["volume", "limit", "v"])["iops"], json!(null));
    let set = world.json(&["volume", "limit", "v", "--iops", "500", "--bandwidth", "10M"]);
    assert_eq!((&set["iops"], &set["bandwidth_bytes_per_s"]), (&json!(500), &json!(10 << 20)));
    world.text(&["volume", "limit", "v", "--iops", "none"]);
    assert!(world.text(&["volume", "show", "v"]).contains("10 MiB/s"));
    assert_eq!(world.json(&["volume", "show", "v"])["limits"]["iops"], json!(null));
    assert!(world.refusal(1, &["volume", "limit", "v", "--iops", "1"]).contains("100"));
    assert!(world.text(&["volume", "space"]).contains("REDUCTION"));
    let devices = world.json(&["device", "list"]);
    assert!(devices[0]["name"].as_str().unwrap().ends_with("pool.data"), "{devices}");
    assert!(devices[0]["capacity_bytes"].as_u64() > Some(1 << 29), "{devices}");
    assert!(world.text(&["device", "list"]).contains("IN FLIGHT"));
    assert_eq!(world.json(&["volume", "space", "w"]).as_array().unwrap().len(), 1);
    array.stop();
}

#[test]
fn groups_have_schedules_and_members_of_all_kinds() {
    let (world, array) = populated();
    world.text(&["group", "create", "g", "v"]);
    world.text(&["host-group", "create", "hg"]);
    world.text(&["connect", "w", "a"]);
    world.text(&["connect", "w", "--host-group", "hg"]);
    let both = ["--host", "a", "--host-group", "hg"];
    let made = ["volume", "create", "both", "--size", "1M"].into_iter().chain(both);
    assert!(world.text(&made.collect::<Vec<_>>()).contains("both"));
    assert_eq!(world.json(&["volume", "show", "both"])["connected_to"][0]["host"], "a");
    let of_group = world.json(&["connection", "list", "--host-group", "hg"]);
    assert!(of_group.to_string().contains("both"), "{of_group}");
    let half = ["volume", "create", "half", "--size", "1M", "--host", "a", "none"];
    assert!(world.refusal(1, &half).contains("Host does not exist: none"));
    world.refusal(1, &["volume", "show", "half"]);
    // A group has volumes, or hosts, or host groups.
    world.text(&["group", "create", "of-hosts"]);
    assert!(world.text(&["group", "add", "of-hosts", "--host", "a"]).contains("host a"));
    world.text(&["group", "create", "of-groups"]);
    world.text(&["group", "add", "of-groups", "--host-group", "hg"]);
    world.refusal(2, &["group", "add", "g", "w", "--host", "a"]);
    let every = ["group", "set", "g", "--every", "1d", "--at", "02:30", "--schedule", "on"];
    assert!(world.text(&every).contains("every 1 d at 02:30 UTC"));
    // An interval of hours has no time of day, which is not cleared silently.
    let reported = world.refusal(2, &["group", "set", "g", "--every", "1h"]);
    assert!(reported.contains("02:30 UTC") && reported.contains("--at none"), "{reported}");
    let hourly = ["group", "set", "g", "--every", "1h", "--at", "none"];
    assert!(world.text(&hourly).contains("every 1 h,"));
    assert!(world.text(&every).contains("every 1 d at 02:30 UTC"));
    assert!(world.text(&["group", "set", "g", "--at", "none"]).contains("every 1 d,"));
    assert!(world.text(&every).contains("every 1 d at 02:30 UTC"));
    world.text(&["group", "set", "g", "--keep", "2d", "--keep-per-day", "4", "--keep-days", "7"]);
    world.refusal(1, &["group", "set", "g", "--every", "1m", "--at", "none"]);
    world.refusal(2, &["group", "set", "g"]);
    world.text(&["group", "rename", "g", "nightly"]);
    array.kill();
    let array = world.serve(&[]);
    let shown = world.json(&["group", "show", "nightly"]);
    let schedule = &shown["snapshot_schedule"];
    assert_eq!((&schedule["enabled"], &schedule["frequency"]), (&json!(true), &json!(86_400_000)));
    assert_eq!(shown["source_retention"]["per_day"], 4);
    assert_eq!(shown["volumes"], json!(["v"]));
    let table = world.text(&["group", "list"]);
    assert!(table.contains("host a") && table.contains("4 a day for 7 d"), "{table}");
    world.text(&["group", "remove", "of-hosts", "--host", "a"]);
    world.text(&["group", "destroy", "of-hosts"]);
    let destroyed = world.json(&["group", "list", "--destroyed"]);
    assert_eq!(destroyed.as_array().unwrap().len(), 1);
    assert_eq!(destroyed[0]["name"], "of-hosts");
    array.stop();
}

#[test]
fn hosts_change_while_they_are_connected() {
    let (world, array) = populated();
    world.text(&["connect", "v", "a"]);
    world.text(&["host", "rename", "a", "c"]);
    let more = "iqn.2026-11.com.example:more";
    assert_eq!(world.json(&["host", "set", "c", "--add-iqn", more])["iqns"][1], more);
    let old = "iqn.2026-11.com.example:a";
    assert_eq!(world.json(&["host", "set", "c", "--remove-iqn", old])["iqns"], json!([more]));
    let secret = world.directory.path().join("secret");
    std::fs::write(&secret, "correct horse battery\n").unwrap();
    let chap = ["host", "set", "c", "--iqn", old, "--chap-user", "u", "--chap-secret-file"];
    let chap: Vec<&str> = chap.into_iter().chain([secret.to_str().unwrap()]).collect();
    let set = world.json(&chap);
    assert_eq!((&set["iqns"], &set["chap"]["host_user"]), (&json!([old]), &json!("u")));
    assert_eq!(set["connected_to"][0]["volume"], "v");
    let (other, empty) = (world.directory.path().join("other"), world.directory.path().join("e"));
    std::fs::write(&other, "battery staple battery\n").unwrap();
    std::fs::write(&empty, "\n").unwrap();
    let user = ["host", "set", "c", "--chap-user", "u", "--chap-secret-file"];
    let one_way = [&user[..], &[secret.to_str().unwrap()]].concat();
    let target = ["--chap-target-user", "t", "--chap-target-secret-file", other.to_str().unwrap()];
    let mutual = world.json(&[&one_way[..], &target].concat());
    assert_eq!(mutual["chap"], json!({"host_user": "u", "target_user": "t"}));
    assert!(world.text(&["host", "list"]).contains("mutual"));
    let none = json!({"host_user": "u", "target_user": null});
    assert_eq!(world.json(&one_way)["chap"], none, "what is not given is gone");
    assert!(world.refusal(2, &[&user[..], &[empty.to_str().unwrap()]].concat()).contains("empty"));
    let text = world.text(&["host", "set", "c", "--no-chap"]);
    assert!(text.lines().any(|line| line.starts_with("CHAP:") && line.ends_with(" no")), "{text}");
    world.refusal(2, &["host", "set", "c"]);
    assert_eq!(world.json(&["array", "set", "--name", "attic"])["name"], "attic");
    array.stop();
}

#[test]
fn output_can_be_csv_and_any_request_can_be_sent() {
    let (world, array) = populated();
    let csv = world.text(&["volume", "list", "--csv"]);
    let lines: Vec<&str> = csv.split("\r\n").collect();
    assert!(lines[0].starts_with("id,name,size_bytes,"), "{csv}");
    assert_eq!(lines.len(), 4, "{csv}");
    let volumes = world.json(&["volume", "list"]);
    let first = &volumes[0];
    let begins = format!("{},v,1073741824,", first["id"]);
    assert!(lines[1].starts_with(&begins), "{csv}");
    assert!(world.text(&["status", "--csv"]).contains("pool.capacity_bytes"));
    assert_eq!(world.text(&["snapshot", "list", "--csv"]), "");
    world.refusal(2, &["volume", "list", "--csv", "--json"]);
    let asked: Value = world.json(&["api", "GET", "/v1/volumes/v"]);
    assert_eq!(&asked, first);
    let listed = world.text(&["api", "get", "/api/2.26/hosts?sort=name-", "--csv"]);
    assert!(listed.lines().nth(1).unwrap().contains("example:b"), "{listed}");
    let body = r#"{"name": "x", "size_bytes": 4096}"#;
    world.text(&["api", "POST", "/v1/volumes", "--data", body]);
    let (x, body) = ("/api/2.26/volumes?names=x", r#"{"destroyed": true}"#);
    world.text(&["api", "PATCH", x, "--data", body]);
    assert_eq!(world.json(&["api", "DELETE", x])["items"][0]["name"], "x");
    assert!(world.refusal(1, &["api", "GET", "/v1/nothing"]).contains("openapi"));
    world.refusal(2, &["api", "GET", "v1"]);
    world.refusal(2, &["api", "POST", "/v1/volumes", "--data", "{"]);
    array.stop();
}

#[test]
fn shells_complete_verbs_and_names() {
    let (world, array) = populated();
    let asked = |words: &[&str]| {
        let mut command = world.command(&["--", "holdfast"]);
        let index = words.len().to_string();
        command.args(words).envs([
            ("HOLDFAST_COMPLETE", "bash"),
            ("_CLAP_COMPLETE_INDEX", &index),
            ("_CLAP_COMPLETE_COMP_TYPE", "9"),
            ("_CLAP_COMPLETE_SPACE", "true"),
            ("_CLAP_IFS", "\n"),
        ]);
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>()
    };
    assert!(asked(&["vol"]).contains(&"volume".to_owned()));
    assert_eq!(asked(&["connect", "V"]), ["v"]);
    assert_eq!(asked(&["connect", "v", ""])[..2], ["a", "b"]);
    assert_eq!(asked(&["connect", "it's"]), [""; 0]);
    assert_eq!(asked(&["user", "set", "ad"]), ["admin"]);
    for shell in ["bash", "zsh", "fish"] {
        let script = world.text(&["completion", shell]);
        assert!(script.contains("HOLDFAST_COMPLETE"), "{script}");
    }
    array.stop();
    assert!(asked(&["volume", "show", "v"]).is_empty(), "there is no array to ask");
}

#[test]
fn top_prints_a_line_each_interval() {
    let (world, array) = populated();
    world.refusal(2, &["top"]);
    world.refusal(2, &["top", "--rows"]);
    let text = world.text(&["top", "-b", "-d", "1", "-n", "2"]);
    let lines: Vec<&str> = text.split("\r\n").filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), 3, "{text}");
    let port = format!("Port({})\\ATSF", array.reported["portals"][0].as_str().unwrap());
    for column in ["Array\\CLONE_RD", "Array\\DELAVG/f", "Pool\\Data reduction", &port] {
        assert!(lines[0].contains(column), "{column}: {text}");
    }
    let fields = lines[0].split(',').count();
    assert!(lines.iter().all(|line| line.split(',').count() == fields), "{text}");
    let rows = world.text(&["top", "-b", "--rows", "-d", "1", "-n", "1"]);
    assert!(rows.starts_with("TIME,KIND,NAME,CMDS/s,"), "{rows}");
    assert!(rows.contains(",Array,"), "{rows}");
    array.kill();
    world.refusal(3, &["top", "-b", "-n", "1"]);
}
