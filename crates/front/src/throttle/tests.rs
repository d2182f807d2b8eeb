use proptest::prelude::*;

use super::*;

const S: Duration = Duration::from_secs(1);
const ONE: VolumeLimits = VolumeLimits { bandwidth_bytes_per_s: None, iops: Some(1) };

fn limits(bandwidth_bytes_per_s: Option<u64>, iops: Option<u64>) -> VolumeLimits {
    VolumeLimits { bandwidth_bytes_per_s, iops }
}

fn bucket(limits: VolumeLimits) -> Bucket {
    let bucket = Bucket::new(Limited::Volume(VolumeId(1)));
    bucket.set(limits);
    bucket
}

fn ticket(task: u64, bytes: u64) -> Ticket {
    Ticket { thread: 0, task, bytes }
}

/// Returns which tasks are released, and when more may be.
fn release(bucket: &Bucket, now: Duration) -> (Vec<u64>, Option<Duration>) {
    let mut released = Vec::new();
    let next = bucket.release(now, &mut released);
    (released.into_iter().map(|ticket| ticket.task).collect(), next)
}

#[test]
fn commands_over_the_limit_wait_in_order() {
    let bucket = bucket(limits(None, Some(10)));
    // The burst of a tenth of a second is one command, and one more that is paid for afterwards.
    assert_eq!(bucket.enter(ticket(1, 0), S), Entered::Goes);
    assert_eq!(bucket.enter(ticket(2, 0), S), Entered::Goes);
    assert_eq!(bucket.enter(ticket(3, 0), S), Entered::WaitsFirst);
    assert_eq!(bucket.enter(ticket(4, 0), 2 * S), Entered::Waits, "commands do not overtake");
    assert_eq!(release(&bucket, S), (vec![], Some(S + S / 10)));
    assert_eq!(release(&bucket, S + S / 10), (vec![3], Some(S + S / 5)));
    bucket.leave(0, 4);
    assert_eq!(release(&bucket, S + S / 10), (vec![], None));
    assert_eq!(bucket.enter(ticket(5, 0), S + S / 10), Entered::WaitsFirst);
}

#[test]
fn a_large_command_proceeds_and_delays_later_ones() {
    let bucket = bucket(limits(Some(1 << 20), None));
    assert_eq!(bucket.enter(ticket(1, 8 << 20), S), Entered::Goes);
    assert_eq!(bucket.enter(ticket(2, 0), S), Entered::WaitsFirst);
    assert_eq!(release(&bucket, S), (vec![], Some(9 * S - BURST)));
    assert_eq!(release(&bucket, 9 * S - BURST), (vec![2], None));
}

#[test]
fn removed_limits_release_all_commands() {
    let bucket = bucket(limits(Some(1), None));
    assert_eq!(bucket.enter(ticket(1, 4096), S), Entered::Goes);
    (2..9).for_each(|task| assert_ne!(bucket.enter(ticket(task, 4096), S), Entered::Goes));
    assert_eq!(release(&bucket, 4000 * S), (vec![], Some(4097 * S - BURST)));
    bucket.set(VolumeLimits::NONE);
    assert_eq!(release(&bucket, S), ((2..9).collect(), None));
}

#[test]
fn buckets_are_shared_and_forgotten() {
    let throttles = Throttles::default();
    let (one, two) = (Limited::Volume(VolumeId(1)), Limited::Group(1));
    assert!(throttles.of(one, VolumeLimits::NONE).is_none());
    let (one, group) = (throttles.of(one, limits(None, Some(100))), throttles.of(two, ONE));
    let (one, group) = (one.unwrap(), group.unwrap());
    assert!(!Arc::ptr_eq(&one, &group), "a group with the number of a volume");
    let same = throttles.of(one.of, limits(None, Some(200))).unwrap();
    assert!(Arc::ptr_eq(&one, &same));
    assert_eq!(one.state.lock().meter.limits.iops, Some(200));
    drop((one, same, group));
    let _other = throttles.of(Limited::Volume(VolumeId(2)), limits(None, Some(100)));
    assert_eq!(throttles.0.lock().len(), 1);
}

proptest! {
    /// For any order of arrivals: in any interval no more passes than the interval and the burst
    /// pay for, and one command; no command waits while nothing is owed; and order is preserved.
    #[test]
    fn no_more_passes_than_the_limits_allow(
        (bandwidth, iops) in (1_000..2_000_000u64, 1..2_000u64),
        arrivals in prop::collection::vec((0..50u64, 0..100_000u64), 1..200),
    ) {
        let bucket = bucket(limits(Some(bandwidth), Some(iops)));
        let (mut now, mut went) = (Duration::ZERO, Vec::new());
        for (task, (pause_ms, bytes)) in arrivals.iter().enumerate() {
            now += Duration::from_millis(*pause_ms);
            let mut released = Vec::new();
            bucket.release(now, &mut released);
            went.extend(released.into_iter().map(|ticket| (now, ticket)));
            let ticket = ticket(task as u64, *bytes);
            if bucket.enter(ticket, now) == Entered::Goes {
                went.push((now, ticket));
            }
        }
        while went.len() < arrivals.len() {
            let mut released = Vec::new();
            let next = bucket.release(now, &mut released);
            went.extend(released.into_iter().map(|ticket| (now, ticket)));
            prop_assert!(next.is_none_or(|next| next > now));
            now = next.unwrap_or(now);
        }
        prop_assert!(went.iter().enumerate().all(|(at, (_, ticket))| ticket.task == at as u64));
        for from in 0..went.len() {
            let (mut bytes, mut count) = (0, 0);
            for (when, ticket) in &went[from..] {
                // The last one passes before it is paid for; each one loses a nanosecond.
                let time = *when - went[from].0 + BURST + Duration::from_nanos(went.len() as u64);
                prop_assert!(paid_in(count, Some(iops)) <= time, "{count} operations");
                prop_assert!(paid_in(bytes, Some(bandwidth)) <= time, "{bytes} bytes");
                (bytes, count) = (bytes + ticket.bytes, count + 1);
            }
        }
    }
}

#[test]
fn a_verify_costs_what_it_reads_and_queries_cost_nothing() {
    assert_eq!(charged_bytes(Class::of_opcode(0x8f), true, 32 << 20), Some(32 << 20));
    assert_eq!(charged_bytes(Class::of_opcode(0x28), false, 4096), Some(4096));
    assert_eq!(charged_bytes(Class::of_opcode(0x93), false, 512), Some(0));
    assert_eq!(charged_bytes(Class::of_opcode(0x00), false, 0), None);
}
