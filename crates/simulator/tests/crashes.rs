//! The power fails at every single I/O of small histories, and of the recoveries from that.

use simulator::disk::Survival;
use simulator::history::OPEN_IOS;
use simulator::{Plan, Summary, run};
use store::Durability;

const SURVIVALS: [Survival; 5] =
    [Survival::Nothing, Survival::All, Survival::Writes, Survival::Sectors, Survival::Torn];

/// In a history with more I/Os than this the power fails in one way at each of them, not in all
/// ways.
const IN_ALL_WAYS_MAX: u64 = 150;
/// I/Os of one history at which the power fails: of more than this, every n-th one.
const STRUCK_MAX: u64 = 80;

fn small(seed: u64, durability: Durability) -> Plan {
    Plan { steps: 60, random_crashes: false, ..Plan::new(seed, durability) }
}

fn must_pass(plan: &Plan) -> Summary {
    run(plan).unwrap_or_else(|failure| {
        let Plan { fuse, open_fuses, survival, .. } = plan;
        panic!("power failures at {fuse:?} and {open_fuses:?}, {survival:?}: {failure}")
    })
}

fn at_every_io(seed: u64, durability: Durability) {
    let plan = small(seed, durability);
    let io_count = must_pass(&plan).io_count;
    assert!(io_count > 20, "a history of {io_count} I/Os is too short");
    // With many I/Os the power fails once at each, and the ways alternate.
    let survivals = |fuse: u64| match io_count {
        0..=IN_ALL_WAYS_MAX => &SURVIVALS[..],
        _ => std::slice::from_ref(&SURVIVALS[(fuse % 5) as usize]),
    };
    for fuse in 1..=io_count {
        for survival in survivals(fuse).iter().copied() {
            // In three of four cases the power also fails in recovery, at each of its own I/Os.
            let open_fuses = [Some(fuse % 4).filter(|io| *io > 0), None, None];
            let (survival_seed, survival) = (seed ^ fuse, Some(survival));
            must_pass(&Plan { fuse: Some(fuse), open_fuses, survival, survival_seed, ..plan });
        }
    }
}

#[test]
fn a_crash_at_every_io_with_commit_durability() {
    at_every_io(0, Durability::Commit);
}

#[test]
fn a_crash_at_every_io_with_flush_durability() {
    at_every_io(28, Durability::Flush);
}

/// The power fails in three recoveries in a row, at every combination of their I/Os, and the fourth
/// must find what the first had to.
#[test]
fn a_crash_at_every_io_of_recovery_and_of_the_next_recovery() {
    let mut all = Summary::default();
    for (seed, durability) in [(2, Durability::Commit), (3, Durability::Flush)] {
        let plan = small(seed, durability);
        let io_count = must_pass(&plan).io_count;
        let fuses = (1..=io_count).step_by(io_count as usize / 2);
        for combination in 0..OPEN_IOS.pow(3) {
            let struck = |place: u32| Some(combination / OPEN_IOS.pow(place) % OPEN_IOS + 1);
            let open_fuses = [struck(0), struck(1), struck(2)];
            for fuse in fuses.clone() {
                let survival = Some(SURVIVALS[((fuse + combination) % 5) as usize]);
                let survival_seed = seed ^ fuse ^ combination << 8;
                let plan = Plan { fuse: Some(fuse), open_fuses, survival, survival_seed, ..plan };
                all += &must_pass(&plan);
            }
        }
    }
    assert!(all.recovery_crashes > 300 && all.crashes > all.recovery_crashes, "{all}");
}

/// In segments of 64 KiB, on a device with locations that go bad: records and checkpoints go
/// elsewhere, and the power fails at every I/O of that, or, in a full pool, which makes thousands,
/// at 80.
#[test]
fn a_crash_at_every_io_with_bad_blocks() {
    let mut refused = [0; 2];
    let both = [Durability::Commit, Durability::Flush];
    for (seed, durability) in (1..30).step_by(2).flat_map(|seed| both.map(|of| (seed, of))) {
        let small = Plan::small_segments(seed, durability);
        let plan = Plan { steps: 120, random_crashes: false, kills: false, ..small };
        let whole = must_pass(&plan);
        if whole.refused_writes < 2 {
            continue;
        }
        refused[usize::from(durability == Durability::Flush)] += whole.refused_writes;
        let stride = whole.io_count.div_ceil(STRUCK_MAX) as usize;
        for fuse in (1..=whole.io_count).step_by(stride) {
            let open_fuses = [Some(fuse % 4).filter(|io| *io > 0), None, None];
            let survival = Some(SURVIVALS[(fuse % 5) as usize]);
            let survival_seed = seed ^ fuse;
            must_pass(&Plan { fuse: Some(fuse), open_fuses, survival, survival_seed, ..plan });
        }
    }
    let enough = refused.iter().all(|count| *count >= 8);
    assert!(enough, "{refused:?} writes at bad blocks are too few");
}
