//! Tests of single parts of the link. `tests-peer --only controllers` tests both ends with real
//! processes.

use std::io::{self, Cursor, Read, Write};
use std::thread;

use super::claim::Claim;
use super::pipe::{End, Pipe, Spare};
use super::wire::{Answer, Purpose, Unread, Versions, Welcome, read_line};
use super::*;

fn meeting(directory: &Path) -> Meeting {
    Meeting::new(directory, &["/srv/a".into(), "/srv/b".into()])
}

#[test]
fn controllers_of_a_pool_meet_with_devices_in_any_order() {
    let directory = Path::new("/run/holdfast");
    let of = |places: &[&str]| {
        let places: Vec<PathBuf> = places.iter().map(PathBuf::from).collect();
        Meeting::new(directory, &places)
    };
    let one = of(&["/srv/a", "/srv/b"]);
    assert_eq!(one.claim, of(&["/srv/b", "/srv/a"]).claim);
    for other in [&["/srv/a"][..], &["/srv/ab"], &["/srv/a/srv", "/b"], &["/srv/a", "/srv/c"]] {
        assert_ne!(one.claim, of(other).claim, "{other:?}");
    }
    let Place::Socket(socket) = &one.place else { panic!("it is of one machine") };
    assert_ne!(&one.claim, socket);
    // The size of a socket's `sun_path` (unix(7)), in a directory of a user.
    let name = socket.file_name().unwrap().len();
    assert!(name + "/run/user/4294967295/holdfast/".len() < 108);
}

/// Takes the claim as soon as it is free. A process that another test starts holds the locks of
/// this one too, until it executes another program.
fn had(meeting: &Meeting) -> Claim {
    let began = std::time::Instant::now();
    loop {
        if let Some(claim) = Claim::try_take(meeting).unwrap() {
            return claim;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "somebody keeps it");
        thread::yield_now();
    }
}

#[test]
fn a_claim_has_one_holder_and_passes_to_the_one_waiting() {
    let directory = tempfile::tempdir().unwrap();
    let meeting = meeting(directory.path());
    let claim = had(&meeting);
    assert!(Claim::try_take(&meeting).unwrap().is_none());
    let waiting = {
        let meeting = meeting.clone();
        thread::spawn(move || Claim::wait(&meeting, || ()).unwrap())
    };
    drop(claim);
    let claim = waiting.join().unwrap();
    assert!(Claim::try_take(&meeting).unwrap().is_none());
    drop(claim);
    drop(had(&meeting));
}

#[test]
fn the_next_holder_of_a_claim_finds_what_was_left_once() {
    let directory = tempfile::tempdir().unwrap();
    let meeting = meeting(directory.path());
    let claim = had(&meeting);
    assert_eq!(claim.left(), None);
    claim.leave("the end").unwrap();
    drop(claim);
    let claim = had(&meeting);
    assert_eq!(claim.left(), Some("the end"));
    drop(claim);
    assert_eq!(had(&meeting).left(), None);
    for partial in [&b"cut off"[..], b"\xff\n", &[b'a'; 5000]] {
        std::fs::write(&meeting.claim, partial).unwrap();
        assert_eq!(had(&meeting).left(), None);
    }
}

#[test]
fn a_waiting_controller_gets_the_claim_before_a_later_one() {
    let directory = tempfile::tempdir().unwrap();
    let meeting = meeting(directory.path());
    for _ in 0..20 {
        let claim = had(&meeting);
        let waiting = {
            let meeting = meeting.clone();
            thread::spawn(move || Claim::wait(&meeting, || ()).unwrap())
        };
        while Claim::is_awaited(&meeting).unwrap() != Some(true) {
            thread::yield_now();
        }
        drop(claim);
        assert!(Claim::try_take(&meeting).unwrap().is_none());
        drop(waiting.join().unwrap());
    }
}

/// Otherwise a switch could leave the pool to a process that does not wait for it yet, and get it
/// back.
#[test]
fn a_controller_has_the_turn_when_it_reports_so() {
    let directory = tempfile::tempdir().unwrap();
    let meeting = meeting(directory.path());
    let claim = had(&meeting);
    let (sender, turn) = std::sync::mpsc::channel();
    let waiting = {
        let meeting = meeting.clone();
        thread::spawn(move || Claim::wait(&meeting, || sender.send(()).unwrap()).unwrap())
    };
    turn.recv().unwrap();
    assert_eq!(Claim::is_awaited(&meeting).unwrap(), Some(true));
    drop(claim);
    assert!(Claim::try_take(&meeting).unwrap().is_none());
    drop(waiting.join().unwrap());
}

/// It may be starved by other load, or read from a device that hangs.
#[test]
fn a_takeover_does_not_wait_for_a_hanging_follower() {
    let (hangs, until) = std::sync::mpsc::channel::<()>();
    let open = move || {
        let _ = until.recv();
        Err("it hung".to_owned())
    };
    let standby = Standby::start(Box::new(open), store::OpenOptions::default()).unwrap();
    assert!(standby.end().is_none());
    drop(hangs);
}

/// A stopped process that has the turn keeps no other from the pool.
#[test]
fn an_untaken_claim_goes_to_a_later_controller() {
    let directory = tempfile::tempdir().unwrap();
    let meeting = meeting(directory.path());
    let turn = std::fs::File::create(&meeting.turn).unwrap();
    rustix::fs::flock(&turn, rustix::fs::FlockOperation::LockExclusive).unwrap();
    assert!(Claim::try_take(&meeting).unwrap().is_some());
}

#[test]
fn first_lines_round_trip_and_anything_else_is_refused() {
    let address = |text: &str| text.parse().unwrap();
    let purposes = [
        Purpose::Control { controller: Controller::Ct1, pid: 4711, version: "0.1.0".into() },
        Purpose::Successor { generation: u64::MAX },
        Purpose::Host {
            generation: u64::MAX,
            portal: address("[fe80::ffff:ffff:ffff:ffff%4294967295]:65535"),
            local: address("[fe80::ffff:ffff:ffff:ffff%4294967295]:65535"),
            peer: address("[fe80::ffff:ffff:ffff:ffff%4294967295]:65535"),
        },
        Purpose::Host {
            generation: 1,
            portal: address("0.0.0.0:3260"),
            local: address("192.0.2.1:3260"),
            peer: address("192.0.2.2:40000"),
        },
    ];
    for purpose in purposes {
        let mut sent = purpose.to_line(1).into_bytes();
        sent.extend(b"\x43\x87");
        let mut socket = Cursor::new(sent);
        let line = read_line(&mut socket).unwrap();
        assert_eq!(Purpose::of_line(&line, Versions::OWN), Ok((1, purpose)));
        let mut rest = Vec::new();
        socket.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"\x43\x87", "what follows is left");
    }
    let welcome = Welcome { generation: 7, incarnation: 9 };
    let answer = welcome.to_line(1);
    assert_eq!(Answer::of_line(answer.trim_end(), 1), Some(Answer::Welcome(welcome)));
    for line in [
        "",
        "holdfast-link 1",
        "holdfast-link x control ct1 1 0.1.0",
        "holdfast-link 1 speaks 1",
        "holdfast-link 1 control ct2 1 0.1.0",
        "holdfast-link 1 control ct1 -1 0.1.0",
        "holdfast-link 1 control ct1 1 0.1.0 more",
        "holdfast-link 1 host 1 127.0.0.1 127.0.0.1:1 127.0.0.1:2",
        "holdfast-link 1  host 1 127.0.0.1:3 127.0.0.1:1 127.0.0.1:2",
    ] {
        assert_eq!(Purpose::of_line(line, Versions::OWN), Err(Unread::Words), "{line}");
        assert_eq!(Answer::of_line(line, 1), None, "{line}");
    }
}

/// Returns the version that two programs which speak these versions agree on.
fn agreed(own: Versions, owner: Versions) -> Option<u32> {
    let hello = Purpose::Control { controller: Controller::Ct1, pid: 1, version: "9.9.9".into() };
    match Purpose::of_line(hello.to_line(own.newest).trim_end(), owner) {
        Ok((version, read)) => {
            assert_eq!(read, hello);
            Some(version)
        }
        Err(Unread::Words) => panic!("{owner} has other words"),
        Err(Unread::Version(version)) => {
            assert_eq!(version, own.newest);
            match Answer::of_line(owner.to_line().trim_end(), own.newest) {
                Some(Answer::Speaks(spoken)) => own.newest_of_both(spoken),
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Two controllers are upgraded one after the other, and may be downgraded.
#[test]
fn the_link_uses_the_newest_version_that_both_ends_speak() {
    let versions = |oldest, newest| Versions { oldest, newest };
    for (own, owner, common) in [
        (versions(1, 1), versions(1, 1), Some(1)),
        (versions(1, 2), versions(1, 1), Some(1)),
        (versions(1, 1), versions(1, 2), Some(1)),
        (versions(2, 3), versions(1, 2), Some(2)),
        (versions(1, 2), versions(2, 3), Some(2)),
        (versions(2, 3), versions(2, 3), Some(3)),
        (versions(1, 1), versions(2, 3), None),
        (versions(2, 3), versions(1, 1), None),
        (versions(1, 2), versions(u32::MAX, u32::MAX), None),
    ] {
        assert_eq!(agreed(own, owner), common, "{own} and {owner}");
    }
}

/// An answer in another version is invalid, unless it lists the spoken versions.
#[test]
fn an_answer_has_the_version_of_its_request() {
    let welcome = Welcome { generation: 7, incarnation: 9 };
    assert_eq!(Answer::of_line(welcome.to_line(2).trim_end(), 1), None);
    let spoken = Versions { oldest: 4, newest: 5 };
    let answer = Answer::of_line(spoken.to_line().trim_end(), 1);
    assert_eq!(answer, Some(Answer::Speaks(spoken)));
}

#[test]
fn a_first_line_without_an_end_is_refused() {
    let kind = |bytes: &[u8]| read_line(&mut Cursor::new(bytes.to_vec())).unwrap_err().kind();
    assert_eq!(kind(&[b'a'; 1000]), io::ErrorKind::InvalidData);
    assert_eq!(kind(b"holdfast-link 1"), io::ErrorKind::UnexpectedEof);
    assert!(read_line(&mut Cursor::new(b"\xff\xfe\n")).is_err());
}

/// A socket that moves this many bytes at a time, and is not ready every second time.
struct Slow {
    data: Cursor<Vec<u8>>,
    most: usize,
    is_ready: bool,
}

impl Slow {
    fn end(data: Vec<u8>, most: usize) -> End<Self> {
        End::new(Self { data: Cursor::new(data), most, is_ready: false })
    }

    fn turn(&mut self) -> io::Result<()> {
        self.is_ready = !self.is_ready;
        if self.is_ready { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
    }
}

impl Read for Slow {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.turn()?;
        let most = self.most.min(into.len());
        self.data.read(&mut into[..most])
    }
}

impl Write for Slow {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.turn()?;
        self.data.write(&from[..self.most.min(from.len())])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_pipe_moves_all_bytes_in_order_with_any_socket_buffers() {
    let bytes: Vec<u8> = (0..300_000u32).map(|at| (at % 251) as u8).collect();
    for (reads, writes) in [(1000, 777), (200_000, 4096), (4096, 200_000)] {
        let (mut from, mut to) = (Slow::end(bytes.clone(), reads), Slow::end(Vec::new(), writes));
        let (mut pipe, mut spare) = (Pipe::default(), Spare::default());
        let mut turns = 0;
        while !pipe.is_done() {
            turns += 1;
            assert!(turns < 10_000, "no progress");
            while pipe.pump(&mut from, &mut to, &mut spare).unwrap() {}
            // The poller reports that they are ready again.
            (from.is_readable, to.is_writable) = (true, true);
        }
        assert_eq!(to.socket.data.into_inner(), bytes);
    }
}

#[test]
fn nothing_is_accepted_from_a_link_that_was_silent_for_too_long() {
    let generation = link::Generation::new(1, sys::Clock::start());
    assert!(generation.is_alive());
    generation.hear();
    generation.let_be_silent();
    assert!(!generation.is_alive());
    // What is heard after that is too late.
    generation.hear();
    assert!(!generation.is_alive());
}
