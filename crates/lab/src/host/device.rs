//! A unit as a host uses it: over all paths in turn, with retries.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use libiscsi::{Cdb, Completion, Data, Naa, Status};

use super::acceleration::{Acceleration, Primitive};
use super::access::{Access, Ways, choose};
use super::counters::{Class, DeviceCounters, Totals};
use super::path::Path;
use super::{Host, HostError};

/// How often a command is repeated that the array has put off before the host gives up.
const RETRIES_MAX: u32 = 100;
/// How often if another host has the unit reserved: each time only for a few commands, but there
/// may be many hosts.
pub(super) const CONFLICT_RETRIES_MAX: u32 = 2000;
/// The pause before a retry if the array is busy.
const BUSY_PAUSE: Duration = Duration::from_millis(5);
/// The pause between two checks for a path, if none is up.
const NO_PATH_PAUSE: Duration = Duration::from_millis(20);

/// A unit in use by a host. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Device(pub(super) Rc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) host: Host,
    pub(super) lun: u16,
    pub(super) limits: Limits,
    pub(super) counters: RefCell<DeviceCounters>,
    pub(super) acceleration: RefCell<Acceleration>,
    pub(super) ways: Ways,
    turn: Cell<Turn>,
    reservation: Cell<Option<Reservation>>,
}

/// The identity of a unit, and its limits for commands.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits {
    pub(super) naa: Naa,
    pub(super) blocks: u64,
    pub(super) block_bytes: u32,
    /// 0: as many as fit the command.
    pub(super) write_same_blocks: u64,
    pub(super) unmap_blocks: u32,
    pub(super) unmap_ranges: u32,
    /// The optimal granularity of UNMAP, in logical blocks.
    pub(super) unmap_granularity_blocks: u32,
    /// The longest segment of EXTENDED COPY; 0 if the array does not report it.
    pub(super) copy_segment_bytes: u64,
    /// The maximum number of segments; 0 if the array does not report it.
    pub(super) copy_segment_count: u64,
    /// Vendor, product and revision of INQUIRY: ESXi copies between equal products only.
    pub(super) vendor: String,
    pub(super) product: String,
    pub(super) revision: String,
    /// Its ports are in groups, whose access states differ (ALUA).
    pub(super) has_groups: bool,
}

/// Which path is used, and for how many more commands.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    path: usize,
    left: u32,
}

impl Inner {
    fn name(&self) -> String {
        let digits: String = self.limits.naa.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("naa.{digits}")
    }
}

impl Drop for Inner {
    /// The host keeps the counts: its counters never decrease while it lives.
    fn drop(&mut self) {
        if self.limits.naa != Naa::default() {
            let totals = Totals::from(&*self.counters.borrow());
            self.host.keep(self.name(), self.lun, &totals);
        }
    }
}

/// A reservation that the host holds. It is of one path: like ESXi, the host uses no other one
/// until it is released.
#[derive(Clone, Copy, Debug)]
struct Reservation {
    path: usize,
    /// How often the path had been lost before: the array ends a reservation with the session.
    losses: u64,
}

impl Device {
    pub(super) fn new(host: &Host, lun: u16, limits: Limits) -> Self {
        Self(Rc::new(Inner {
            host: host.clone(),
            lun,
            limits,
            counters: RefCell::default(),
            acceleration: RefCell::default(),
            ways: Ways::default(),
            turn: Cell::default(),
            reservation: Cell::default(),
        }))
    }

    /// Returns the host that uses it.
    pub fn host(&self) -> &Host {
        &self.0.host
    }

    /// Returns its LUN.
    pub fn lun(&self) -> u16 {
        self.0.lun
    }

    /// Returns its name in the hosts' form: `naa.` and 32 digits.
    pub fn name(&self) -> String {
        self.0.name()
    }

    /// Returns vendor, product and revision, as INQUIRY reports them.
    pub fn identity(&self) -> String {
        let Limits { vendor, product, revision, .. } = &self.0.limits;
        format!("{vendor} {product} {revision}")
    }

    /// Returns its size in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.limits.blocks * self.block_bytes()
    }

    /// Returns the bytes of a logical block.
    pub fn block_bytes(&self) -> u64 {
        u64::from(self.0.limits.block_bytes)
    }

    /// Returns the current counters.
    pub fn counters(&self) -> DeviceCounters {
        self.0.counters.borrow().clone()
    }

    /// Returns the current sums of the counters.
    pub fn totals(&self) -> Totals {
        Totals::from(&*self.0.counters.borrow())
    }

    /// Resets the latencies of reads and writes, so that they are of one interval.
    pub fn restart_io_latency(&self) {
        self.0.counters.borrow_mut().restart_io_latency();
    }

    /// Returns the status that ESXi shows under hardware acceleration: `None` is unknown.
    pub fn supports(&self, primitive: Primitive) -> Option<bool> {
        self.0.acceleration.borrow().status(primitive)
    }

    /// Returns whether the host would try an offload now: it is switched on, and was not refused
    /// recently.
    pub fn may_offload(&self, primitive: Primitive) -> bool {
        self.0.host.settings().offloads(primitive)
            && self.0.acceleration.borrow().is_worth_trying(primitive, Instant::now())
    }

    /// Records the outcome of an offload of this many bytes.
    pub(super) fn learn<T>(&self, primitive: Primitive, bytes: u64, result: &Result<T, HostError>) {
        let mut known = self.0.acceleration.borrow_mut();
        match result {
            Ok(_) => {
                known.succeeded(primitive);
                self.0.host.note_offload(|offloads| offloads.note_done(primitive, bytes));
            }
            Err(error) if error.is_done_by_hand(primitive) => {
                let pause = self.0.host.settings().retry_offload;
                known.refused(primitive, Instant::now(), pause);
                self.0.host.note_offload(|offloads| offloads.note_refused(primitive));
            }
            Err(_) => {}
        }
    }

    /// Records that the host processed this many bytes itself. Only counted if an offload was to be
    /// used: not if it is switched off.
    pub fn did_by_hand(&self, primitive: Primitive, bytes: u64) {
        if self.0.host.settings().offloads(primitive) {
            self.0.host.note_offload(|offloads| offloads.note_by_hand(primitive, bytes));
        }
    }

    /// Makes all commands use the next path from now on, where RESERVE is sent.
    pub(super) async fn stay_on_path(&self) -> Result<(), HostError> {
        let path = self.next_path().await?;
        let index = self.0.host.paths().iter().position(|known| Rc::ptr_eq(known, &path));
        let stay = index.map(|index| Reservation { path: index, losses: path.losses() });
        self.0.reservation.set(stay);
        Ok(())
    }

    /// Makes commands use all paths again.
    pub(super) fn leave_path(&self) {
        self.0.reservation.set(None);
    }

    /// Sends a command, retries it on another path or the same one if the array or a path requires
    /// it, and counts it. `bytes` is the amount that it covers. Returns the first result that is
    /// not to be retried. A command that meets the reservation of another host waits for its end
    /// (`Scsi.ConflictRetries`), except for the commands of locks.
    pub(super) async fn execute(
        &self,
        class: Class,
        cdb: Cdb,
        data: impl Fn() -> Data,
        bytes: u64,
    ) -> Result<Completion, HostError> {
        let conflict_retries = match class {
            Class::Reserve | Class::Ats => 0,
            _ => CONFLICT_RETRIES_MAX,
        };
        self.execute_with(conflict_retries, class, cdb, data, bytes).await
    }

    /// Does the same with this many retries if the unit is reserved.
    pub(super) async fn execute_with(
        &self,
        conflict_retries: u32,
        class: Class,
        cdb: Cdb,
        data: impl Fn() -> Data,
        bytes: u64,
    ) -> Result<Completion, HostError> {
        let started = Instant::now();
        let (mut retries, mut conflicts): (u32, u32) = (0, 0);
        let end = loop {
            let path = match self.next_path().await {
                Err(HostError::Reserved) if conflicts < conflict_retries => {
                    conflicts += 1;
                    self.0.host.reactor().sleep(BUSY_PAUSE).await;
                    continue;
                }
                path => path?,
            };
            let logins = path.logins();
            let end = path.execute(self.0.lun, cdb, data()).await;
            let again = Again::of(&end.status);
            let may = match again {
                Again::Never => false,
                Again::Later | Again::AtOnce => retries < RETRIES_MAX,
                Again::Unreserved => conflicts < conflict_retries,
                Again::Elsewhere | Again::WhenReached => {
                    started.elapsed() < self.0.host.settings().paths_down
                }
            };
            self.note_end(again, &end.status);
            // A command without a response may still be executed, but not once its connection has
            // ended.
            if end.status == Status::Timeout && path.is_up() && path.logins() == logins {
                path.cut();
            }
            if !may {
                break end;
            }
            match again {
                Again::Unreserved => conflicts += 1,
                Again::Later | Again::AtOnce => retries += 1,
                _ => {}
            }
            self.0.counters.borrow_mut().retries += 1;
            if matches!(again, Again::Later | Again::Unreserved | Again::WhenReached) {
                self.0.host.reactor().sleep(BUSY_PAUSE).await;
            }
        };
        let is_good = end.status == Status::Good;
        let mut counters = self.0.counters.borrow_mut();
        counters.add(class, is_good, bytes, started.elapsed());
        Ok(end)
    }

    /// Records what the result of a command says about the unit.
    fn note_end(&self, again: Again, status: &Status) {
        match (again, status) {
            (Again::Unreserved, _) => self.0.counters.borrow_mut().conflicts += 1,
            (Again::WhenReached, _) => self.0.ways.expire(),
            (Again::AtOnce, Status::CheckCondition(sense)) if tells_of_ways(sense.asc_ascq) => {
                self.0.ways.expire();
            }
            _ => {}
        }
    }

    /// Returns the next path: round robin over those that are up and that the array prefers.
    /// [`HostError::Reserved`] if it would be the one that had a reservation, which is lost:
    /// nothing may be written on the strength of that.
    async fn next_path(&self) -> Result<Rc<Path>, HostError> {
        let host = &self.0.host;
        if let Some(Reservation { path, losses }) = self.0.reservation.get() {
            let path = &host.paths()[path];
            let is_held = path.is_up() && path.losses() == losses;
            path.get_back();
            return if is_held { Ok(path.clone()) } else { Err(HostError::Reserved) };
        }
        let started = Instant::now();
        loop {
            let paths = host.paths();
            paths.iter().for_each(Path::get_back);
            let Turn { path, left } = self.0.turn.get();
            let (first, left) = match left {
                0 => ((path + 1) % paths.len(), host.settings().io_limit.max(1)),
                left => (path, left),
            };
            self.0.keep_ways_fresh();
            let access = |index: usize| paths[index].is_up().then(|| self.0.ways.access(index));
            let all: Vec<Option<Access>> = (0..paths.len()).map(access).collect();
            if let Some(found) = choose(&all, first) {
                self.0.turn.set(Turn { path: found, left: left - 1 });
                return Ok(paths[found].clone());
            }
            if started.elapsed() > host.settings().paths_down {
                return Err(HostError::PathsDown);
            }
            host.reactor().sleep(NO_PATH_PAUSE).await;
        }
    }
}

/// What a host does with a command that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    /// It has ended.
    Never,
    /// A unit attention: it was not executed, and is repeated.
    AtOnce,
    /// The array is busy.
    Later,
    /// Another host has the unit reserved.
    Unreserved,
    /// There is no response: over another path, or the same one when it is back. It may have been
    /// executed. Hosts' commands have the same effect twice, except COMPARE AND WRITE.
    Elsewhere,
    /// The port does not reach the unit (02h/04h/0Ah to 0Ch): another one does, or will.
    WhenReached,
}

impl Again {
    fn of(status: &Status) -> Self {
        match status {
            Status::Good => Self::Never,
            Status::Cancelled | Status::Timeout => Self::Elsewhere,
            Status::Other(0x08 | 0x28) => Self::Later,
            Status::Other(0x18) => Self::Unreserved,
            Status::CheckCondition(sense) => match (sense.key, sense.asc_ascq) {
                (6, _) => Self::AtOnce,
                (2, 0x040A..=0x040C) => Self::WhenReached,
                _ => Self::Never,
            },
            Status::Other(_) => Self::Never,
        }
    }
}

/// Returns whether a unit attention means that the states of ports may have changed: after a power
/// on, or by ASYMMETRIC ACCESS STATE CHANGED and similar ones.
fn tells_of_ways(asc_ascq: u16) -> bool {
    asc_ascq >> 8 == 0x29 || matches!(asc_ascq, 0x2A06 | 0x2A07)
}

#[cfg(test)]
mod tests {
    use libiscsi::Sense;

    use super::*;

    #[test]
    fn a_status_determines_whether_and_where_a_command_is_retried() {
        let sense = |key, asc_ascq| Status::CheckCondition(Sense { key, asc_ascq, raw: vec![] });
        for (status, again) in [
            (Status::Good, Again::Never),
            (Status::Cancelled, Again::Elsewhere),
            (Status::Timeout, Again::Elsewhere),
            (Status::Other(0x28), Again::Later),
            (Status::Other(0x18), Again::Unreserved),
            (Status::Other(0x40), Again::Never),
            (sense(6, 0x2A06), Again::AtOnce),
            (sense(2, 0x040B), Again::WhenReached),
            (sense(2, 0x0401), Again::Never),
            (sense(0x0E, 0x1D00), Again::Never),
        ] {
            assert_eq!(Again::of(&status), again, "{status}");
        }
        assert!([0x2A06, 0x2907].iter().all(|asc| tells_of_ways(*asc)) && !tells_of_ways(0x2A09));
    }
}
