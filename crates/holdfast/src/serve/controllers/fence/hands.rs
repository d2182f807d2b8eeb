//! A thread for each device for blocking requests: one that hangs is busy, and the others continue.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use sys::{Registered, Reservable, ReservationError};

use super::Named;
use super::key::Key;
use super::taking::{TakeError, Taken, take};

/// A request to a device.
#[derive(Clone, Debug)]
pub(super) enum Asked {
    /// Return the registrations.
    Look,
    /// Take the device, also from these keys.
    Take { own: Key, silent: Vec<u64> },
    /// Restore the registration that preceded this process.
    Leave { former: u64 },
}

/// The result of a request.
#[derive(Debug)]
pub(super) enum Answer {
    Seen(Result<Registered, ReservationError>),
    Taken(Result<Taken, TakeError>),
    /// Left, as far as the device could be reached.
    Left,
}

/// The threads.
pub(super) struct Hands {
    askers: Vec<(Sender<Asked>, bool)>,
    answers: Receiver<(usize, Answer)>,
}

impl Hands {
    /// Starts one for each device.
    ///
    /// # Errors
    /// If no thread can be created.
    pub(super) fn new(devices: &[Named]) -> std::io::Result<Self> {
        let (answered, answers) = mpsc::channel();
        let mut askers = Vec::new();
        for (index, Named { device, .. }) in devices.iter().enumerate() {
            let (sender, asked) = mpsc::channel();
            let (device, answered) = (device.clone(), answered.clone());
            let builder = thread::Builder::new().name(format!("fence-{index}"));
            builder.spawn(move || work(index, &device, &asked, &answered))?;
            askers.push((sender, false));
        }
        Ok(Self { askers, answers })
    }

    /// Sends requests to the devices that are not busy, and waits for their answers for a limited
    /// time.
    pub(super) fn ask(
        &mut self,
        asked: impl IntoIterator<Item = (usize, Asked)>,
        within: Duration,
    ) -> Vec<(usize, Answer)> {
        while let Ok((index, _)) = self.answers.try_recv() {
            // The answer to an earlier request, too late.
            self.askers[index].1 = false;
        }
        let mut waits_for = 0;
        for (index, asked) in asked {
            let (sender, is_busy) = &mut self.askers[index];
            if !*is_busy && sender.send(asked).is_ok() {
                *is_busy = true;
                waits_for += 1;
            }
        }
        let (begun, mut answers) = (Instant::now(), Vec::new());
        while answers.len() < waits_for
            && let Ok((index, answer)) =
                self.answers.recv_timeout(within.saturating_sub(begun.elapsed()))
        {
            self.askers[index].1 = false;
            answers.push((index, answer));
        }
        answers
    }
}

fn work(
    index: usize,
    device: &Arc<dyn Reservable>,
    asked: &Receiver<Asked>,
    answered: &Sender<(usize, Answer)>,
) {
    while let Ok(asked) = asked.recv() {
        let answer = match asked {
            Asked::Look => Answer::Seen(device.registered()),
            Asked::Take { own, silent } => Answer::Taken(take(&**device, own, &silent)),
            Asked::Leave { former } => {
                // A registration that remains counts as silent, and is preempted like any other.
                let _ = device.register(former);
                Answer::Left
            }
        };
        if answered.send((index, answer)).is_err() {
            return;
        }
    }
}
