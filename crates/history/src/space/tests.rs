//! The last sample of each step is read back, for any volumes, across restarts; and damage is a
//! gap.

use proptest::prelude::*;

use super::cell::{Index, encode};
use super::*;
use crate::Memory;

const POOL: [u8; 16] = [7; 16];
/// Some day, at midnight.
const DAY_MS: u64 = 20_000 * 86_400_000;
const MINUTE_MS: u64 = 60_000;

fn open(memory: &Memory) -> History {
    History::open(Box::new(memory.clone()), POOL).unwrap()
}

fn figures(id: u64, seed: u64) -> VolumeFigures {
    VolumeFigures::from_all([1 << 40, seed << 20, seed * id, seed * id + 64, id])
}

fn sample(time_ms: u64, ids: &[u64], seed: u64) -> SpaceSample {
    let volumes = ids.iter().map(|id| (*id, figures(*id, seed))).collect();
    SpaceSample { time_ms, volumes: Arc::new(volumes) }
}

fn read(history: &History, to_ms: u64, step_ms: Option<u64>, ids: &[u64]) -> Vec<SpacePoint> {
    let range = Range::of_space(DAY_MS, to_ms + 1, step_ms, to_ms).unwrap();
    let mut found = Vec::new();
    history.space_of_volumes(&range, ids, |point| found.push(point)).unwrap();
    found
}

proptest! {
    #[test]
    fn the_last_sample_of_each_step_is_kept(
        told in prop::collection::vec((1_u64..3_000_000, 1_u64..1 << 20, any::<bool>()), 1..30),
        wanted in prop::collection::btree_set(0_u64..400, 0..6),
    ) {
        let memory = Memory::default();
        let (mut history, mut now_ms, mut all) = (open(&memory), DAY_MS, Vec::new());
        let wanted: Vec<u64> = wanted.into_iter().collect();
        for (after_ms, seed, restart) in told {
            now_ms += after_ms;
            // Two volumes come and go.
            let ids: Vec<u64> = (seed % 2..300 + seed % 2).collect();
            history.record_space(sample(now_ms, &ids, seed)).unwrap();
            let known = wanted.iter().filter(|id| ids.contains(id));
            let known: Volumes = known.map(|id| (*id, figures(*id, seed))).collect();
            all.push((now_ms, known));
            if restart {
                history.save().unwrap();
                history = open(&memory);
            }
        }
        for step_ms in [300_000, 1_800_000, 3_600_000, 7_200_000, 86_400_000] {
            let mut last = std::collections::BTreeMap::new();
            for (time_ms, volumes) in &all {
                let start_ms = time_ms - time_ms % step_ms;
                last.insert(start_ms, SpacePoint {
                    start_ms,
                    time_ms: *time_ms,
                    volumes: volumes.clone(),
                });
            }
            let last: Vec<SpacePoint> = last.into_values().collect();
            prop_assert_eq!(read(&history, now_ms, Some(step_ms), &wanted), last);
        }
    }

    #[test]
    fn bytes_that_are_not_ours_do_no_harm(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        count in any::<u16>(),
        len in 0_u32..400,
    ) {
        let ring = &SPACE_RINGS[0];
        let mut head = vec![0; 24];
        head[4] = 1;
        head[6..8].copy_from_slice(&count.to_le_bytes());
        head[8..16].copy_from_slice(&DAY_MS.to_le_bytes());
        head.extend(&bytes);
        let seed = crc32c::crc32c(&ring.step_ms.to_le_bytes());
        let end = head.len().min(24 + 8 * usize::from(count));
        let checksum = crc32c::crc32c_append(seed, &head[4..end]);
        head[..4].copy_from_slice(&checksum.to_le_bytes());
        let Some(index) = Index::decode(ring, DAY_MS, &head) else { return Ok(()) };
        prop_assert!(index.pages_of(&[1, 2, u64::MAX]).iter().all(|at| *at <= bytes.len() / 8));
        // Even with a valid checksum.
        let mut page = [&[0; 4][..], &len.to_le_bytes(), &bytes].concat();
        let end = page.len().min(8 + len as usize);
        let seed = crc32c::crc32c(&checksum.to_le_bytes());
        let checksum = crc32c::crc32c_append(seed, &page[4..end]);
        page[..4].copy_from_slice(&checksum.to_le_bytes());
        index.take(&page, &[1], &mut Volumes::new());
    }
}

#[test]
fn a_sample_is_written_when_its_five_minutes_are_over_and_at_shutdown() {
    let memory = Memory::default();
    let history = open(&memory);
    let known = |history: &History| {
        let found = read(history, DAY_MS + 9 * MINUTE_MS, None, &[1]);
        found.iter().map(|it| it.time_ms - DAY_MS).collect::<Vec<_>>()
    };
    history.record_space(sample(DAY_MS + 1, &[1], 1)).unwrap();
    history.record_space(sample(DAY_MS + 2, &[1], 1)).unwrap();
    assert_eq!((known(&history), known(&open(&memory))), (vec![2], vec![]));
    let later_ms = 5 * MINUTE_MS;
    history.record_space(sample(DAY_MS + later_ms, &[1], 1)).unwrap();
    assert_eq!((known(&history), known(&open(&memory))), (vec![2, later_ms], vec![2]));
    history.save().unwrap();
    assert_eq!(known(&open(&memory)), [2, later_ms]);
}

#[test]
fn old_samples_are_dropped_and_coarser_ones_stay() {
    let memory = Memory::default();
    let history = open(&memory);
    history.record_space(sample(DAY_MS, &[1], 1)).unwrap();
    let later_ms = DAY_MS + SPACE_RINGS[0].span_ms();
    history.record_space(sample(later_ms, &[1], 2)).unwrap();
    history.record_space(sample(later_ms + 5 * MINUTE_MS, &[1], 3)).unwrap();
    let count = |step_ms| read(&history, later_ms + 5 * MINUTE_MS, Some(step_ms), &[1]).len();
    assert_eq!((count(300_000), count(3_600_000), count(86_400_000)), (2, 2, 2));
    let range = Range::of_space(0, u64::MAX, None, DAY_MS).unwrap();
    assert_eq!((range.step_ms(), range.points()), (86_400_000, 367));
    for step_ms in [0, 1000, 30_000, 1 << 60] {
        let refused = Range::of_space(0, 1, Some(step_ms), DAY_MS);
        assert_eq!(refused, Err(crate::RangeError::SpaceResolution), "{step_ms}");
    }
}

#[test]
fn ten_thousand_volumes_fit_and_take_little() {
    let largest = VolumeFigures::from_all([u64::MAX; 5]);
    let volumes = |of: &dyn Fn(u64) -> VolumeFigures| -> Volumes {
        (0..10_000).map(|n| (u64::MAX - 10_000 + n, of(n))).collect()
    };
    let memory = Memory::default();
    let history = open(&memory);
    let all = volumes(&|_| largest);
    let ids: Vec<u64> = all.iter().map(|(id, _)| *id).collect();
    let whole = SpaceSample { time_ms: DAY_MS, volumes: Arc::new(all.clone()) };
    history.record_space(whole).unwrap();
    history.save().unwrap();
    assert_eq!(read(&open(&memory), DAY_MS, None, &ids)[0].volumes, all);
    // As in practice: 1 TiB, of which 100 GiB are written and stored.
    let size = |n| VolumeFigures::from_all([1 << 40, 100 << 30, 99 << 30, 100 << 30, n << 20]);
    let usual: Volumes = volumes(&size).into_iter().zip(1..).map(|((_, it), n)| (n, it)).collect();
    let cell = encode(&SPACE_RINGS[0], DAY_MS, DAY_MS, &usual);
    assert!((250 << 10..350 << 10).contains(&cell.len()), "{}", cell.len());
}

#[test]
fn a_damaged_page_hides_its_volumes_and_a_damaged_index_all() {
    let ring = &SPACE_RINGS[0];
    let ids: Vec<u64> = (0..1000).collect();
    let damaged = |at: u64| {
        let memory = Memory::default();
        let history = open(&memory);
        history.record_space(sample(DAY_MS, &ids, 1 << 19)).unwrap();
        history.save().unwrap();
        let (medium, mut byte): (&dyn crate::Medium, _) = (&memory, [0]);
        let offset = ring.offset_of(DAY_MS) + at;
        medium.read(offset, &mut byte).unwrap();
        medium.write(offset, &[byte[0] ^ 1]).unwrap();
        let found = read(&open(&memory), DAY_MS, None, &ids);
        found.first().map(|point| point.volumes.len())
    };
    let one_page = damaged(PAGE_BYTES as u64 + 100).unwrap();
    assert!((600..950).contains(&one_page), "{one_page}");
    assert_eq!((damaged(30), damaged(8)), (None, None));
}

#[test]
fn a_page_of_an_earlier_step_is_not_taken() {
    let ring = &SPACE_RINGS[0];
    let earlier = encode(ring, DAY_MS, DAY_MS, &vec![(1, figures(1, 1))]);
    let later = encode(ring, DAY_MS, DAY_MS + 1, &vec![(1, figures(1, 2))]);
    let index = Index::decode(ring, DAY_MS, &later[..PAGE_BYTES]).unwrap();
    let taken = |cell: &[u8]| {
        let mut volumes = Volumes::new();
        index.take(&cell[PAGE_BYTES..], &[1], &mut volumes);
        volumes.len()
    };
    assert_eq!((taken(&earlier), taken(&later)), (0, 1));
}

#[test]
fn a_failure_to_store_is_reported() {
    let history = History::not_kept("no room".into());
    history.record_space(sample(DAY_MS, &[1], 1)).unwrap();
    assert_eq!(history.save().unwrap_err().to_string(), "no room");
    assert_eq!(read(&history, DAY_MS, None, &[1]).len(), 1);
}
