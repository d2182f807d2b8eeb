//! A driver on the simulated machine: a process that ends at a step.

use std::ffi::OsStr;
use std::io;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::world::{Content, World, not_found};
use crate::machine::System;

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    Driver,
    /// It answers again in the next call.
    Array,
    /// It answers again from the next step on.
    ArrayForOneStep,
}

/// When it is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    Before,
    /// With the driver's whole container: a program has only begun.
    Amid,
    After,
}

/// A kill, at the step with this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kill {
    pub victim: Victim,
    pub moment: Moment,
    pub step: usize,
}

/// Steps and reads of a process so far.
#[derive(Debug, Default)]
struct Life {
    steps: usize,
    is_over: bool,
}

/// A process of the driver.
#[derive(Clone)]
pub struct Process {
    world: Arc<Mutex<World>>,
    life: Arc<Mutex<Life>>,
    kill: Option<Kill>,
    begin: Instant,
}

/// The cause of a process's end: nothing of it runs after it.
struct Killed;

/// A killed process leaves the world as it is.
fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Process {
    pub fn new(world: &Arc<Mutex<World>>, kill: Option<Kill>) -> Self {
        lock(world).is_array_down = false;
        Self { world: world.clone(), life: Arc::default(), kill, begin: Instant::now() }
    }

    /// Returns how many steps it has made.
    pub fn steps(&self) -> usize {
        lock(&self.life).steps
    }

    fn check(&self) {
        if lock(&self.life).is_over {
            resume_unwind(Box::new(Killed));
        }
    }

    fn kill(&self, world: &mut World) {
        match self.kill.map(|kill| kill.victim) {
            Some(Victim::Driver) => lock(&self.life).is_over = true,
            _ => world.is_array_down = true,
        }
    }

    /// Makes a step that changes the machine, or looks at the array; `amid` is what it leaves if it
    /// is killed half-way.
    fn step<T>(&self, amid: impl FnOnce(&mut World), whole: impl FnOnce(&mut World) -> T) -> T {
        self.check();
        let mut world = lock(&self.world);
        let step = {
            let mut life = lock(&self.life);
            life.steps += 1;
            life.steps - 1
        };
        let due = self.kill.filter(|kill| kill.step == step);
        let moment = due.map(|kill| kill.moment);
        if let Some(Moment::Before | Moment::Amid) = moment {
            if moment == Some(Moment::Amid) {
                amid(&mut world);
            }
            self.kill(&mut world);
            self.check();
        }
        let done = whole(&mut world);
        match due.map(|kill| kill.victim) {
            Some(Victim::ArrayForOneStep) => world.is_array_down = false,
            Some(_) if moment == Some(Moment::After) => {
                self.kill(&mut world);
                self.check();
            }
            _ => {}
        }
        done
    }

    /// Looks at the machine.
    fn look<T>(&self, look: impl FnOnce(&World) -> T) -> T {
        self.check();
        look(&lock(&self.world))
    }
}

/// The effect of a program that is killed half-way.
fn half_done(world: &mut World, program: &str, arguments: &[&str]) {
    match (program, arguments) {
        ("iscsiadm", [.., "--op", "new"]) => {
            world.run(program, arguments);
            for (path, text) in &mut world.files {
                let is_new = text.ends_with(b"scan = auto\n# END RECORD\n");
                if path.starts_with("/etc/iscsi/nodes") && is_new {
                    text.truncate(text.len() / 2);
                }
            }
        }
        ("mkfs.xfs", [.., device]) => {
            let serial = world.volume_at(Path::new(device)).expect("it is there").0;
            world.volumes.get_mut(&serial).expect("it is there").content = Content::Unfinished;
        }
        _ => {}
    }
}

impl System for Process {
    fn command(&self, program: &str, arguments: &[&OsStr]) -> io::Result<Output> {
        let arguments: Vec<&str> = arguments.iter().map(|text| text.to_str().unwrap()).collect();
        self.step(
            |world| half_done(world, program, &arguments),
            |world| Ok(world.run(program, &arguments)),
        )
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.look(|world| world.read(path))
    }

    fn read_start(&self, device: &Path, block: &mut [u8]) -> io::Result<()> {
        self.step(|_| {}, |world| world.read_start(device, block))
    }

    fn size_bytes(&self, device: &Path) -> io::Result<u64> {
        self.look(|world| world.size_bytes(device))
    }

    fn names(&self, directory: &Path) -> io::Result<Vec<String>> {
        self.look(|world| world.names(directory))
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        self.look(|world| world.resolve(path))
    }

    fn set(&self, path: &Path, text: &str) -> io::Result<()> {
        self.step(|_| {}, |world| world.set(path, text))
    }

    fn claim(&self, device: &Path) -> io::Result<()> {
        self.look(|world| world.claim(device))
    }

    fn replace(&self, path: &Path, _: &Path, content: &[u8]) -> io::Result<()> {
        self.step(|_| {}, |world| world.files.insert(path.to_owned(), content.to_owned()));
        Ok(())
    }

    fn make_directory(&self, path: &Path) -> io::Result<()> {
        self.step(|_| {}, |world| world.directories.insert(path.to_owned()));
        Ok(())
    }

    fn make_file(&self, path: &Path) -> io::Result<()> {
        let make = |world: &mut World| {
            world.directories.extend(path.parent().map(Path::to_owned));
            world.files.entry(path.to_owned()).or_default();
        };
        self.step(|_| {}, make);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.step(
            |_| {},
            |world| {
                if world.mounts.iter().any(|mount| mount.path == path) {
                    return Err(io::ErrorKind::ResourceBusy.into());
                }
                world.directories.remove(path);
                world.files.remove(path);
                Ok(())
            },
        )
    }

    fn pause(&self, time: Duration) {
        self.step(
            |_| {},
            |world| {
                world.clock += time;
                world.settle();
            },
        );
    }

    fn now(&self) -> Instant {
        self.look(|world| self.begin + world.clock)
    }
}

/// A process that has been killed has no errors of its own.
#[test]
fn a_killed_process_does_nothing_more() {
    let world = Arc::default();
    let kill = Kill { victim: Victim::Driver, moment: Moment::Before, step: 1 };
    let process = Process::new(&world, Some(kill));
    process.make_directory(Path::new("/a")).unwrap();
    for _ in 0..2 {
        let process = process.clone();
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            process.make_directory(Path::new("/b"))
        }));
        assert!(done.is_err());
    }
    let names = lock(&world).names(Path::new("/")).unwrap();
    assert!(names.contains(&"a".into()) && !names.contains(&"b".into()), "{names:?}");
    assert_eq!(not_found().kind(), io::ErrorKind::NotFound);
}
