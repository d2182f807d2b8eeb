//! Compares schedules and retention over months with a naive model that examines everything at each
//! step.

use super::*;

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;
const GROUPS: [&str; 2] = ["g", "h"];
const VOLUMES: [&str; 3] = ["a", "b", "c"];

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn of_group(name: &str, suffix: Option<&str>, retained: bool, now_ms: u64) -> NewSnapshots {
    NewSnapshots {
        source: SnapshotSource::Group(name.to_owned()),
        suffix: suffix.map(|suffix| Suffix::new(suffix).unwrap()),
        apply_retention: retained,
        created_ms: now_ms,
    }
}

fn with_groups() -> (Arc<MemoryStore>, Array) {
    let (store, array) = new_array();
    for volume in VOLUMES {
        array.create_volume(new_volume(volume, 4096)).unwrap();
    }
    let names = GROUPS.map(|name| GroupName::new(name).unwrap());
    array.create_groups(names.to_vec(), 0).unwrap();
    (store, array)
}

fn schedule(frequency_ms: u64, at_ms: Option<u64>) -> SnapshotSchedule {
    SnapshotSchedule { enabled: true, frequency_ms, at_ms }
}

#[derive(Clone, Debug)]
enum Step {
    Pass(u64),
    Add(usize, usize),
    Remove(usize, usize),
    Schedule(usize, SnapshotSchedule),
    Retain(usize, Retention),
    Snapshot(usize, bool),
    DestroyMoment(usize, usize),
    RecoverMoment(usize, usize),
    EradicateMoment(usize, usize),
    DestroyGroup(usize),
    RecoverGroup(usize),
    DestroyVolume(usize),
    RecoverVolume(usize),
    Reload,
}

fn protection_steps() -> impl Strategy<Value = Step> {
    let group = || 0..GROUPS.len();
    let volume = || 0..VOLUMES.len();
    let passed = prop_oneof![
        4 => (1..90u64).prop_map(|minutes| minutes * MINUTE_MS),
        4 => (1..30u64).prop_map(|hours| hours * HOUR_MS + 17),
        1 => (1..20u64).prop_map(|days| days * DAY_MS),
    ];
    let schedules = prop_oneof![
        Just(SnapshotSchedule::default()),
        Just(schedule(5 * MINUTE_MS, None)),
        Just(schedule(3 * HOUR_MS, None)),
        Just(schedule(DAY_MS, Some(2 * HOUR_MS))),
        Just(schedule(3 * DAY_MS, Some(0))),
    ];
    let retention = (1..72u64, 0..5u32, 0..8u32).prop_map(|(hours, per_day, days)| Retention {
        all_for_s: hours * 3_600,
        per_day,
        days,
    });
    prop_oneof![
        12 => passed.prop_map(Step::Pass),
        4 => (group(), volume()).prop_map(|(g, v)| Step::Add(g, v)),
        1 => (group(), volume()).prop_map(|(g, v)| Step::Remove(g, v)),
        3 => (group(), schedules).prop_map(|(g, s)| Step::Schedule(g, s)),
        2 => (group(), retention).prop_map(|(g, r)| Step::Retain(g, r)),
        2 => (group(), any::<bool>()).prop_map(|(g, r)| Step::Snapshot(g, r)),
        1 => (group(), 1..9usize).prop_map(|(g, n)| Step::DestroyMoment(g, n)),
        1 => (group(), 1..9usize).prop_map(|(g, n)| Step::RecoverMoment(g, n)),
        1 => (group(), 1..9usize).prop_map(|(g, n)| Step::EradicateMoment(g, n)),
        1 => group().prop_map(Step::DestroyGroup),
        2 => group().prop_map(Step::RecoverGroup),
        1 => volume().prop_map(Step::DestroyVolume),
        2 => volume().prop_map(Step::RecoverVolume),
        1 => Just(Step::Reload),
    ]
}

#[derive(Clone)]
struct NaiveMoment {
    number: usize,
    volumes: Vec<usize>,
    made_ms: u64,
    retained: bool,
    end_ms: Option<u64>,
}

#[derive(Clone, Default)]
struct NaiveGroup {
    volumes: Vec<usize>,
    schedule: SnapshotSchedule,
    next_ms: u64,
    retention: Retention,
    taken: usize,
    moments: Vec<NaiveMoment>,
    end_ms: Option<u64>,
    gone: bool,
}

#[derive(Default)]
struct Naive {
    now_ms: u64,
    groups: [NaiveGroup; 2],
    ends: [Option<u64>; 3],
    gone: [bool; 3],
}

impl NaiveGroup {
    fn take(&mut self, retained: bool, now_ms: u64, live: &[bool; 3]) -> Result<(), &'static str> {
        let volumes: Vec<_> = self.volumes.iter().copied().filter(|v| live[*v]).collect();
        if volumes.is_empty() {
            return Err("empty_group");
        }
        self.taken += 1;
        let (number, made_ms, end_ms) = (self.taken, now_ms, None);
        self.moments.push(NaiveMoment { number, volumes, made_ms, retained, end_ms });
        Ok(())
    }

    /// Runs the model slot by slot, and day by day.
    fn run(&mut self, now_ms: u64, live: &[bool; 3]) {
        if self.end_ms.is_some() || self.gone {
            return;
        }
        let mut is_due = false;
        while self.schedule.enabled && self.next_ms <= now_ms {
            (is_due, self.next_ms) = (true, self.next_ms + self.schedule.frequency_ms);
        }
        if is_due {
            let _ = self.take(true, now_ms, live);
        }
        let Retention { all_for_s, per_day, days } = self.retention;
        let all_for = all_for_s * 1_000;
        let end = all_for + if per_day == 0 { 0 } else { u64::from(days) * DAY_MS };
        let is_live = |m: &NaiveMoment| m.retained && m.end_ms.is_none();
        for moment in self.moments.iter_mut().filter(|m| is_live(m) && m.made_ms + end <= now_ms) {
            moment.end_ms = Some(now_ms + DAY_MS);
        }
        for day in 0..=now_ms / DAY_MS {
            let of_day = |m: &&mut NaiveMoment| is_live(m) && m.made_ms / DAY_MS == day;
            let mut all: Vec<_> = self.moments.iter_mut().filter(of_day).collect();
            let (count, per_day) = (all.len(), per_day as usize);
            if count <= per_day || (day + 1) * DAY_MS + all_for > now_ms {
                continue;
            }
            let kept: Vec<_> = (0..per_day).map(|n| n * count / per_day).collect();
            for (_, moment) in all.iter_mut().enumerate().filter(|(n, _)| !kept.contains(n)) {
                moment.end_ms = Some(now_ms + DAY_MS);
            }
        }
    }
}

impl Naive {
    fn live(&self) -> [bool; 3] {
        [0, 1, 2].map(|v| self.ends[v].is_none() && !self.gone[v])
    }

    /// Runs the automatic actions of the array.
    fn run(&mut self) {
        let (now_ms, live) = (self.now_ms, self.live());
        self.groups.iter_mut().for_each(|group| group.run(now_ms, &live));
        let is_over = |end: Option<u64>| end.is_some_and(|end| end <= now_ms);
        for group in &mut self.groups {
            if is_over(group.end_ms) {
                *group = NaiveGroup { gone: true, ..NaiveGroup::default() };
            }
            group.moments.retain(|moment| !is_over(moment.end_ms));
        }
        for volume in 0..3 {
            if is_over(self.ends[volume]) {
                (self.ends[volume], self.gone[volume]) = (None, true);
            }
        }
        for group in &mut self.groups {
            group.volumes.retain(|v| !self.gone[*v]);
            for moment in &mut group.moments {
                moment.volumes.retain(|v| !self.gone[*v]);
            }
            group.moments.retain(|moment| !moment.volumes.is_empty());
        }
    }

    fn group(&mut self, at: usize) -> Result<&mut NaiveGroup, &'static str> {
        let group = &mut self.groups[at];
        match (group.gone, group.end_ms) {
            (true, _) => Err("no_such_group"),
            (_, Some(_)) => Err("group_destroyed"),
            _ => Ok(group),
        }
    }

    fn moment(&mut self, at: usize, number: usize) -> Result<&mut NaiveMoment, &'static str> {
        let group = &mut self.groups[at];
        let end_ms = group.end_ms;
        let found = group.moments.iter_mut().find(|moment| moment.number == number);
        let moment = found.ok_or("no_such_group_snapshot")?;
        end_ms.map_or(Ok(moment), |_| Err("group_destroyed"))
    }

    fn volume(&self, v: usize) -> Result<usize, &'static str> {
        match (self.gone[v], self.ends[v]) {
            (true, _) => Err("no_such_volume"),
            (_, Some(_)) => Err("volume_destroyed"),
            _ => Ok(v),
        }
    }

    fn act(&mut self, step: &Step) -> Result<(), &'static str> {
        let (now_ms, live) = (self.now_ms, self.live());
        let end = Some(now_ms + DAY_MS);
        match *step {
            Step::Pass(passed) => self.now_ms += passed,
            Step::Add(g, v) => {
                let volume = self.group(g).map(|_| ()).and_then(|()| self.volume(v))?;
                let group = self.group(g)?;
                group.volumes.retain(|of| *of != v);
                group.volumes.push(volume);
            }
            Step::Remove(g, v) => {
                self.group(g).map(|_| ()).and_then(|()| self.volume(v))?;
                self.group(g)?.volumes.retain(|of| *of != v);
            }
            Step::Schedule(g, schedule) => {
                let group = self.group(g)?;
                if group.schedule != schedule {
                    let at = schedule.at_ms.unwrap_or(now_ms % DAY_MS);
                    let today = now_ms - now_ms % DAY_MS + at;
                    group.next_ms = today + if today < now_ms { DAY_MS } else { 0 };
                    group.schedule = schedule;
                }
            }
            Step::Retain(g, retention) => self.group(g)?.retention = retention,
            Step::Snapshot(g, retained) => self.group(g)?.take(retained, now_ms, &live)?,
            Step::DestroyMoment(g, n) => {
                let moment = self.moment(g, n)?;
                if moment.end_ms.is_some() {
                    return Err("snapshot_destroyed");
                }
                moment.end_ms = end;
            }
            Step::RecoverMoment(g, n) => {
                self.moment(g, n)?.end_ms.take().ok_or("not_destroyed")?;
            }
            Step::EradicateMoment(g, n) => {
                self.moment(g, n)?.end_ms.ok_or("not_destroyed")?;
                self.groups[g].moments.retain(|moment| moment.number != n);
            }
            Step::DestroyGroup(g) => self.group(g)?.end_ms = end,
            Step::RecoverGroup(g) if self.groups[g].gone => return Err("no_such_group"),
            Step::RecoverGroup(g) => {
                self.groups[g].end_ms.take().ok_or("not_destroyed")?;
            }
            Step::DestroyVolume(v) => {
                let volume = self.volume(v)?;
                self.ends[volume] = end;
            }
            Step::RecoverVolume(v) if self.gone[v] => return Err("no_such_volume"),
            Step::RecoverVolume(v) => {
                self.ends[v].take().ok_or("not_destroyed")?;
            }
            Step::Reload => {}
        }
        Ok(())
    }

    /// Returns all snapshots by name, and whether they are destroyed.
    fn snapshots(&self) -> BTreeMap<String, bool> {
        let mut all = BTreeMap::new();
        for (group, name) in self.groups.iter().zip(GROUPS) {
            for moment in &group.moments {
                let is_ended = group.end_ms.is_some() || moment.end_ms.is_some();
                for v in &moment.volumes {
                    let of_moment = format!("{name}.{}.{}", moment.number, VOLUMES[*v]);
                    all.insert(of_moment, is_ended || self.ends[*v].is_some());
                }
            }
        }
        all
    }

    fn check(&self, array: &Array) {
        let all = array.snapshots(&SnapshotFilter::default(), None, usize::MAX).unwrap();
        let live: Vec<_> = all.iter().filter(|s| s.eradicate_ms.is_none()).collect();
        assert_eq!(array.counts().snapshots, live.len());
        let found = all.into_iter().map(|s| (s.name, s.eradicate_ms.is_some()));
        assert_eq!(found.collect::<BTreeMap<_, _>>(), self.snapshots());
        for (group, name) in self.groups.iter().zip(GROUPS).filter(|(group, _)| !group.gone) {
            let info = array.group(name).unwrap();
            assert_eq!(info.snapshot_count, group.moments.len());
            let next = group.schedule.enabled.then_some(group.next_ms);
            assert_eq!((info.next_ms, info.eradicate_ms), (next, group.end_ms));
            for moment in &group.moments {
                let info = array.group_snapshot(&format!("{name}.{}", moment.number)).unwrap();
                let ends = [group.end_ms, moment.end_ms].into_iter().flatten().min();
                assert_eq!((info.created_ms, info.eradicate_ms), (moment.made_ms, ends));
                assert_eq!(info.snapshots.len(), moment.volumes.len());
            }
        }
    }
}

fn perform(array: &Array, step: &Step, now_ms: u64) -> Result<(), Error> {
    let change = |g: usize, change: GroupChange| {
        array.change_group(GROUPS[g], &GroupChange { now_ms, ..change }).map(|_| ())
    };
    let moment = |g: usize, n: usize| vec![format!("{}.{n}", GROUPS[g])];
    match *step {
        Step::Pass(_) | Step::Reload => Ok(()),
        Step::Add(g, v) => {
            change(g, GroupChange { add: strings(&[VOLUMES[v]]), ..Default::default() })
        }
        Step::Remove(g, v) => {
            change(g, GroupChange { remove: strings(&[VOLUMES[v]]), ..Default::default() })
        }
        Step::Schedule(g, schedule) => {
            change(g, GroupChange { schedule: Some(schedule), ..Default::default() })
        }
        Step::Retain(g, retention) => {
            change(g, GroupChange { retention: Some(retention), ..Default::default() })
        }
        Step::Snapshot(g, retained) => {
            array.create_snapshots(&of_group(GROUPS[g], None, retained, now_ms)).map(|_| ())
        }
        Step::DestroyMoment(g, n) => {
            array.destroy_group_snapshots(&moment(g, n), now_ms).map(|_| ())
        }
        Step::RecoverMoment(g, n) => array.recover_group_snapshots(&moment(g, n)).map(|_| ()),
        Step::EradicateMoment(g, n) => array.eradicate_group_snapshots(&moment(g, n)),
        Step::DestroyGroup(g) => array.destroy_groups(&strings(&[GROUPS[g]]), now_ms).map(|_| ()),
        Step::RecoverGroup(g) => array.recover_groups(&strings(&[GROUPS[g]])).map(|_| ()),
        Step::DestroyVolume(v) => array.destroy_volume(VOLUMES[v], now_ms).map(|_| ()),
        Step::RecoverVolume(v) => array.recover_volume(VOLUMES[v]).map(|_| ()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// A hundred steps are some months.
    #[test]
    fn months_match_the_naive_model(
        steps in prop::collection::vec(protection_steps(), 1..120),
    ) {
        let (store, mut array) = with_groups();
        let mut naive = Naive::default();
        for step in &steps {
            let result = perform(&array, step, naive.now_ms).map_err(|error| error.code());
            prop_assert_eq!(result, naive.act(step), "{:?}", step);
            if matches!(step, Step::Reload) {
                array = Array::open(store.clone(), false).unwrap();
            }
            let ran = array.run_due(naive.now_ms).unwrap();
            prop_assert!(ran.missed.iter().all(|(_, error)| error.code() == "empty_group"));
            (0..9).for_each(|_| array.eradicate_due(naive.now_ms).unwrap());
            naive.run();
            naive.check(&array);
            prop_assert!(array.run_due(naive.now_ms).unwrap().is_empty());
        }
    }
}
