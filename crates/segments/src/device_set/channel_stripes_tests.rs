//! The same for a pool in stripes.

use super::*;

/// Five devices, with a record of two rows at row 3 of segment 2: column c is on device 2 + c.
fn in_stripes() -> (World, Vec<Frame>) {
    let world = World::of(made_in_stripes(5));
    let frames: Vec<Frame> = (1..=6).map(frame).collect();
    world.set.append_as(Place::of_block(2, 3), &frames, Persist::Itself).unwrap();
    (world, frames)
}

fn elsewhere(world: &World) -> Vec<u64> {
    world.set.devices().iter().map(|device| device.reads_elsewhere).collect()
}

fn read_two(world: &mut World, column: u32) {
    let place = Place::of_block(2, column * 256 + 3);
    world.channel.read(9, place, vec![FrameMut::stale(), FrameMut::stale()]).unwrap();
}

fn found(ended: &[Completion]) -> Vec<u8> {
    let Buffers::Read(frames) = &ended[0].buffers else { panic!("it was a read") };
    frames.iter().map(|frame| frame[0]).collect()
}

#[test]
fn a_column_that_its_device_fails_to_read_is_reconstructed() {
    let (mut world, _) = in_stripes();
    read_two(&mut world, 1);
    assert_eq!(world.asked_to_read(), [3]);
    world.end_reads(3);
    assert_eq!(found(&world.collect()), [3, 4]);
    assert_eq!(elsewhere(&world), [0; 5]);
    // It fails: three of the other four are read, and one more in place of the one that fails.
    read_two(&mut world, 1);
    world.end(3, false);
    assert!(world.collect().is_empty());
    assert_eq!(world.asked_to_read(), [0, 2, 4]);
    world.end(4, false);
    world.end_reads(0);
    assert!(world.collect().is_empty());
    assert_eq!(world.asked_to_read(), [1, 2]);
    world.end_reads(1);
    assert!(world.collect().is_empty(), "two of three");
    world.end_reads(2);
    assert_eq!(found(&world.collect()), [3, 4]);
    // It is out: the others are read at once.
    world.set.take_out(3, "a test").unwrap();
    read_two(&mut world, 1);
    assert_eq!(world.asked_to_read(), [0, 2, 4]);
    [4, 2, 0].into_iter().for_each(|number| world.end_reads(number));
    assert_eq!(found(&world.collect()), [3, 4]);
    assert_eq!(elsewhere(&world), [0, 0, 0, 2, 0]);
    // If one more fails there are too few.
    read_two(&mut world, 1);
    world.end(0, false);
    world.end(2, false);
    world.end(4, false);
    assert!(world.collect().is_empty());
    world.end(1, true);
    assert!(world.collect()[0].result.is_err());
    assert_eq!(world.channel.in_flight(), 0);
    assert_eq!(elsewhere(&world), [0, 0, 0, 2, 0], "no other device had it");
    // A blocking read gets the same.
    world.set.read(Place::of_block(2, 256 + 3), &mut [FrameMut::stale()]).unwrap();
    assert_eq!(elsewhere(&world), [0, 0, 0, 3, 0]);
}

#[test]
fn a_column_of_a_late_device_is_reconstructed() {
    let (mut world, _) = in_stripes();
    read_two(&mut world, 0);
    while world.asked_to_read().len() < 4 {
        assert!(world.collect().is_empty());
        world.channel.wait().unwrap();
    }
    world.asked_to_read().into_iter().filter(|at| *at != 2).for_each(|at| world.end_reads(at));
    assert_eq!(found(&world.collect()), [1, 2]);
    world.end_reads(2);
    assert!(world.collect().is_empty(), "it has already completed");
    assert_eq!(world.channel.in_flight(), 0);
}

#[test]
fn a_read_across_the_end_of_a_column_uses_two_devices() {
    let (mut world, _) = in_stripes();
    let frames = vec![FrameMut::stale(), FrameMut::stale()];
    world.channel.read(1, Place::of_block(2, 255), frames).unwrap();
    assert_eq!(world.asked_to_read(), [2, 3]);
    world.end(3, true);
    assert!(world.collect().is_empty());
    world.end(2, true);
    assert_eq!(found(&world.collect()), [3, 4]);
}

#[test]
fn each_device_gets_its_column_of_an_append() {
    let (mut world, frames) = in_stripes();
    world.channel.append(1, Place::of_block(2, 9), frames, Persist::Itself).unwrap();
    let first = |line: usize| world.line(line).borrow().writes[0].1[0][0];
    // Data 1, 3 and 5, P and Q: 1 ^ 3 ^ 5 and 1 ^ 2 x 3 ^ 4 x 5.
    assert_eq!([2, 3, 4, 0, 1].map(first), [1, 3, 5, 7, 0x13]);
    // As many devices as there are data columns must have it before others count as late.
    [2, 3].into_iter().for_each(|number| world.end(number, true));
    std::thread::sleep(Duration::from_millis(80));
    assert!(world.collect().is_empty());
    std::thread::sleep(Duration::from_millis(80));
    assert!(world.collect().is_empty());
    assert_eq!(world.states(), [In; 5]);
    world.end(4, true);
    let ended = world.wait();
    assert!(ended[0].result.is_ok());
    assert_eq!(world.states(), [Out, Out, In, In, In]);
    assert!(matches!(&ended[0].buffers, Buffers::Write(frames) if frames.len() == 6));
}
