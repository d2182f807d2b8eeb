//! Persistent reservations of a block device (SPC-4; `linux/pr.h`): the device itself enforces who
//! may write to it.
//!
//! The reservation is always of the type *write exclusive, registrants only*: everybody may read,
//! and only those who have registered a key may write. Other writes fail with `EBADE`.
//!
//! The kernel's own calls do not report keys that others have registered, so these are read with a
//! SCSI command (`SG_IO`).
#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::answers::{Ended, ReservationError, status_of};
use crate::scsi::read_by_scsi;

/// `_IOW('p', number, size)` of the kernel's `linux/pr.h`.
const fn of_pr(number: u32, bytes: u32) -> libc::Ioctl {
    (0x4000_0000 | (bytes << 16) | ((b'p' as u32) << 8) | number) as libc::Ioctl
}
const REGISTER: libc::Ioctl = of_pr(200, 24);
const RESERVE: libc::Ioctl = of_pr(201, 16);
const PREEMPT_ABORT: libc::Ioctl = of_pr(204, 24);
const CLEAR: libc::Ioctl = of_pr(205, 16);
/// `PR_FL_IGNORE_KEY`: replaces any previously registered key.
const IGNORE_KEY: u32 = 1;
/// `PR_WRITE_EXCLUSIVE_REG_ONLY`.
const TYPE: u32 = 3;
/// The same in SCSI, with the scope of a logical unit.
const SCOPE_AND_TYPE: u8 = 5;

/// How often a call is repeated that ends with a temporary status, such as a unit attention.
const TRIES_MAX: u32 = 8;
const TRY_PAUSE: Duration = Duration::from_millis(20);
/// The maximum number of keys that are read: two controllers, with a few paths each.
const KEYS_MAX: usize = 1024;

/// The registrations and the reservation of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registered {
    /// All keys, in order, each once, regardless of the paths over which they were registered.
    pub keys: Vec<u64>,
    /// The key of the holder of the reservation.
    pub holder: Option<u64>,
}

/// A device that can be reserved.
pub trait Reservable: Send + Sync {
    /// Registers a key, replacing the one that was registered from here; 0 removes it.
    ///
    /// # Errors
    /// Those of the device.
    fn register(&self, key: u64) -> Result<(), ReservationError>;

    /// Replaces exactly this key, registered from here, by another one.
    ///
    /// # Errors
    /// [`ReservationError::Conflict`] if it is not registered from here.
    fn change(&self, from: u64, to: u64) -> Result<(), ReservationError>;

    /// Takes the reservation with the registered key.
    ///
    /// # Errors
    /// [`ReservationError::Conflict`] if another key holds it.
    fn reserve(&self, key: u64) -> Result<(), ReservationError>;

    /// Removes another key's registration and reservation, and aborts its commands in flight.
    ///
    /// # Errors
    /// [`ReservationError::Conflict`] if it is not registered.
    fn preempt_and_abort(&self, key: u64, other: u64) -> Result<(), ReservationError>;

    /// Reads the registered keys, and the holder of the reservation.
    ///
    /// # Errors
    /// Those of the device; [`ReservationError::Conflict`] if the reservation is of another type.
    fn registered(&self) -> Result<Registered, ReservationError>;
}

/// A block device with reservations.
#[derive(Debug)]
pub struct ReservedDevice(File);

#[repr(C)]
struct Registration {
    old_key: u64,
    new_key: u64,
    flags: u32,
    pad: u32,
}

#[repr(C)]
struct Reservation {
    key: u64,
    kind: u32,
    flags: u32,
}

/// `struct pr_preempt`. Its first key is called the old one there, and is the one of the caller
/// (`sd_pr_preempt`, `nvme_pr_preempt`).
#[repr(C)]
struct Preemption {
    own_key: u64,
    other_key: u64,
    kind: u32,
    flags: u32,
}

impl ReservedDevice {
    /// Opens the device at `path`, even if others use it.
    ///
    /// # Errors
    /// [`ReservationError::Unsupported`] if it is not a block device; those of the system.
    pub fn open(path: &Path) -> Result<Self, ReservationError> {
        if !std::fs::metadata(path)?.file_type().is_block_device() {
            return Err(ReservationError::Unsupported("it is not a block device".into()));
        }
        Ok(Self(OpenOptions::new().read(true).write(true).open(path)?))
    }

    /// Removes all registrations, and the reservation.
    ///
    /// # Errors
    /// [`ReservationError::Conflict`] if the key is not registered from here.
    pub fn clear(&self, key: u64) -> Result<(), ReservationError> {
        self.call(CLEAR, &Reservation { key, kind: 0, flags: 0 })
    }

    fn call<T>(&self, request: libc::Ioctl, argument: &T) -> Result<(), ReservationError> {
        patiently(|| {
            // SAFETY: `argument` has the layout that `linux/pr.h` gives the structure of this
            // request, which the kernel only reads, and outlives the call.
            status_of(unsafe { libc::ioctl(self.0.as_raw_fd(), request, &raw const *argument) })
        })
    }

    /// Executes PERSISTENT RESERVE IN with this service action.
    fn ask(&self, action: u8, answer: &mut [u8]) -> Result<(), ReservationError> {
        let len = u16::try_from(answer.len()).unwrap_or(u16::MAX).to_be_bytes();
        let command = [0x5e, action, 0, 0, 0, 0, 0, len[0], len[1], 0];
        patiently(|| read_by_scsi(&self.0, &command, answer))
    }
}

impl Reservable for ReservedDevice {
    fn register(&self, key: u64) -> Result<(), ReservationError> {
        self.call(REGISTER, &Registration { old_key: 0, new_key: key, flags: IGNORE_KEY, pad: 0 })
    }

    fn change(&self, from: u64, to: u64) -> Result<(), ReservationError> {
        self.call(REGISTER, &Registration { old_key: from, new_key: to, flags: 0, pad: 0 })
    }

    fn reserve(&self, key: u64) -> Result<(), ReservationError> {
        self.call(RESERVE, &Reservation { key, kind: TYPE, flags: 0 })
    }

    fn preempt_and_abort(&self, key: u64, other: u64) -> Result<(), ReservationError> {
        let preemption = Preemption { own_key: key, other_key: other, kind: TYPE, flags: 0 };
        self.call(PREEMPT_ABORT, &preemption)
    }

    fn registered(&self) -> Result<Registered, ReservationError> {
        let mut answer = vec![0; 8 + 8 * KEYS_MAX];
        self.ask(0, &mut answer)?;
        let keys = keys_of(&answer);
        let mut answer = [0; 24];
        self.ask(1, &mut answer)?;
        Ok(Registered { keys, holder: holder_of(&answer)? })
    }
}

/// Returns the keys in the response to READ KEYS.
fn keys_of(answer: &[u8]) -> Vec<u64> {
    let len = u32_at(answer, 4) as usize;
    let keys = answer[8..].chunks_exact(8).take(len / 8);
    let mut keys: Vec<u64> = keys.map(|key| u64_at(key, 0)).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Returns the key in the response to READ RESERVATION.
fn holder_of(answer: &[u8; 24]) -> Result<Option<u64>, ReservationError> {
    match (u32_at(answer, 4), answer[21]) {
        (0, _) => Ok(None),
        (_, SCOPE_AND_TYPE) => Ok(Some(u64_at(answer, 8))),
        _ => Err(ReservationError::Conflict),
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().fold(0, |value, byte| value << 8 | u32::from(*byte))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// Repeats a call until its result is not temporary.
fn patiently(mut call: impl FnMut() -> Ended) -> Result<(), ReservationError> {
    let mut tries = 0;
    loop {
        tries += 1;
        match call() {
            Ended::Done => return Ok(()),
            Ended::Failed(error) => return Err(error),
            Ended::MayPass(status) if tries >= TRIES_MAX => {
                let text = format!("the device returned status {status:#x}");
                return Err(ReservationError::Failed(io::Error::other(text)));
            }
            Ended::MayPass(_) => thread::sleep(TRY_PAUSE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_of_devices_are_parsed_as_in_spc() {
        let mut keys = vec![0, 0, 0, 7, 0, 0, 0, 24];
        for key in [0x4846_0100_0000_0001_u64, 5, 0x4846_0100_0000_0001] {
            keys.extend(key.to_be_bytes());
        }
        keys.extend([0xff; 16]);
        assert_eq!(keys_of(&keys), [5, 0x4846_0100_0000_0001]);
        assert_eq!(
            keys_of(&[0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff, 0, 0]),
            [],
            "the response is truncated"
        );
        let mut held = [0; 24];
        assert_eq!(holder_of(&held).unwrap(), None);
        held[7] = 16;
        held[15] = 9;
        held[21] = SCOPE_AND_TYPE;
        assert_eq!(holder_of(&held).unwrap(), Some(9));
        held[21] = 3;
        assert!(matches!(holder_of(&held), Err(ReservationError::Conflict)), "another type");
    }

    #[test]
    fn a_temporary_status_is_retried() {
        let mut times = 0;
        let attention = || {
            times += 1;
            if times < 3 { Ended::MayPass(2) } else { Ended::Done }
        };
        patiently(attention).unwrap();
        assert!(times == 3 && patiently(|| Ended::MayPass(2)).is_err());
    }

    #[test]
    fn a_file_has_no_reservations() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let opened = ReservedDevice::open(file.path());
        assert!(matches!(opened, Err(ReservationError::Unsupported(_))));
        let asked = ReservedDevice(file.reopen().unwrap());
        assert!(matches!(asked.registered(), Err(ReservationError::Unsupported(_))));
        assert!(matches!(asked.register(1), Err(ReservationError::Unsupported(_))));
    }
}
