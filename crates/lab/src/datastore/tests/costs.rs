//! The cost of operations in commands, which a durable array does one after the other.

use super::commands::Commands;
use super::memory::Memory;
use super::world::World;
use crate::datastore::{AllocateAs, BLOCK_BYTES, Datastore, File, Mode, MountOptions, Placement};

const MIB: u64 = BLOCK_BYTES;

/// Records what the commands since the last entry were for.
struct Bill {
    medium: Memory,
    items: Vec<(&'static str, Commands)>,
}

impl Bill {
    fn of(medium: &Memory) -> Self {
        medium.take_commands();
        Self { medium: medium.clone(), items: Vec::new() }
    }

    fn note(&mut self, what: &'static str) {
        self.items.push((what, self.medium.take_commands()));
    }
}

async fn allocate(file: &File, first: u64, count: u64, placement: Placement) {
    file.allocate(first, count, AllocateAs::ToBeZeroed, placement).await.unwrap();
}

/// Returns the cost of one host alone, as it deploys a machine, and then another one.
fn bill(by_ats: bool) -> Vec<(&'static str, Commands)> {
    let mut world = World::new(64 << 30, 1);
    let (a, b) = (world.host(by_ats), world.host(by_ats));
    world.run(async move {
        Datastore::format(&a, "costs").await.unwrap();
        let one = Datastore::mount(&a, MountOptions::of_host("one")).await.unwrap();
        let two = Datastore::mount(&b, MountOptions::of_host("two")).await.unwrap();
        let mut bill = Bill::of(&a);
        let small = one.create("small", MIB).await.unwrap();
        bill.note("create, the first");
        allocate(&small, 0, 1, Placement::AsItComes).await;
        bill.note("allocate as it comes, the first of all");
        small.close().await.unwrap();
        bill.note("close");
        let thick = one.create("thick", 800 * MIB).await.unwrap();
        bill.note("create, the next");
        allocate(&thick, 0, 800, Placement::Contiguous).await;
        bill.note("allocate contiguous, in one cluster");
        thick.mark_present(3, 2).await.unwrap();
        bill.note("mark present");
        let ranges: Vec<(u64, u64)> = (0..13).map(|run| (60 * run, 30)).collect();
        thick.mark_present_in(&ranges).await.unwrap();
        bill.note("mark present, 13 ranges");
        let thin = one.create("thin", 20_000 * MIB).await.unwrap();
        bill.note("create, one more");
        allocate(&thin, 0, 1, Placement::AsItComes).await;
        bill.note("allocate as it comes, the first of a file");
        allocate(&thin, 1, 1, Placement::AsItComes).await;
        bill.note("allocate as it comes, the next");
        let wide = one.create("wide", 4000 * MIB).await.unwrap();
        a.take_commands();
        allocate(&wide, 0, 4000, Placement::Contiguous).await;
        bill.note("allocate contiguous, in five clusters");
        for file in [&thick, &thin, &wide] {
            file.close().await.unwrap();
        }
        a.take_commands();
        let thick = one.open("thick", Mode::Exclusive).await.unwrap();
        bill.note("open, of the host that had it");
        thick.extents(0, 800).await.unwrap();
        bill.note("extents, of the host that had it");
        thick.close().await.unwrap();
        a.take_commands();
        one.delete("small").await.unwrap();
        bill.note("delete, by the host that had it");
        one.delete("wide").await.unwrap();
        bill.note("delete, of five clusters");
        one.create("again", 0).await.unwrap();
        bill.note("create, where a file was deleted");
        assert_eq!(one.counters().miscompares, 0);
        let mut other = Bill::of(&b);
        let thick = two.open("thick", Mode::Exclusive).await.unwrap();
        other.note("open, of another host");
        thick.extents(0, 800).await.unwrap();
        other.note("extents, of another host");
        thick.close().await.unwrap();
        b.take_commands();
        two.delete("thick").await.unwrap();
        other.note("delete, by another host");
        bill.items.extend(other.items);
        bill.items
    })
}

/// Checks the maximum of each: reads, writes, COMPARE AND WRITE, RESERVE and RELEASE.
fn check(by_ats: bool, most: &[(&str, [u64; 5])]) {
    let bill = bill(by_ats);
    assert_eq!(bill.len(), most.len());
    for ((what, commands), (name, most)) in bill.iter().zip(most) {
        assert_eq!(what, name);
        let Commands { reads, writes, swaps, reserves, releases } = *commands;
        let kinds = [reads, writes, swaps, reserves, releases];
        let fits = kinds.iter().zip(most).all(|(count, most)| count <= most);
        assert!(fits, "{what}: {kinds:?}, not {most:?}");
    }
}

#[test]
fn operations_with_ats_cost_no_more() {
    check(
        true,
        &[
            ("create, the first", [2, 2, 3, 0, 0]),
            ("allocate as it comes, the first of all", [2, 4, 4, 0, 0]),
            ("close", [0, 0, 1, 0, 0]),
            ("create, the next", [1, 2, 3, 0, 0]),
            ("allocate contiguous, in one cluster", [1, 4, 4, 0, 0]),
            ("mark present", [0, 1, 0, 0, 0]),
            ("mark present, 13 ranges", [0, 1, 0, 0, 0]),
            ("create, one more", [1, 2, 3, 0, 0]),
            ("allocate as it comes, the first of a file", [0, 4, 4, 0, 0]),
            ("allocate as it comes, the next", [0, 2, 2, 0, 0]),
            ("allocate contiguous, in five clusters", [1, 8, 12, 0, 0]),
            ("open, of the host that had it", [0, 0, 1, 0, 0]),
            ("extents, of the host that had it", [0, 0, 0, 0, 0]),
            ("delete, by the host that had it", [0, 4, 8, 0, 0]),
            ("delete, of five clusters", [0, 8, 16, 0, 0]),
            ("create, where a file was deleted", [0, 2, 3, 0, 0]),
            ("open, of another host", [2, 0, 1, 0, 0]),
            ("extents, of another host", [2, 0, 0, 0, 0]),
            ("delete, by another host", [3, 4, 8, 0, 0]),
        ],
    );
}

#[test]
fn operations_with_reservations_cost_no_more() {
    check(
        false,
        &[
            ("create, the first", [5, 5, 0, 3, 3]),
            ("allocate as it comes, the first of all", [6, 8, 0, 4, 4]),
            ("close", [1, 1, 0, 1, 1]),
            ("create, the next", [4, 5, 0, 3, 3]),
            ("allocate contiguous, in one cluster", [5, 8, 0, 4, 4]),
            ("mark present", [0, 1, 0, 0, 0]),
            ("mark present, 13 ranges", [0, 1, 0, 0, 0]),
            ("create, one more", [4, 5, 0, 3, 3]),
            ("allocate as it comes, the first of a file", [4, 8, 0, 4, 4]),
            ("allocate as it comes, the next", [2, 4, 0, 2, 2]),
            ("allocate contiguous, in five clusters", [13, 20, 0, 12, 12]),
            ("open, of the host that had it", [1, 1, 0, 1, 1]),
            ("extents, of the host that had it", [0, 0, 0, 0, 0]),
            ("delete, by the host that had it", [8, 12, 0, 8, 8]),
            ("delete, of five clusters", [16, 24, 0, 16, 16]),
            ("create, where a file was deleted", [3, 5, 0, 3, 3]),
            ("open, of another host", [3, 1, 0, 1, 1]),
            ("extents, of another host", [2, 0, 0, 0, 0]),
            ("delete, by another host", [11, 12, 0, 8, 8]),
        ],
    );
}
