//! An array whose clock has absurd values: management waits, and hosts continue.

use std::net::TcpStream;

use super::log::{log_in, make_host};
use super::*;

/// Offsets to before 1970, to the year 1970, to after 9999, and to beyond any date that can be
/// formatted.
const OFFSETS: [i64; 4] = [-4_000_000_000, -1_790_000_000, 260_000_000_000, 7_000_000_000_000];

#[test]
fn absurd_clock_values_do_not_end_the_array() {
    let world = World::new();
    let at = |name: &str| world.directory.path().join(name);
    let (library, offset) = (at("clock.so"), at("offset"));
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/clock.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source);
    if !compiler.status().is_ok_and(|status| status.success()) {
        eprintln!("there is no C compiler: only the tests of the parts look at this");
        return;
    }
    world.make_pool();
    let move_to = |seconds: i64| {
        // Replaced atomically, or the array could see an empty file.
        std::fs::write(at("new"), seconds.to_string()).unwrap();
        std::fs::rename(at("new"), &offset).unwrap();
    };
    let pool = world.pool();
    let words = ["serve", "--pool", pool.to_str().unwrap(), "--iscsi", "127.0.0.1:0", "--json"];
    let start = || {
        let mut command = world.command(&words);
        command.env("LD_PRELOAD", &library).env("CLOCK_OFFSET", &offset).stdout(Stdio::piped());
        World::started(command)
    };
    move_to(0);
    let mut array = start();
    make_host(&world);
    for seconds in OFFSETS {
        // The clock changes while the array runs, and before it starts.
        for is_new in [false, true] {
            move_to(seconds);
            if is_new {
                array.stop();
                array = start();
            }
            // The verb may fail: only the array must survive.
            world.output(&["status"]);
            world.output(&["audit"]);
            let name = format!("v{}", seconds.unsigned_abs());
            world.output(&["volume", "create", &name, "--size", "1G"]);
            let portal = array.reported["portals"][0].as_str().unwrap();
            log_in(&mut TcpStream::connect(portal).unwrap());
            assert_eq!(array.child.try_wait().unwrap(), None, "{seconds}");
            move_to(0);
            world.text(&["status"]);
            world.text(&["audit"]);
        }
    }
    array.stop();
}
