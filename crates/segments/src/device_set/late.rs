//! Late devices: writes complete without them, and reads go to other devices.

use std::io;
use std::time::{Duration, Instant};

use super::channel::{SetChannel, TICK};
use super::lanes::{Lanes, ReadRun, Request};

/// A device that takes an append so much later than the others goes out.
const WRITE_LATE: Duration = Duration::from_millis(50);
/// A read that takes so long is sent to another device, too.
const READ_LATE: Duration = Duration::from_millis(20);
/// A device with this many successive late reads goes out.
const LATE_READS_MAX: u32 = 16;

impl SetChannel {
    /// Finds late requests. Completions were collected before, so that a thread that was itself
    /// paused considers no device late.
    pub(super) fn look_for_late(&mut self) {
        let now = Instant::now();
        if self.requests.waiting == 0 || now.duration_since(self.looked) < TICK {
            return;
        }
        self.looked = now;
        for index in self.requests.numbers() {
            match self.requests.get(index) {
                Some(Request::Append { owed, taken: Some(taken), .. })
                    if *owed != 0 && now.duration_since(*taken) > WRITE_LATE =>
                {
                    let owed = *owed;
                    self.do_without(index, owed);
                }
                Some(Request::Read { runs, is_answered: false, .. }) => {
                    let is_late = |run: &ReadRun| {
                        run.frames.is_none() && now.duration_since(run.asked) > READ_LATE
                    };
                    let late = (0..).zip(&*runs).filter(|(_, run)| is_late(run));
                    let late: Vec<_> = late.map(|(number, run)| (number, run.under_way)).collect();
                    for (run, lanes) in late {
                        self.read_is_late((index, run), lanes);
                    }
                }
                _ => {}
            }
        }
    }

    /// Completes an append without these lanes, which are late.
    fn do_without(&mut self, index: u32, late: Lanes) {
        for number in (0..self.lanes.len()).filter(|number| late & (1 << number) != 0) {
            let text =
                format!("a write took {} ms longer than on other devices", WRITE_LATE.as_millis());
            let failed = io::Error::new(io::ErrorKind::TimedOut, text);
            let is_out = self.members.fail(&self.lanes[number].slot, failed).is_ok();
            match self.requests.get(index) {
                Some(Request::Append { owed, .. }) if is_out => *owed &= !(1 << number),
                // It must stay in, and is waited for as long as it takes.
                Some(Request::Append { taken, .. }) => *taken = None,
                _ => {}
            }
        }
        self.answer_append(index);
    }

    fn read_is_late(&mut self, part: (u32, usize), late: Lanes) {
        // A device counts as late once another one was asked.
        if let Ok(true) = self.ask(part, Vec::new()) {
            for number in (0..self.lanes.len()).filter(|number| late & (1 << number) != 0) {
                let lane = &mut self.lanes[number];
                lane.late_reads += 1;
                if lane.late_reads >= LATE_READS_MAX {
                    let text = format!("{LATE_READS_MAX} reads in a row were late");
                    // The last device that is in stays in.
                    let error = io::Error::new(io::ErrorKind::TimedOut, text);
                    let _ = self.members.fail(&lane.slot, error);
                }
            }
        }
    }
}
