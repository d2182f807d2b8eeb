use format::DeviceId;
use proptest::prelude::*;

use super::*;
use crate::devices::DeviceState;

fn of(columns: u8, part_bytes: u64) -> Placement {
    let placement = Placement::on([1; 16], usize::from(columns) + 2).unwrap();
    placement.lay_out(Geometry { part_bytes, segment_count: 16, columns });
    placement
}

fn slots(count: u16) -> Vec<Arc<Slot>> {
    let slot = |number| Slot::new(number, DeviceId::default(), None, DeviceState::In);
    (0..count).map(slot).collect()
}

#[test]
fn a_read_is_split_at_the_end_of_a_column() {
    let placement = of(4, 64 << 10);
    let cut = |block, count: usize| -> Vec<(usize, u32, usize)> {
        let runs = placement.runs(Place::of_block(1, block), count, &slots(6)).unwrap().into_iter();
        let cut = runs.map(|run| {
            let Held::Column(rows, column) = run.held else { panic!("it is of the log") };
            assert_eq!(rows.segment, 1);
            (column, rows.first, run.frames.len())
        });
        cut.collect()
    };
    assert_eq!(cut(0, 16), [(0, 0, 16)]);
    assert_eq!(cut(15, 2), [(0, 15, 1), (1, 0, 1)]);
    assert_eq!(cut(20, 40), [(1, 4, 12), (2, 0, 16), (3, 0, 12)]);
    assert_eq!(cut(63, 1), [(3, 15, 1)]);
}

#[test]
fn requests_outside_a_segment_panic() {
    let placement = of(3, 64 << 10);
    let stopped = |place, count| {
        let call = std::panic::AssertUnwindSafe(|| placement.runs(place, count, &[]).is_ok());
        assert!(std::panic::catch_unwind(call).is_err());
    };
    stopped(Place::of_block(1, 40), 9);
    stopped(Place { segment: 1, offset_units: 1 }, 1);
    stopped(Place::of_block(16, 0), 1);
}

proptest! {
    #[test]
    fn runs_cover_all_blocks_once_and_in_order(
        (columns, bits) in (2..=16u8, 16..=24u32),
        (first, count) in (any::<u32>(), 1..20_000usize),
    ) {
        let placement = of(columns, 1 << bits);
        let (all, rows) =
            (placement.geometry().blocks_per_segment(), placement.geometry().rows());
        let first = first % all;
        let count = count.min((all - first) as usize);
        let mut at = 0;
        for run in placement.runs(Place::of_block(3, first), count, &[]).unwrap() {
            let block = first + at as u32;
            prop_assert!(!run.frames.is_empty() && run.frames.start == at);
            let column = (block / rows) as usize;
            let of = Rows { segment: 3, first: block % rows };
            prop_assert_eq!(run.held, Held::Column(of, column));
            at = run.frames.end;
            // The run ends where it has to, and nowhere else.
            prop_assert!(at == count || (first + at as u32).is_multiple_of(rows));
        }
        prop_assert_eq!(at, count);
    }
}
