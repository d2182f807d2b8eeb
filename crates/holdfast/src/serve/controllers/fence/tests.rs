use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use proptest::prelude::*;
use sys::{Reservable, ReservationError};

use super::super::Controller;
use super::guard::Keeping;
use super::key::Key;
use super::model::{Fate, Model, Path, World};
use super::taking::{TakeError, Taken, take};
use super::turn::Held;
use super::{Guard, LEASE, Named, SILENCE, Turn, lease, quorum};

const CONTROLLERS: [Controller; 2] = [Controller::Ct0, Controller::Ct1];

fn named(paths: &[Path]) -> Vec<Named> {
    let name = |(at, path): (usize, &Path)| Named {
        name: format!("disk{at}"),
        device: Arc::new(path.clone()),
    };
    paths.iter().enumerate().map(name).collect()
}

fn keys(path: &Path) -> Vec<u64> {
    path.registered().unwrap().keys
}

#[test]
fn any_two_quorums_share_a_device_and_hold_all_data() {
    for devices in 1..=48 {
        let least = quorum(devices);
        assert!(2 * least > devices && least <= devices && least + 2 >= devices, "{devices}");
        // As many as a pool can lose: none of one, one of two and three, two of more.
        let may_fail =
            [0, 0, 0, 1].get(devices).copied().unwrap_or(if devices == 4 { 1 } else { 2 });
        assert_eq!(devices - least, may_fail, "{devices}");
    }
}

#[test]
fn a_device_is_taken_if_free_or_from_exactly_the_silent_key() {
    let model = Model::new(&World::free());
    let (a, b) = (model.path(0), model.path(1));
    let (key_a, key_b) = (Key::new(Controller::Ct0, 1), Key::new(Controller::Ct1, 2));
    assert_eq!(take(&a, key_a, &[]).unwrap(), Taken { was_free: true, former: 0 });
    a.write().unwrap();
    assert!(matches!(b.write(), Err(ReservationError::Conflict)));
    assert!(matches!(take(&b, key_b, &[]), Err(TakeError::Owned(_))));
    assert_eq!(keys(&a), [key_a.raw()], "it has left nothing");
    // It gives a sign of life after it was considered silent.
    let silent = keys(&b);
    a.change(key_a.raw(), key_a.next().raw()).unwrap();
    assert!(matches!(take(&b, key_b, &silent), Err(TakeError::Owned(_))));
    a.write().unwrap();
    assert_eq!(take(&b, key_b, &keys(&b)).unwrap(), Taken { was_free: false, former: 0 });
    assert_eq!(keys(&b), [key_b.raw()]);
    b.write().unwrap();
    assert!(matches!(a.write(), Err(ReservationError::Conflict)));
    // A process that follows another one of the same controller, and can't have the pool.
    let again = Key::new(Controller::Ct1, 3);
    assert_eq!(take(&b, again, &keys(&b)).unwrap().former, key_b.raw());
    // A key that no controller has registered must not be preempted.
    b.register(0).unwrap();
    a.register(0x1234).unwrap();
    assert!(matches!(take(&b, key_b, &[0x1234]), Err(TakeError::Foreign(0x1234))));
    assert_eq!(keys(&b), [0x1234]);
}

/// When each device was last taken by a process with a quorum; and the count of all takings.
type Owners = Arc<Mutex<(Vec<u64>, u64)>>;

/// A process that takes the pool from anyone, writes, and restarts when it is fenced or killed.
struct Process {
    nexus: usize,
    world: Arc<World>,
    paths: Vec<Path>,
    owners: Owners,
    lives: u32,
}

/// Lets the other one continue, also if this one has failed.
struct Leaves(Arc<World>, usize);

impl Drop for Leaves {
    fn drop(&mut self) {
        self.0.leave(self.1);
    }
}

impl Process {
    fn run(mut self) -> u32 {
        self.world.enter(self.nexus);
        let _leaves = Leaves(self.world.clone(), self.nexus);
        let mut takings = 0;
        while !self.world.is_over() {
            self.lives += 1;
            takings += u32::from(self.live());
        }
        takings
    }

    /// Returns whether it had the pool.
    fn live(&mut self) -> bool {
        let own = Key::new(CONTROLLERS[self.nexus], self.lives);
        // Any key may be considered silent: the invariant does not depend on time.
        let silent = self.paths.iter().map(|path| path.registered().map(|it| it.keys));
        let silent: Vec<Vec<u64>> = silent.map(Result::unwrap_or_default).collect();
        if self.world.was_killed(self.nexus) {
            return false;
        }
        let mut held = Vec::new();
        for (at, path) in self.paths.iter().enumerate() {
            if let Ok(taken) = take(path, own, &silent[at]) {
                let mut owners = self.owners.lock();
                owners.1 += 1;
                held.push((at, owners.1, taken.former));
            }
            if self.world.was_killed(self.nexus) {
                return false;
            }
        }
        if held.len() < quorum(self.paths.len()) {
            for (at, _, former) in held {
                let _ = self.paths[at].register(former);
            }
            return false;
        }
        let mut owners = self.owners.lock();
        for (at, taken, _) in &held {
            owners.0[*at] = owners.0[*at].max(*taken);
        }
        drop(owners);
        self.own(own, &held);
        true
    }

    /// Writes and gives signs of life until it is fenced.
    fn own(&self, own: Key, held: &[(usize, u64, u64)]) {
        let all = named(&self.paths);
        let is_fenced = Arc::new(AtomicBool::new(false));
        let fenced = is_fenced.clone();
        let held_devices = Held {
            own,
            devices: all.len(),
            held: held.iter().map(|(at, ..)| all[*at].clone()).collect(),
            since_ms: lease::now_ms(),
            serves_from: Instant::now(),
        };
        let end = Box::new(move |_: &str| fenced.store(true, Ordering::Release));
        let keeping = Keeping::new(&held_devices, end);
        let members = keeping.members.lock().clone();
        while !self.world.is_over() {
            for ((at, taken, _), member) in held.iter().zip(&members) {
                match self.paths[*at].write() {
                    Ok(()) => {
                        let owned = self.owners.lock().0[*at];
                        assert!(*taken >= owned, "{at} has been taken by another owner since");
                    }
                    Err(ReservationError::Conflict) => return,
                    Err(_) => {}
                }
                if self.world.was_killed(self.nexus) {
                    return;
                }
                keeping.sign(member);
                if is_fenced.load(Ordering::Acquire) || self.world.was_killed(self.nexus) {
                    return;
                }
            }
        }
    }
}

fn run(devices: usize, order: Vec<(usize, Fate)>) -> u32 {
    let world = World::new(order);
    let models: Vec<Arc<Model>> = (0..devices).map(|_| Model::new(&world)).collect();
    let owners: Owners = Arc::new(Mutex::new((vec![0; devices], 0)));
    let process = |nexus| Process {
        nexus,
        world: world.clone(),
        paths: models.iter().map(|model| model.path(nexus)).collect(),
        owners: owners.clone(),
        lives: 0,
    };
    thread::scope(|scope| {
        let threads = [0, 1].map(|nexus| {
            let process = process(nexus);
            scope.spawn(move || process.run())
        });
        threads.map(|thread| thread.join().unwrap()).iter().sum()
    })
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        30 => Just(Fate::Done),
        1 => Just(Fate::AnswerLost),
        1 => Just(Fate::Refused),
        1 => Just(Fate::Killed),
    ]
}

/// Each of two runs for a while, as if the other one were stopped.
fn order() -> impl Strategy<Value = Vec<(usize, Fate)>> {
    let run = (0..2_usize, 1..40_usize, prop::collection::vec(fate(), 40));
    let turns = |(who, count, fates): (usize, usize, Vec<Fate>)| {
        fates.into_iter().take(count).map(move |fate| (who, fate))
    };
    prop::collection::vec(run, 4..24)
        .prop_map(move |runs| runs.into_iter().flat_map(turns).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Whatever fails, and whichever process is stopped or killed when: no other process writes to
    /// what one has taken with a quorum, before it has taken it in turn.
    #[test]
    fn in_every_order_of_failures_there_is_one_writer(devices in 1..7_usize, order in order()) {
        run(devices, order);
    }
}

/// The test above would pass even if no process ever had the pool.
#[test]
fn two_controllers_that_may_preempt_everything_alternate() {
    let order = (0..20).flat_map(|at| vec![(at % 2, Fate::Done); 60]).collect();
    assert!(run(3, order) > 10);
}

/// Two turns and two guards over the same devices, in real time.
fn turn(models: &[Arc<Model>], nexus: usize) -> Turn {
    let paths: Vec<Path> = models.iter().map(|model| model.path(nexus)).collect();
    Turn::new(CONTROLLERS[nexus], models.len(), named(&paths)).unwrap()
}

fn guard(held: &Held) -> (Guard, Arc<AtomicBool>) {
    let is_fenced = Arc::new(AtomicBool::new(false));
    let fenced = is_fenced.clone();
    let end = Box::new(move |_: &str| fenced.store(true, Ordering::Release));
    (Guard::start(held, end).unwrap(), is_fenced)
}

#[test]
fn a_pool_is_taken_if_free_or_left_or_from_a_silent_owner() {
    let world = World::free();
    let models: Vec<Arc<Model>> = (0..3).map(|_| Model::new(&world)).collect();
    let held = turn(&models, 0).attempt().unwrap().expect("the device is free");
    assert!(held.names().count() == 3 && held.serves_from > Instant::now());
    let (first, is_fenced) = guard(&held);
    assert!(first.lease().is_valid());
    let mut second = turn(&models, 1);
    let alive = Instant::now();
    while alive.elapsed() < SILENCE + LEASE {
        assert!(second.attempt().unwrap().is_none(), "its owner is alive");
        thread::sleep(Duration::from_millis(200));
    }
    assert!(first.lease().is_valid() && !is_fenced.load(Ordering::Acquire));
    drop(first);
    assert!(models[0].path(0).write().is_ok() && models[0].path(1).write().is_err());
    let left = Instant::now();
    let held = second.wait().unwrap();
    assert!(left.elapsed() < SILENCE, "it was left");
    // Nobody gives a sign of life for it.
    let silent = Instant::now();
    let held = (turn(&models, 0).wait().unwrap(), held).0;
    assert!(silent.elapsed() >= SILENCE && held.serves_from <= Instant::now());
}

#[test]
fn a_fenced_owner_loses_its_lease_and_a_forgotten_one_continues() {
    let world = World::free();
    let models: Vec<Arc<Model>> = (0..3).map(|_| Model::new(&world)).collect();
    let held = turn(&models, 0).attempt().unwrap().unwrap();
    let (first, is_fenced) = guard(&held);
    // For longer than one sign of life: it is reserved again.
    models[1].forget();
    let other = models[1].path(1);
    let begun = Instant::now();
    while keys(&other).is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(5), "it is reserved again");
        thread::sleep(Duration::from_millis(10));
    }
    assert!(first.lease().is_valid() && !is_fenced.load(Ordering::Acquire));
    assert!(first.is_enough(2, 3) && !first.is_enough(2, 4), "the pool has more than was said");
    let key = Key::new(Controller::Ct1, 7);
    while take(&models[2].path(1), key, &keys(&models[2].path(1))).is_err() {}
    let begun = Instant::now();
    while !is_fenced.load(Ordering::Acquire) {
        assert!(begun.elapsed() < Duration::from_secs(5));
        thread::sleep(Duration::from_millis(10));
    }
    assert!(!first.lease().is_valid());
    drop(first);
    assert_eq!(keys(&models[2].path(0)), [key.raw()], "who is fenced takes nothing away");
}

/// An owner that was stopped must not take back a free device when it resumes.
#[test]
fn a_controller_without_a_lease_takes_no_device_back() {
    let model = Model::new(&World::free());
    let held = turn(std::slice::from_ref(&model), 0).attempt().unwrap().unwrap();
    let is_fenced = Arc::new(AtomicBool::new(false));
    let fenced = is_fenced.clone();
    let end = Box::new(move |_: &str| fenced.store(true, Ordering::Release));
    let keeping = Keeping::new(&held, end);
    thread::sleep(LEASE + Duration::from_millis(100));
    model.forget();
    let members = keeping.members.lock().clone();
    keeping.sign(&members[0]);
    assert!(is_fenced.load(Ordering::Acquire) && keys(&model.path(1)).is_empty());
}

#[test]
fn a_lease_ends_before_the_key_counts_as_silent() {
    let model = Model::new(&World::free());
    let held = turn(std::slice::from_ref(&model), 0).attempt().unwrap().unwrap();
    let keeping = Keeping::new(&held, Box::new(|_| {}));
    let ms = |time: Duration| time.as_millis() as u64;
    assert!(keeping.lease.is_valid_at(held.since_ms));
    assert!(!keeping.lease.is_valid_at(held.since_ms + ms(LEASE)));
    let members = keeping.members.lock().clone();
    thread::sleep(Duration::from_millis(20));
    let before_ms = lease::now_ms();
    keeping.sign(&members[0]);
    assert!(keeping.lease.is_valid_at(before_ms + ms(LEASE) - 1));
    assert!(!keeping.lease.is_valid_at(lease::now_ms() + ms(LEASE)) && LEASE < SILENCE);
}

#[test]
fn an_added_device_is_reserved_first_unless_its_owner_is_alive() {
    let world = World::free();
    let models: Vec<Arc<Model>> = (0..2).map(|_| Model::new(&world)).collect();
    let held = turn(&models[..1], 0).attempt().unwrap().unwrap();
    let (first, _) = guard(&held);
    let new = &named(&[models[0].path(0), models[1].path(0)])[1];
    first.add(new).unwrap();
    assert_eq!(keys(&models[1].path(0)).len(), 1);
    first.add(new).unwrap();
    assert!(models[1].path(1).write().is_err());
    let other = Model::new(&world);
    let held = turn(std::slice::from_ref(&other), 1).attempt().unwrap().unwrap();
    let (second, _) = guard(&held);
    let alive = Named { name: "other".into(), device: Arc::new(other.path(0)) };
    assert!(matches!(first.add(&alive), Err(TakeError::Owned(_))));
    assert!(second.lease().is_valid());
}
