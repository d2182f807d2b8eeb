//! Keeps a pool: a thread for each device gives signs of life, and detects whether another
//! controller has taken the device. A process that detects this ends at once, and with it all
//! connections of hosts, whose input it leaves unread.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sys::{Reservable, ReservationError};

use super::key::Key;
use super::lease::{self, Lease};
use super::taking::{TakeError, take};
use super::turn::Held;
use super::watch::Watch;
use super::{LEASE, Named, SIGN_INTERVAL, quorum};

/// How long the end waits for devices; one that hangs is left as it is.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// How long, at most, a device to be added is watched for a sign of life of another controller.
const COMES_WITHIN: Duration = Duration::from_secs(10);

/// Called with the reason when this process is fenced. It must not return to serving.
pub type Fenced = Box<dyn Fn(&str) + Send + Sync>;

/// A reserved device.
pub(super) struct Member {
    name: String,
    device: Arc<dyn Reservable>,
    /// The registered key.
    key: Mutex<Key>,
    /// The start time of the last successful sign of life.
    confirmed_ms: AtomicU64,
    has_left: AtomicBool,
}

/// The state that all threads share.
pub(super) struct Keeping {
    own: Key,
    /// The number of devices of the pool.
    devices: Mutex<usize>,
    pub(super) members: Mutex<Vec<Arc<Member>>>,
    pub(super) lease: Arc<Lease>,
    has_ended: AtomicBool,
    fenced: Fenced,
}

impl Keeping {
    pub(super) fn new(held: &Held, fenced: Fenced) -> Self {
        let member = |named: &Named| Member::new(named, held.own, held.since_ms);
        let keeping = Self {
            own: held.own,
            devices: Mutex::new(held.devices),
            members: Mutex::new(held.held.iter().map(member).collect()),
            lease: Arc::default(),
            has_ended: AtomicBool::new(false),
            fenced,
        };
        keeping.extend();
        keeping
    }

    /// Extends the lease as far as a quorum of devices allows.
    fn extend(&self) {
        let least = quorum(*self.devices.lock());
        let members = self.members.lock();
        let of = |member: &Arc<Member>| member.confirmed_ms.load(Ordering::Acquire);
        let mut confirmed: Vec<u64> = members.iter().map(of).collect();
        confirmed.sort_unstable_by_key(|at| std::cmp::Reverse(*at));
        if let Some(at) = confirmed.get(least - 1) {
            self.lease.extend(at + LEASE.as_millis() as u64);
        }
    }

    /// Handles that this process is fenced.
    fn end(&self, why: &str) {
        self.lease.end();
        if !self.has_ended.swap(true, Ordering::AcqRel) {
            (self.fenced)(why);
        }
    }

    /// Gives one sign of life to a device.
    pub(super) fn sign(&self, member: &Member) {
        let (mut key, began_ms) = (member.key.lock(), lease::now_ms());
        if member.has_left.load(Ordering::Acquire) {
            return;
        }
        let next = key.next();
        match member.device.change(key.raw(), next.raw()) {
            Ok(()) => self.confirm(member, &mut key, next, began_ms),
            Err(ReservationError::Conflict) => self.look(member, &mut key, began_ms),
            // It is missing or does not respond; others may be a quorum.
            Err(error) => tracing::debug!("no sign of life for {}: {error}", member.name),
        }
    }

    /// Notes that the device has confirmed this key to a request that began at this time.
    fn confirm(&self, member: &Member, key: &mut Key, registered: Key, began_ms: u64) {
        *key = registered;
        member.confirmed_ms.store(began_ms, Ordering::Release);
        self.extend();
    }

    /// Handles a device that does not know the key: another controller has taken it, or its
    /// response to the last change was lost, or it has forgotten all registrations.
    fn look(&self, member: &Member, key: &mut Key, began_ms: u64) {
        let Member { name, device, .. } = member;
        let registered = match device.registered() {
            Ok(registered) => registered,
            Err(ReservationError::Conflict) => {
                return self.end(&format!("{name} has a reservation of another type"));
            }
            Err(error) => {
                return tracing::debug!("{name} does not list its registrations: {error}");
            }
        };
        let others = || registered.keys.iter().filter(|raw| !self.own.is_same_process(**raw));
        let own = registered.keys.iter().copied().find(|raw| self.own.is_same_process(*raw));
        match (own.and_then(Key::of), others().next()) {
            (_, Some(other)) => {
                self.end(&format!("{name} has been taken, by the key {other:#018x}"))
            }
            (Some(own), None) if registered.holder == Some(own.raw()) => {
                self.confirm(member, key, own, began_ms);
            }
            // With a valid lease, no other controller can have had the pool in between, and left
            // it.
            _ if !self.lease.is_valid() => self.end(&format!("{name} no longer knows it")),
            _ => match take(&**device, key.next(), &[]) {
                Ok(_) => {
                    self.confirm(member, key, key.next(), began_ms);
                    tracing::warn!("{name} had forgotten its reservation, and is reserved again");
                }
                Err(TakeError::Owned(_) | TakeError::Foreign(_)) => {
                    self.end(&format!("{name} has been taken"));
                }
                Err(error) => tracing::debug!("{name} can't be reserved again: {error}"),
            },
        }
    }
}

impl Member {
    fn new(named: &Named, key: Key, confirmed_ms: u64) -> Arc<Self> {
        Arc::new(Self {
            name: named.name.clone(),
            device: named.device.clone(),
            key: Mutex::new(key),
            confirmed_ms: AtomicU64::new(confirmed_ms),
            has_left: AtomicBool::new(false),
        })
    }
}

/// The pool belongs to this process until this is dropped, or another controller takes it.
pub struct Guard {
    keeping: Arc<Keeping>,
    threads: Mutex<Vec<(Arc<Member>, JoinHandle<()>)>>,
}

impl Guard {
    /// Starts giving signs of life.
    ///
    /// # Errors
    /// If no threads can be created.
    pub fn start(held: &Held, fenced: Fenced) -> io::Result<Self> {
        let keeping = Arc::new(Keeping::new(held, fenced));
        let guard = Self { keeping, threads: Mutex::default() };
        let members = guard.keeping.members.lock().clone();
        members.into_iter().try_for_each(|member| guard.keep(member))?;
        Ok(guard)
    }

    fn keep(&self, member: Arc<Member>) -> io::Result<()> {
        let (keeping, kept) = (self.keeping.clone(), member.clone());
        let builder = thread::Builder::new().name("sign-of-life".into());
        let thread = builder.spawn(move || {
            let is_over = || {
                keeping.has_ended.load(Ordering::Acquire) || kept.has_left.load(Ordering::Acquire)
            };
            while !is_over() {
                let began = Instant::now();
                keeping.sign(&kept);
                while began.elapsed() < SIGN_INTERVAL && !is_over() {
                    thread::sleep(LOOK_INTERVAL);
                }
            }
        })?;
        self.threads.lock().push((member, thread));
        Ok(())
    }

    /// Returns the lease to answer hosts.
    pub fn lease(&self) -> Arc<Lease> {
        self.keeping.lease.clone()
    }

    /// Returns the callback for a request that a device refuses because of another reservation.
    pub fn when_fenced(&self, name: String) -> impl Fn() + Send + Sync + 'static {
        let keeping = self.keeping.clone();
        move || {
            if !keeping.has_ended.load(Ordering::Acquire) {
                keeping.end(&format!("{name} is reserved for another controller"));
            }
        }
    }

    /// Returns whether enough of the pool's devices are held, of which `opened` were opened. Sets
    /// the number of devices of the pool.
    pub fn is_enough(&self, opened: usize, devices: usize) -> bool {
        let mut known = self.keeping.devices.lock();
        *known = (*known).max(devices);
        opened >= quorum(*known)
    }

    /// Reserves a device that is to be added to the pool, before anything is written to it. Waits
    /// to see whether another controller that has it is alive.
    ///
    /// # Errors
    /// [`TakeError`].
    pub fn add(&self, named: &Named) -> Result<(), TakeError> {
        let is_here = |member: &Arc<Member>| member.name == named.name;
        if self.keeping.members.lock().iter().any(is_here) {
            return Ok(());
        }
        let (own, mut watch, begun) = (self.keeping.own.next(), Watch::new(1, 1), Instant::now());
        let since_ms = loop {
            let (asked, since_ms) = (Instant::now(), lease::now_ms());
            let seen = named.device.registered()?;
            let key = seen.holder.or(seen.keys.first().copied()).unwrap_or_default();
            watch.note(0, seen, asked);
            if let Some([takeable]) = watch.takeable(true).as_deref() {
                take(&*named.device, own, &takeable.silent)?;
                break since_ms;
            }
            if begun.elapsed() > COMES_WITHIN {
                return Err(TakeError::Owned(key));
            }
            thread::sleep(SIGN_INTERVAL / 2);
        };
        let member = Member::new(named, own, since_ms);
        let mut members = self.keeping.members.lock();
        members.push(member.clone());
        let count = members.len();
        drop(members);
        let mut devices = self.keeping.devices.lock();
        *devices = (*devices).max(count);
        drop(devices);
        self.keep(member).map_err(|error| ReservationError::Failed(error).into())
    }

    /// Leaves all devices but those with these names, because they no longer belong to the pool.
    pub fn keep_only(&self, names: &[String]) {
        let is_left = |member: &Arc<Member>| !names.contains(&member.name);
        let left: Vec<_> = self.keeping.members.lock().extract_if(.., |it| is_left(it)).collect();
        *self.keeping.devices.lock() -= left.len();
        for member in left {
            member.has_left.store(true, Ordering::Release);
            // Not during a sign of life, which would reserve it again.
            let _key = member.key.lock();
            if let Err(error) = member.device.register(0) {
                tracing::warn!("{} stays reserved: {error}", member.name);
            }
        }
    }

    /// Gives the pool up: a controller that waits for it may take it at once. Nothing may be
    /// written to it afterwards. It stays reserved, because an earlier owner that was stopped could
    /// still write.
    pub fn end(&self) {
        let was_fenced = self.keeping.has_ended.swap(true, Ordering::AcqRel);
        self.keeping.lease.end();
        let begun = Instant::now();
        for (member, thread) in self.threads.lock().drain(..) {
            if member.has_left.load(Ordering::Acquire) {
                continue;
            }
            while !thread.is_finished() && begun.elapsed() < ENDS_WITHIN {
                thread::sleep(LOOK_INTERVAL);
            }
            if !thread.is_finished() || was_fenced {
                continue;
            }
            let key = *member.key.lock();
            if let Err(error) = member.device.change(key.raw(), key.left().raw()) {
                tracing::warn!("can't mark {} as left: {error}", member.name);
            }
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.end();
    }
}
