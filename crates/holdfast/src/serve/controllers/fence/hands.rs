//! A thread for each device that asks it: one that hangs is busy, and the others go on.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use sys::{Registered, Reservable, ReservationError};

use super::Named;
use super::key::Key;
use super::taking::{TakeError, Taken, take};

/// What is asked of a device.
#[derive(Clone, Debug)]
pub(super) enum Asked {
    /// Who has registered.
    Look,
    /// To be taken, from these keys too.
    Take { own: Key, silent: Vec<u64> },
    /// To know what was registered before this process.
    Leave { former: u64 },
}

/// What has come of it.
#[derive(Debug)]
pub(super) enum Answer {
    Seen(Result<Registered, ReservationError>),
    Taken(Result<Taken, TakeError>),
    /// As far as it could be asked.
    Left,
}

/// The threads.
pub(super) struct Hands {
    askers: Vec<(Sender<Asked>, bool)>,
    answers: Receiver<(usize, Answer)>,
}

impl Hands {
    /// One for each device.
    ///
    /// # Errors
    /// If there can't be a thread.
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

    /// Asks devices, those that are not busy, and waits for their answers, for so long.
    pub(super) fn ask(
        &mut self,
        asked: impl IntoIterator<Item = (usize, Asked)>,
        within: Duration,
    ) -> Vec<(usize, Answer)> {
        while let Ok((index, _)) = self.answers.try_recv() {
            // Of before, and too late.
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
                // What is left over is silent, and is taken away as any other.
                let _ = device.register(former);
                Answer::Left
            }
        };
        if answered.send((index, answer)).is_err() {
            return;
        }
    }
}
