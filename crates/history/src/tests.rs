//! Steps of every length agree with the ticks they are made of, across restarts; and foreign bytes
//! do no harm.

use proptest::prelude::*;

use super::*;

const POOL: [u8; 16] = [7; 16];
/// Some day, at midnight.
const DAY_MS: u64 = 20_000 * 86_400_000;

fn open(memory: &Memory) -> History {
    History::open(Box::new(memory.clone()), POOL).unwrap()
}

fn activity(class: usize, ok: u64) -> Activity {
    let mut activity = Activity::default();
    activity.0[class] = ClassSums {
        ok,
        failed: ok / 3,
        bytes: ok * 4096,
        ok_latency_us: ok * 70,
        failed_latency_us: ok,
        ..ClassSums::default()
    };
    if let Some(buckets) = activity.1.0.get_mut(class) {
        // Most are in one bucket, some in the last.
        (buckets[4], buckets[25]) = (ok - ok / 50, ok / 50);
    }
    activity
}

fn tick(now_ms: u64, covered_ms: u64, object: u64, class: usize, ok: u64) -> Tick {
    let done = activity(class, ok).with_peaks(covered_ms);
    let who = match object {
        4 => Object::Port(object),
        even if even.is_multiple_of(2) => Object::Host(object),
        _ => Object::Volume(object),
    };
    Tick {
        now_ms,
        covered_ms,
        array: done,
        objects: [(who, done)].into(),
        capacity: Some(Capacity([Gauge::once(ok); GAUGES.len()])),
    }
}

/// Computes the steps of one length tick by tick.
fn naive(ticks: &[Tick], object: Option<Object>, step_ms: u64) -> Series {
    let mut points: BTreeMap<u64, Point> = BTreeMap::new();
    for tick in ticks {
        let moment = tick.now_ms - tick.covered_ms / 2;
        let start_ms = moment - moment % step_ms;
        let point = points.entry(start_ms).or_default();
        point.start_ms = start_ms;
        point.covered_ms += tick.covered_ms;
        match object {
            None => {
                point.activity.merge(&tick.array);
                point.capacity.merge(&tick.capacity.unwrap_or_default());
            }
            Some(object) => {
                point.activity.merge(&tick.objects.get(&object).copied().unwrap_or_default());
            }
        }
    }
    points.into_values().collect()
}

fn ticks() -> impl Strategy<Value = Vec<(u64, u64, usize, u64, bool)>> {
    // The length of a tick, its object, its activity, and whether the array restarts after it.
    let tick = (500_u64..400_000, 0_u64..5, 0_usize..7, 0_u64..1 << 40, any::<bool>());
    prop::collection::vec(tick, 1..60)
}

proptest! {
    #[test]
    fn what_is_down_sampled_is_what_the_ticks_told(told in ticks()) {
        let memory = Memory::default();
        let mut history = open(&memory);
        let (mut now_ms, mut all) = (DAY_MS, Vec::new());
        for (covered_ms, object, class, ok, restart) in told {
            now_ms += covered_ms;
            let tick = tick(now_ms, covered_ms, object, class, ok);
            history.record(tick.clone()).unwrap();
            all.push(tick);
            if restart {
                history.save().unwrap();
                history = open(&memory);
            }
        }
        history.save().unwrap();
        for step_ms in [30_000, 60_000, 300_000, 1_800_000, 3_600_000, 7_200_000, 86_400_000] {
            let range = Range::new(DAY_MS, now_ms + 1, Some(step_ms), now_ms).unwrap();
            prop_assert_eq!(&history.of_array(&range).unwrap(), &naive(&all, None, step_ms));
            let volumes = [Object::Volume(1), Object::Volume(99)];
            for object in [Object::Host(0), Object::Port(4)].into_iter().chain(volumes) {
                let found = history.of_objects(&range, &[object]).unwrap();
                prop_assert_eq!(&found[&object], &naive(&all, Some(object), step_ms));
            }
        }
    }

    #[test]
    fn bytes_that_are_not_ours_do_no_harm(
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
        array_len in 0_u16..1200,
        objects_len in 0_u16..1200,
        version in 0_u8..4,
    ) {
        let ring = &RINGS[0];
        // Even with valid checksums.
        let mut cell = vec![0; 24];
        cell[8..16].copy_from_slice(&DAY_MS.to_le_bytes());
        cell[16..18].copy_from_slice(&array_len.to_le_bytes());
        cell[18..20].copy_from_slice(&objects_len.to_le_bytes());
        cell[22] = version;
        cell.extend(bytes);
        let at = cell.len().min(24 + usize::from(array_len));
        let end = cell.len().min(at + usize::from(objects_len));
        let seed = crc32c::crc32c(&ring.step_ms.to_le_bytes());
        let of_array = crc32c::crc32c_append(seed, &cell[8..at]);
        let of_objects = crc32c::crc32c(&cell[at..end]);
        cell[..4].copy_from_slice(&of_array.to_le_bytes());
        cell[4..8].copy_from_slice(&of_objects.to_le_bytes());
        if let Some(step) = cell::decode(ring, DAY_MS, &cell) {
            prop_assert_eq!(step.start_ms, DAY_MS);
            prop_assert!((1..=2).contains(&version));
        }
    }

    #[test]
    fn a_bit_that_turned_is_a_gap(at in 0_usize..200, bit in 0_u8..8) {
        let ring = &RINGS[0];
        let mut step = Step { start_ms: DAY_MS, ..Step::default() };
        step.add(&tick(DAY_MS, 1000, 3, 0, 1 << 40));
        let mut cell = cell::encode(ring, &step);
        prop_assert_eq!(cell::decode(ring, DAY_MS, &cell), Some(step));
        let at = at % cell.len();
        cell[at] ^= 1 << bit;
        prop_assert_eq!(cell::decode(ring, DAY_MS, &cell), None);
    }
}

#[test]
fn a_day_later_the_oldest_step_is_gone_and_an_hour_of_it_is_still_known() {
    let memory = Memory::default();
    let history = open(&memory);
    let later_ms = DAY_MS + RINGS[0].span_ms();
    history.record(tick(DAY_MS + 1000, 1000, 1, 0, 5)).unwrap();
    history.record(tick(later_ms + 1000, 1000, 1, 0, 7)).unwrap();
    history.save().unwrap();
    let series = |step_ms| {
        let range = Range::new(DAY_MS, later_ms + 2000, Some(step_ms), later_ms + 1000).unwrap();
        let series = history.of_array(&range).unwrap();
        series.iter().map(|point| point.activity.0[0].ok).collect::<Vec<_>>()
    };
    assert_eq!(series(30_000), [7]);
    assert_eq!(series(300_000), [5, 7]);
    assert_eq!(series(3_600_000), [5, 7]);
}

#[test]
fn who_has_no_room_is_unknown_and_not_idle() {
    let memory = Memory::default();
    let history = open(&memory);
    let objects = (0..5000).map(|id| (Object::Volume(id), activity(0, 10_000 - id)));
    let tick = Tick {
        now_ms: DAY_MS + 1000,
        covered_ms: 1000,
        array: activity(0, 1),
        objects: objects.collect(),
        capacity: None,
    };
    history.record(tick.clone()).unwrap();
    history.save().unwrap();
    // The least busy one comes back after a restart: too little is known of it in that step.
    let history = open(&memory);
    history
        .record(Tick { objects: [(Object::Volume(4999), activity(0, 1))].into(), ..tick })
        .unwrap();
    history.save().unwrap();
    let range = Range::new(DAY_MS, DAY_MS + 2000, Some(30_000), DAY_MS + 1000).unwrap();
    let asked = [Object::Volume(0), Object::Volume(4999), Object::Host(1)];
    let found = history.of_objects(&range, &asked).unwrap();
    assert_eq!(found[&asked[0]][0].activity.0[0].ok, 10_000);
    assert!(found[&asked[1]].is_empty() && found[&asked[2]].is_empty());
    let kept = (0..5000).map(Object::Volume).collect::<Vec<_>>();
    let known = history.of_objects(&range, &kept).unwrap();
    let known = known.values().filter(|series| !series.is_empty()).count();
    assert!((300..1500).contains(&known), "{known}");
}

#[test]
fn a_file_of_another_pool_or_none_of_ours_is_not_taken() {
    let memory = Memory::default();
    drop(open(&memory));
    let reopen = |pool| History::open(Box::new(memory.clone()), pool).map(drop);
    assert!(reopen(POOL).is_ok());
    assert!(matches!(reopen([8; 16]), Err(OpenError::NotOurs(NotOurs::Pool))));
    let turn = |at: usize, fix: bool| {
        let mut header = layout::header(POOL);
        header[at] ^= 1;
        if fix {
            let checksum = crc32c::crc32c(&header[..64]).to_le_bytes();
            header[64..68].copy_from_slice(&checksum);
        }
        memory.write(0, &header).unwrap();
        reopen(POOL)
    };
    assert!(matches!(turn(30, false), Err(OpenError::NotOurs(NotOurs::Damaged))));
    assert!(matches!(turn(16, true), Err(OpenError::NotOurs(NotOurs::Version))));
    assert!(matches!(turn(44, true), Err(OpenError::NotOurs(NotOurs::Version))));
}

#[test]
fn what_can_be_asked_for_is_bounded() {
    let now_ms = DAY_MS + 5000;
    let new = |from, to, step| Range::new(from, to, step, now_ms);
    assert_eq!(new(2, 1, None), Err(RangeError::Backwards));
    for step_ms in [0, 1000, 45_000, 1 << 60] {
        assert_eq!(new(0, now_ms, Some(step_ms)), Err(RangeError::Resolution), "{step_ms}");
    }
    // Steps older than the retention are not searched.
    assert_eq!(new(0, u64::MAX, Some(30_000)).unwrap().points(), 2880);
    assert_eq!(new(0, u64::MAX, Some(300_000)).unwrap().points(), 8928);
    assert_eq!(new(0, u64::MAX, None).unwrap().step_ms(), 3_600_000);
    assert_eq!(new(now_ms - 1000, now_ms, None).unwrap().step_ms(), 30_000);
    assert_eq!(new(now_ms, u64::MAX, None).unwrap().points(), 0);
    assert_eq!(new(u64::MAX - 1, u64::MAX, None).unwrap().points(), 0);
}

#[test]
fn a_failure_to_store_is_reported() {
    let history = History::not_kept("no room".into());
    history.record(tick(DAY_MS + 1000, 1000, 1, 0, 5)).unwrap();
    assert_eq!(history.save().unwrap_err().to_string(), "no room");
    let range = Range::new(DAY_MS, DAY_MS + 2000, None, DAY_MS + 1000).unwrap();
    assert_eq!(history.of_array(&range).unwrap_err().to_string(), "no room");
    assert_eq!(history.seconds(DAY_MS, DAY_MS + 1).len(), 1);
    assert_eq!(history.latest().array.0[0].ok, 5);
}

/// A cell as the first version wrote it.
const PLAIN_CELL: &str = "\
    fb17a9844fac057a0080d3549201000083001e0000000100c8e20109ac026480804b88a401ac0290\
    0380804b46090380a002f60409000000808080800401808080800480808080040180808080048080\
    80800401808080800480808080040180808080048080808004018080808004808080800401808080\
    8004808080800401808080800480808080040180808080048080808004018080808004000301c801\
    42808032b06dc801000000014d02050180a001de0205000000\
";

#[test]
fn cells_from_before_there_were_histograms_are_read_and_gone_on_with() {
    let byte = |at: usize| u8::from_str_radix(&PLAIN_CELL[at..at + 2], 16).unwrap();
    let cell: Vec<u8> = (0..PLAIN_CELL.len()).step_by(2).map(byte).collect();
    let plain = |class, ok| Activity(activity(class, ok).0, Latencies::default());
    let mut step = cell::decode(&RINGS[1], DAY_MS, &cell).unwrap();
    let mut array = plain(0, 300).with_peaks(1000);
    array.merge(&plain(3, 9));
    assert_eq!((step.covered_ms, step.array), (29_000, array));
    assert_eq!(step.array.1.percentile_us(0, 50), None);
    let objects = [(Object::Host(3), plain(0, 200)), (Object::Volume(77), plain(1, 5))];
    assert_eq!(step.objects, objects.into());
    // A step that was begun before the upgrade continues with histograms, of the rest only.
    step.merge(&Step { array: activity(0, 100), ..Step::default() });
    let again = cell::decode(&RINGS[1], DAY_MS, &cell::encode(&RINGS[1], &step)).unwrap();
    assert_eq!(again, step);
    assert_eq!(again.array.1.percentile_us(0, 98), Some(70));
}

#[test]
fn percentiles_are_where_buckets_end() {
    let mut latencies = Latencies::default();
    (latencies.0[1][0], latencies.0[1][4], latencies.0[1][25]) = (50, 49, 1);
    let at = |percent| latencies.percentile_us(1, percent);
    assert_eq!([0, 50, 51, 99, 100].map(at), [10, 10, 70, 70, 10_000_000].map(Some));
    assert_eq!((latencies.percentile_us(0, 50), latencies.percentile_us(2, 50)), (None, None));
}

#[test]
fn so_many_objects_that_read_and_write_fit_a_step() {
    let mut done = activity(0, 30_000).with_peaks(1000);
    done.merge(&activity(1, 20_000).with_peaks(1000));
    for buckets in &mut done.1.0 {
        buckets[2..10].fill(2500);
    }
    let objects = (0..1000).map(|id| (Object::Volume(1000 + id), done)).collect();
    let step = Step { start_ms: DAY_MS, covered_ms: 30_000, objects, ..Step::default() };
    let read = cell::decode(&RINGS[0], DAY_MS, &cell::encode(&RINGS[0], &step)).unwrap();
    assert!((140..250).contains(&read.objects.len()), "{}", read.objects.len());
}
