//! Tests of the segment table in memory.

use super::*;

#[test]
fn recovery_frees_a_dead_metadata_segment_for_the_log() {
    let geometry = Geometry::for_capacity(1 << 30).unwrap();
    let mut segments = Segments::new(geometry, FormatVersion::V3);
    let segment = segments.open(SegmentState::Metadata, 1).unwrap();
    segments.reopen(segment, SegmentState::Log, (2, 0));
    segments.add_live(Place { segment, offset_units: 0 }, 64).unwrap();
    assert_eq!(segments.live_log_bytes(), 4096);
}

#[test]
fn sums_match_the_rows_after_any_changes() {
    let geometry = Geometry::for_capacity(1 << 30).unwrap();
    let mut segments = Segments::new(geometry, FormatVersion::V3);
    let (readers, images) = Default::default();
    let mut state = 1u64;
    for step in 1..4000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let segment = 1 + (state >> 33) as u32 % (geometry.segment_count - 1);
        let (row, place) = (segments.row(segment), Place { segment, offset_units: 0 });
        let kind = [SegmentState::Log, SegmentState::Metadata][(state >> 60) as usize % 2];
        match (state >> 40) % 8 {
            0 => drop(segments.open(kind, step)),
            1 => segments.reopen(segment, kind, (step, 0)),
            2 => segments.reserve_for_log(segment, (step, 0)),
            3 => segments.free(segments.dead(&BTreeSet::from([segment])), &readers, &images),
            4 => segments.free_dead_one(segment),
            5 if row.state != SegmentState::Free => {
                segments.sub_live(place, row.live_units.min(step as u32 * 32)).unwrap();
            }
            _ if row.state != SegmentState::Free && row.live_units < 200_000 => {
                segments.add_live(place, 60_000).unwrap();
            }
            _ => {}
        }
        assert!(segments.tally.is_of(segments.all_rows()), "step {step}");
    }
    let version = FormatVersion::V3;
    let again = Segments::decode(geometry, version, &segments.encode()).unwrap();
    assert_eq!(again.tally, segments.tally);
}
