//! A channel over lines whose requests complete when the test says so.

use std::cell::RefCell;
use std::rc::Rc;

use format::label::MemberState;

use sys::Disk;

use super::super::tests::{Plain, devices, frame, made, made_in_stripes};
use super::super::{Device, DeviceSet};
use super::*;
use crate::devices::DeviceState::{self, CatchingUp, In, Out};
use crate::segments::Segments;

/// The requests of one line that have not completed.
#[derive(Default)]
struct Asked {
    reads: Vec<(u64, u64, Vec<FrameMut>)>,
    writes: Vec<(u64, Vec<Frame>)>,
    ended: Vec<Completion>,
}

struct TestLine(Rc<RefCell<Asked>>);

impl Line for TestLine {
    fn read(&mut self, name: u64, at: u64, frames: Vec<FrameMut>) -> io::Result<()> {
        self.0.borrow_mut().reads.push((name, at, frames));
        Ok(())
    }

    fn write(&mut self, name: u64, _: u64, frames: Vec<Frame>, _: Persist) -> io::Result<()> {
        self.0.borrow_mut().writes.push((name, frames));
        Ok(())
    }

    fn check_range(&self, _: u64, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn submit(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn complete(&mut self, out: &mut Vec<Completion>) -> io::Result<()> {
        out.append(&mut self.0.borrow_mut().ended);
        Ok(())
    }

    fn next_retry(&self) -> Option<Duration> {
        None
    }

    fn has_ended(&self) -> bool {
        !self.0.borrow().ended.is_empty()
    }

    fn end_retries(&self) {}

    fn notices(&self) -> &[String] {
        &[]
    }
}

type Lines = Rc<RefCell<Vec<Rc<RefCell<Asked>>>>>;

struct World {
    disks: Vec<Arc<Plain>>,
    set: DeviceSet,
    channel: SetChannel,
    lines: Lines,
}

impl World {
    fn new(count: usize) -> Self {
        Self::of(made(count))
    }

    fn of((disks, set): (Vec<Arc<Plain>>, DeviceSet)) -> Self {
        let lines = Lines::default();
        let laid = lines.clone();
        let lay = move |_: &Device| -> Option<Box<dyn Line>> {
            let asked = Rc::<RefCell<Asked>>::default();
            laid.borrow_mut().push(asked.clone());
            Some(Box::new(TestLine(asked)))
        };
        let event = Arc::new(Event::new().unwrap());
        let members = set.members();
        let channel = SetChannel::over(members, event, Box::new(lay));
        Self { disks, set, channel, lines }
    }

    fn line(&self, number: usize) -> Rc<RefCell<Asked>> {
        self.lines.borrow()[number].clone()
    }

    /// Completes all requests of a line.
    fn end(&self, number: usize, is_well: bool) {
        let line = self.line(number);
        let line = &mut *line.borrow_mut();
        let reads = line.reads.drain(..).map(|(name, _, mut frames)| {
            frames.iter_mut().for_each(|frame| frame.fill(number as u8 + 1));
            (name, Buffers::Read(frames))
        });
        let writes = line.writes.drain(..).map(|(name, frames)| (name, Buffers::Write(frames)));
        let result = || match is_well {
            true => Ok(()),
            false => Err(io::Error::other("it fails")),
        };
        let all = reads.chain(writes);
        let ended =
            all.map(|(user_data, buffers)| Completion { user_data, buffers, result: result() });
        line.ended.extend(ended);
    }

    /// Completes all reads of a line with its disk's content.
    fn end_reads(&self, number: usize) {
        let line = self.line(number);
        let line = &mut *line.borrow_mut();
        for (user_data, at, mut frames) in line.reads.drain(..) {
            let result = self.disks[number].read(at, &mut frames);
            let buffers = Buffers::Read(frames);
            line.ended.push(Completion { user_data, buffers, result });
        }
    }

    fn append(&mut self, user_data: u64) {
        let place = Place::of_block(2, user_data as u32);
        self.channel.append(user_data, place, vec![frame(1); 2], Persist::Itself).unwrap();
        self.channel.submit().unwrap();
    }

    fn read(&mut self, user_data: u64) {
        let frames = vec![FrameMut::stale()];
        self.channel.read(user_data, Place::of_block(2, 0), frames).unwrap();
        self.channel.submit().unwrap();
    }

    fn collect(&mut self) -> Vec<Completion> {
        let mut out = Vec::new();
        self.channel.complete(&mut out).unwrap();
        out
    }

    /// Collects until something has completed.
    fn wait(&mut self) -> Vec<Completion> {
        loop {
            let out = self.collect();
            if !out.is_empty() {
                return out;
            }
            self.channel.wait().unwrap();
        }
    }

    fn states(&self) -> Vec<DeviceState> {
        self.set.devices().iter().map(|device| device.state).collect()
    }

    /// Returns which lines have reads.
    fn asked_to_read(&self) -> Vec<usize> {
        let lines = self.lines.borrow();
        (0..lines.len()).filter(|at| !lines[*at].borrow().reads.is_empty()).collect()
    }
}

#[test]
fn an_append_completes_when_all_devices_have_it() {
    let mut world = World::new(3);
    world.append(7);
    for number in [1, 0] {
        world.end(number, true);
        assert!(world.collect().is_empty());
    }
    world.end(2, true);
    let ended = world.collect();
    assert!(ended[0].user_data == 7 && ended[0].result.is_ok());
    assert!(matches!(&ended[0].buffers, Buffers::Write(frames) if frames.len() == 2));
    assert_eq!((world.channel.in_flight(), world.channel.next_retry()), (0, None));
}

#[test]
fn a_device_that_fails_an_append_is_out_before_the_completion() {
    let mut world = World::new(3);
    world.append(1);
    world.end(0, true);
    world.end(1, false);
    assert!(world.collect().is_empty());
    assert_eq!(world.states(), [In, Out, In]);
    assert_eq!(world.disks[2].label().members[1].state, MemberState::Out);
    world.end(2, true);
    assert!(world.collect()[0].result.is_ok());
    // The next append no longer goes there.
    world.append(2);
    assert!(world.line(1).borrow().writes.is_empty());
    // All fail: the last one's error is the pool's.
    world.end(0, false);
    world.end(2, false);
    let ended = world.collect();
    assert!(ended.len() == 1 && ended[0].result.is_err());
    assert_eq!(world.states().iter().filter(|state| **state == In).count(), 1);
}

#[test]
fn a_write_completes_without_a_late_device_which_stays_out_until_its_write_ends() {
    let mut world = World::new(3);
    world.append(1);
    world.end(0, true);
    world.end(2, true);
    let ended = world.wait();
    assert!(ended[0].result.is_ok());
    assert_eq!(world.states(), [In, Out, In]);
    assert!(world.set.devices()[1].why_out.as_ref().unwrap().contains("longer"));
    assert!(world.set.take_back(1).is_err(), "its write may still land");
    world.end(1, true);
    assert!(world.collect().is_empty(), "it has already completed");
    world.set.take_back(1).unwrap();
    assert_eq!(world.states(), [In, CatchingUp, In]);
    world.append(2);
    assert_eq!(world.line(1).borrow().writes.len(), 1);
}

#[test]
fn no_device_is_late_before_one_has_completed() {
    let mut world = World::new(2);
    world.append(1);
    std::thread::sleep(Duration::from_millis(80));
    assert!(world.collect().is_empty());
    assert_eq!(world.states(), [In, In]);
    world.end(0, true);
    world.end(1, true);
    assert_eq!(world.collect().len(), 1, "they had completed before the check");
    assert_eq!(world.states(), [In, In]);
}

#[test]
fn a_failed_or_late_read_is_served_by_another_device() {
    let mut world = World::new(2);
    world.read(1);
    let first = world.asked_to_read()[0];
    world.end(first, false);
    assert!(world.collect().is_empty());
    assert_eq!(world.asked_to_read(), [1 - first]);
    world.end(1 - first, true);
    let ended = world.collect();
    let Buffers::Read(frames) = &ended[0].buffers else { panic!("it was a read") };
    assert_eq!(frames[0][0], 2 - first as u8);
    assert_eq!(world.set.devices()[first].read_errors, 1);
    assert_eq!(world.set.devices()[first].reads_elsewhere, 1);
    // Late: a second device is read, and the first answer counts.
    world.read(2);
    while world.asked_to_read().len() < 2 {
        assert!(world.collect().is_empty());
        world.channel.wait().unwrap();
    }
    world.end(1 - first, true);
    assert_eq!(world.collect()[0].user_data, 2);
    assert_eq!(world.channel.in_flight(), 0);
    world.end(first, true);
    assert!(world.collect().is_empty(), "it has already completed");
    assert_eq!(world.set.devices()[first].reads_elsewhere, 2);
    assert_eq!(world.set.devices()[1 - first].reads_elsewhere, 0);
    // No device returns it.
    world.read(3);
    world.end(first, false);
    assert!(world.collect().is_empty());
    world.end(1 - first, false);
    let ended = world.collect();
    assert!(ended[0].result.is_err());
    assert!(matches!(&ended[0].buffers, Buffers::Read(frames) if frames.len() == 1));
    assert_eq!(world.states(), [In, In]);
}

#[test]
fn a_device_with_many_late_reads_goes_out() {
    let mut world = World::new(2);
    for user_data in 0..100 {
        world.read(user_data);
        let asked = world.asked_to_read();
        world.end(1, true);
        if asked == [1] {
            world.wait();
            continue;
        }
        while world.asked_to_read().len() < 2 && world.states()[0] == In {
            assert!(world.collect().is_empty());
            world.channel.wait().unwrap();
        }
        world.end(1, true);
        world.wait();
        if world.states()[0] == Out {
            return;
        }
    }
    panic!("the device is still in");
}

#[test]
fn a_device_added_while_the_channel_is_in_use_gets_writes() {
    let mut world = World::new(2);
    let device = devices(&[Plain::new()]).remove(0);
    world.append(1);
    assert_eq!(world.set.add(device, [9; 16]).unwrap(), 2);
    world.append(2);
    assert_eq!(world.line(2).borrow().writes.len(), 1);
    for number in 0..3 {
        world.end(number, true);
    }
    assert_eq!(world.collect().len(), 2);
    // A device that goes and one that replaces it use the same lane, again and again.
    for entropy in 0..100 {
        let number = world.set.devices().last().unwrap().number;
        world.set.take_out(number, "it goes").unwrap();
        let device = devices(&[Plain::new()]).remove(0);
        world.set.replace(number, device, [entropy; 16]).unwrap();
        world.append(u64::from(entropy) % 100);
        let last = world.lines.borrow().len() - 1;
        assert_eq!(world.line(last).borrow().writes.len(), 1);
        for number in [0, 1, last] {
            world.end(number, true);
        }
        assert_eq!(world.collect().len(), 1);
    }
}

/// The last device that is in may be late: it is waited for, and that counts as one error.
#[test]
fn a_late_device_that_must_stay_in_is_waited_for() {
    let mut world = World::new(2);
    world.set.take_out(1, "a test").unwrap();
    world.set.take_back(1).unwrap();
    world.append(1);
    world.end(1, true);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(120) {
        assert!(world.collect().is_empty());
        world.channel.wait().unwrap();
    }
    assert_eq!((world.states()[0], world.set.devices()[0].write_errors), (In, 1));
    world.end(0, true);
    assert!(world.collect()[0].result.is_ok());
}

#[path = "channel_stripes_tests.rs"]
mod stripes;
