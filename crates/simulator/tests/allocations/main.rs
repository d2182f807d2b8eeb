//! What each kind of command costs from its first byte to the last byte of its answer, counted and
//! not timed: allocations, system calls, requests to the device. None may exceed the table below;
//! lower its numbers when a change needs fewer.
//!
//! `HOLDFAST_ALLOCATIONS=COMMAND` prints where the allocations of a command come from.

mod commands;
mod origins;
mod world;

use std::alloc::System;

use commands as of;
use sys::allocations::Counting;
use world::{Command, Spent, World};

#[global_allocator]
static ALLOCATOR: Counting<System> = Counting(System);

/// The counts, for one command on average.
const COLUMNS: [&str; 5] = ["allocations", "bytes", "system calls", "reads", "writes, flushes"];

/// A kind of command: its n-th one, how many are counted, after as many that are not (these grow
/// tables and buffers), and what one costs at most.
type Row = (&'static str, fn(&mut World, u64) -> Command, u64, [f64; COLUMNS.len()]);

/// The measured numbers, rounded up.
const ROWS: [Row; 12] = [
    ("TEST UNIT READY", of::test_unit_ready, 500, [0.0, 0.0, 2.0, 0.0, 0.0]),
    ("read 4 KiB, cached", of::read_cached, 500, [0.0, 0.0, 2.0, 0.0, 0.0]),
    ("read 4 KiB, device", of::read_from_device, 2000, [2.0, 280.0, 3.0, 1.0, 0.0]),
    ("write 4 KiB", of::write_incompressible, 500, [11.0, 5520.0, 3.0, 0.0, 1.0]),
    ("write 4 KiB, half", of::write_half_compressible, 500, [12.1, 7740.0, 3.0, 0.0, 1.0]),
    ("write 4 KiB, duplicate", of::write_duplicate, 500, [12.5, 5760.0, 3.8, 0.8, 1.0]),
    ("write 64 KiB", of::write_64_kib, 200, [15.1, 7430.0, 4.0, 0.0, 1.0]),
    ("write 256 KiB", of::write_256_kib, 100, [20.1, 16090.0, 4.0, 0.0, 1.0]),
    ("WRITE SAME 1 MiB", of::write_same, 40, [9.0, 5510.0, 3.0, 0.0, 1.0]),
    ("COMPARE AND WRITE", of::compare_and_write, 500, [22.0, 7320.0, 3.0, 0.0, 1.0]),
    ("UNMAP 1 MiB", of::unmap, 40, [12.0, 5560.0, 3.0, 0.0, 1.0]),
    ("EXTENDED COPY 1 MiB", of::extended_copy, 100, [31.1, 7520.0, 3.0, 0.0, 1.0]),
];

/// Returns what a command of a kind costs on average.
fn measure(world: &mut World, (name, nth, count, _): Row) -> [f64; COLUMNS.len()] {
    let mut spent = Spent::default();
    for number in 0..2 * count {
        let command = nth(world, number);
        let is_counted = number >= count;
        let origins = origins::of(name, is_counted);
        let (more, _) = world.command(command);
        drop(origins);
        if is_counted {
            spent += more;
        }
    }
    let Spent { allocations, system_calls, reads, writes } = spent;
    [allocations.count, allocations.bytes, system_calls, reads, writes]
        .map(|number| number as f64 / count as f64)
}

#[test]
fn no_command_exceeds_its_allocation_budget() {
    let mut world = World::new();
    commands::fill(&mut world);
    println!("| a command | {} |\n|---|{}", COLUMNS.join(" | "), "---:|".repeat(COLUMNS.len()));
    let mut exceeded = Vec::new();
    for row in ROWS {
        let (name, _, count, most) = row;
        let costs = measure(&mut world, row);
        println!("| {name} | {} |", costs.map(|cost| format!("{cost:.2}")).join(" | "));
        origins::print(name, count);
        for ((what, cost), most) in COLUMNS.iter().zip(costs).zip(most) {
            if cost > most {
                exceeded.push(format!("{name}: {cost:.2} {what}, {most} at most"));
            }
        }
    }
    assert!(exceeded.is_empty(), "{exceeded:#?}");
}
