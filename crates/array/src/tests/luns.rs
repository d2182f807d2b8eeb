//! LUNs rest after they were released.

use super::*;
use crate::objects::hosts::HostId;
use crate::objects::releases::{LunOwner, RELEASES_MAX, Release, ReleaseKey};
use crate::tables::releases::Releases;

const HOUR_MS: u64 = 3_600_000;
const REST_MS: u64 = 4 * HOUR_MS;
/// A time in the past, in milliseconds since 1970.
const THEN_MS: u64 = 20_000 * 24 * HOUR_MS;

#[derive(Clone, PartialEq)]
enum Event<H, V> {
    Released(Result<H, usize>, u16, V),
    Left(H, usize),
}

/// What was released, in order, while no time passes: for naive models.
#[derive(Clone)]
pub(super) struct History<H, V>(Vec<Event<H, V>>);

/// When each LUN was released last, which volume had it, and for whom; `None`: for a group that a
/// host left.
type Last<H, V> = BTreeMap<u16, Seen<H, V>>;
type Seen<H, V> = (usize, V, Option<Result<H, usize>>);

impl<H, V> Default for History<H, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<H: Clone + PartialEq, V: Clone + PartialEq> History<H, V> {
    /// Records the end of a connection of a host, or of a group: `Err`.
    pub(super) fn release(&mut self, of: Result<H, usize>, lun: u16, volume: V) {
        self.0.push(Event::Released(of, lun, volume));
    }

    pub(super) fn leave(&mut self, host: H, group: usize) {
        self.0.push(Event::Left(host, group));
    }

    /// Forgets a host whose name another one may get.
    pub(super) fn forget(&mut self, host: &H) {
        self.0.retain(|event| !matches!(event, Event::Released(Ok(of), ..) if of == host));
    }

    /// Returns who saw which LUN last, and when. `shared`: the connections of groups.
    fn last(&self, hosts: &[H], group: Option<usize>, shared: &[(V, usize, u16)]) -> Last<H, V> {
        let mut seen = Vec::new();
        for (at, event) in self.0.iter().enumerate() {
            let Event::Released(of, lun, volume) = event else { continue };
            let is_own = match of {
                Ok(host) => hosts.contains(host),
                Err(of) => Some(*of) == group,
            };
            if is_own {
                seen.push((at, *lun, volume, Some(of.clone())));
            }
        }
        for host in hosts {
            for left in 0..4 {
                let is_end = |event: &Event<H, V>| *event == Event::Left(host.clone(), left);
                let Some(until) = self.0.iter().rposition(is_end) else { continue };
                for (at, event) in self.0.iter().enumerate() {
                    if let Event::Released(Err(of), lun, volume) = event
                        && *of == left
                    {
                        seen.push((at.min(until), *lun, volume, None));
                    }
                }
                let of_group = shared.iter().filter(|one| one.1 == left);
                seen.extend(of_group.map(|(volume, _, lun)| (until, *lun, volume, None)));
            }
        }
        seen.sort_by_key(|one| (one.0, one.3.is_some()));
        seen.into_iter().map(|(at, lun, v, of)| (lun, (at, v.clone(), of))).collect()
    }

    /// Returns the LUN that a volume gets for a group.
    pub(super) fn choose(
        &self,
        hosts: &[H],
        group: Option<usize>,
        volume: &V,
        shared: &[(V, usize, u16)],
        has: impl Fn(u16) -> bool,
    ) -> u16 {
        let last = self.last(hosts, group, shared);
        let is_owner = |of: &Result<H, usize>| of.as_ref().err() == group.as_ref();
        let order = (1..=254).rev().chain(255..=LUN_MAX);
        lun_of(volume, &last, is_owner, order, has)
    }

    /// Returns the LUN that a volume gets for a host that may be in a group.
    pub(super) fn choose_for_host(
        &self,
        host: H,
        group: Option<usize>,
        volume: &V,
        shared: &[(V, usize, u16)],
        has: impl Fn(u16) -> bool,
    ) -> u16 {
        let last = self.last(&[host], group, shared);
        lun_of(volume, &last, Result::is_ok, 1..=LUN_MAX, has)
    }
}

fn lun_of<H, V: PartialEq>(
    volume: &V,
    last: &Last<H, V>,
    is_owner: impl Fn(&Result<H, usize>) -> bool,
    mut order: impl Iterator<Item = u16>,
    has: impl Fn(u16) -> bool,
) -> u16 {
    let returns = |(lun, (_, of, by)): &(&u16, &Seen<H, V>)| {
        of == volume && by.as_ref().is_some_and(&is_owner) && !has(**lun)
    };
    let returning = last.iter().filter(returns).max_by_key(|(_, one)| one.0).map(|(lun, _)| *lun);
    let new = || order.find(|lun| !has(*lun) && !last.contains_key(lun));
    returning.or_else(new).expect("there is a free LUN")
}

fn pair(a: &str, b: &str) -> Vec<(String, String)> {
    vec![(a.to_owned(), b.to_owned())]
}

fn pass(array: &Array, after_ms: u64) {
    array.pass_time(THEN_MS + after_ms, after_ms).1.unwrap();
}

/// Returns an array at a known time, with hosts `x` and `y`, groups `g` and `h` without hosts, and
/// volumes `v0` and so on.
fn begun(volumes: usize) -> (Arc<MemoryStore>, Array) {
    let (store, array) = new_array();
    pass(&array, 0);
    array.create_hosts(vec![new_host("x", &[]), new_host("y", &[])]).unwrap();
    array
        .create_host_groups(["g", "h"].map(|name| HostGroupName::new(name).unwrap()).into(), 5)
        .unwrap();
    let new: Vec<_> = (0..volumes).map(|n| new_volume(&format!("v{n}"), 4096)).collect();
    for some in new.chunks(CHANGES_MAX) {
        array.create_volumes(some.to_vec()).unwrap();
    }
    (store, array)
}

fn connect(array: &Array, volume: usize) -> u16 {
    array.connect(&format!("v{volume}"), "x", None).unwrap().lun
}

fn disconnect(array: &Array, volume: usize) {
    array.disconnect(&format!("v{volume}"), "x").unwrap();
}

fn share(array: &Array, volume: usize, group: &str) -> u16 {
    array.connect_host_groups(&pair(&format!("v{volume}"), group), None).unwrap()[0].lun
}

fn unshare(array: &Array, volume: usize, group: &str) {
    array.disconnect_host_groups(&pair(&format!("v{volume}"), group)).unwrap();
}

#[test]
fn a_released_lun_rests_for_four_hours_also_over_restarts() {
    let (store, array) = begun(9);
    assert_eq!((connect(&array, 0), connect(&array, 1)), (1, 2));
    disconnect(&array, 0);
    assert_eq!(connect(&array, 2), 3);
    assert_eq!((share(&array, 0, "g"), share(&array, 1, "g")), (254, 253));
    unshare(&array, 0, "g");
    assert_eq!(share(&array, 2, "g"), 252);
    let array = Array::open(store.clone(), false).unwrap();
    assert_eq!((connect(&array, 3), share(&array, 3, "g")), (4, 251), "before time passes");
    pass(&array, 0);
    pass(&array, REST_MS - 1);
    assert_eq!((connect(&array, 4), share(&array, 4, "g")), (5, 250));
    pass(&array, REST_MS + 2);
    assert_eq!((connect(&array, 5), share(&array, 5, "g")), (1, 254));
    // A volume that is created with its connections is no exception.
    disconnect(&array, 5);
    let to = ConnectTo { hosts: vec!["x".into()], host_groups: vec!["g".into()] };
    array.create_connected_volume(new_volume("new", 4096), &to).unwrap();
    let found = array.connections(Some("new"), Some("x")).unwrap();
    let shared = array.shared_connections(Some("new"), None).unwrap();
    assert_eq!((found[0].lun, shared[0].lun), (6, 249));
}

#[test]
fn a_returning_volume_gets_its_lun_and_others_get_it_only_on_request() {
    let (_, array) = begun(9);
    let connected = [0, 1, 2].map(|n| connect(&array, n));
    assert_eq!(connected, [1, 2, 3]);
    (0..3).for_each(|n| disconnect(&array, n));
    let both = vec![("v3".to_owned(), "x".to_owned()), ("v1".to_owned(), "x".to_owned())];
    let luns: Vec<_> = array.connect_all(&both, None).unwrap().iter().map(|c| c.lun).collect();
    assert_eq!(luns, [4, 2]);
    assert_eq!(array.connect("v4", "x", Some(1)).unwrap().lun, 1);
    assert_eq!(connect(&array, 0), 5, "its LUN is in use");
    disconnect(&array, 4);
    disconnect(&array, 0);
    assert_eq!(connect(&array, 0), 5, "the last one that it had");
    disconnect(&array, 0);
    array.connect("v5", "x", Some(5)).unwrap();
    disconnect(&array, 5);
    assert_eq!(connect(&array, 0), 6, "another volume was there since");
    assert_eq!([share(&array, 0, "g"), share(&array, 1, "g")], [254, 253]);
    unshare(&array, 0, "g");
    unshare(&array, 1, "g");
    assert_eq!([share(&array, 2, "g"), share(&array, 1, "g")], [252, 253]);
}

#[test]
fn a_lun_rests_for_a_host_and_for_its_group() {
    let (store, array) = begun(9);
    array.add_to_host_groups(&pair("g", "x")).unwrap();
    array.connect("v0", "x", Some(254)).unwrap();
    disconnect(&array, 0);
    assert_eq!(share(&array, 1, "g"), 253);
    array.connect_host_groups(&pair("v2", "g"), Some(1)).unwrap();
    unshare(&array, 2, "g");
    assert_eq!(connect(&array, 3), 2);
    disconnect(&array, 3);
    // The LUNs of a group rest for a host that leaves it; so do those that it released before.
    array.connect_host_groups(&pair("v4", "g"), Some(3)).unwrap();
    array.remove_from_host_groups(&pair("g", "x")).unwrap();
    let array = Array::open(store.clone(), false).unwrap();
    assert_eq!(connect(&array, 5), 4);
    array.add_to_host_groups(&pair("h", "x")).unwrap();
    assert_eq!(share(&array, 6, "h"), 252, "x saw 254 and 253");
    array.add_to_host_groups(&pair("g", "y")).unwrap();
    assert_eq!(array.connect("v7", "y", None).unwrap().lun, 2, "1 rests for all hosts of g");
    // The id of a deleted group is not used again, while its releases are remembered.
    array.remove_from_host_groups(&pair("h", "x")).unwrap();
    unshare(&array, 6, "h");
    array.delete_host_groups(&["h".to_owned()]).unwrap();
    let array = Array::open(store, false).unwrap();
    array.create_host_groups(vec![HostGroupName::new("i").unwrap()], 5).unwrap();
    assert_eq!(share(&array, 8, "i"), 254);
    assert_eq!(share(&array, 0, "i"), 253);
}

/// A host without free LUNs that don't rest gets the one that was released first, over restarts.
#[test]
fn if_all_luns_rest_the_one_released_first_is_chosen() {
    let all = usize::from(LUN_MAX);
    let (store, array) = begun(all + 4);
    let of = |to: &str| (0..all).map(|n| (format!("v{n}"), to.to_owned())).collect::<Vec<_>>();
    for (own, shared) in of("x").chunks(CHANGES_MAX).zip(of("g").chunks(CHANGES_MAX)) {
        array.connect_all(own, None).unwrap();
        array.connect_host_groups(shared, None).unwrap();
    }
    for (at, n) in [700, 5, 16_000, 6].into_iter().enumerate() {
        pass(&array, at as u64 * 60_000);
        disconnect(&array, n);
        unshare(&array, n, "g");
    }
    let array = Array::open(store.clone(), false).unwrap();
    let found = [all, all + 1].map(|n| (connect(&array, n), share(&array, n, "g")));
    assert_eq!(found, [(701, 701), (6, 249)]);
    let array = Array::open(store, false).unwrap();
    pass(&array, 240_000);
    assert_eq!((connect(&array, 6), share(&array, 6, "g")), (7, 248), "their own");
    assert_eq!((connect(&array, all + 2), share(&array, all + 2, "g")), (16_001, 16_001));
    let full = array.connect(&format!("v{}", all + 3), "x", None).unwrap_err();
    assert_eq!(full.code(), "limit_reached");
    let full = array.connect_host_groups(&pair(&format!("v{}", all + 3), "g"), None).unwrap_err();
    assert_eq!(full.code(), "limit_reached");
}

#[test]
fn a_clock_that_is_set_back_does_not_lock_luns_forever() {
    let (store, array) = begun(9);
    connect(&array, 0);
    disconnect(&array, 0);
    // While the array runs, and while it is off.
    array.pass_time(THEN_MS - 9000 * HOUR_MS, HOUR_MS).1.unwrap();
    assert_eq!(connect(&array, 1), 2);
    let array = Array::open(store.clone(), false).unwrap();
    array.pass_time(THEN_MS - 90_000 * HOUR_MS, 0).1.unwrap();
    assert_eq!(connect(&array, 2), 3);
    array.pass_time(THEN_MS - 90_000 * HOUR_MS + REST_MS, REST_MS).1.unwrap();
    assert_eq!(connect(&array, 3), 1);
    // Nor does a record with a time that the array can't have had.
    disconnect(&array, 3);
    let far = format!(r#"{{"v":1,"at_ms":{},"volume":1}}"#, u64::MAX);
    let key = [&b"L\0h"[..], &1u64.to_be_bytes(), &1u16.to_be_bytes()].concat();
    let old = store.kept.lock().0.insert(key, far.into_bytes());
    assert!(old.is_some(), "the release is stored");
    let array = Array::open(store, false).unwrap();
    array.pass_time(THEN_MS, 0).1.unwrap();
    assert_eq!(connect(&array, 4), 4);
    array.pass_time(THEN_MS + REST_MS + 600_000, REST_MS + 600_000).1.unwrap();
    assert_eq!(connect(&array, 5), 1);
}

/// The time is stored while a LUN rests, so that the time of a run without changes counts.
#[test]
fn time_counts_over_restarts_although_nothing_else_is_stored() {
    let (store, mut array) = begun(2);
    connect(&array, 0);
    disconnect(&array, 0);
    let stored = || store.changes.lock().len();
    for hours in 1..=3 {
        let before = stored();
        pass(&array, hours * HOUR_MS + 1000);
        assert!(stored() > before, "after {hours} hours");
        array = Array::open(store.clone(), false).unwrap();
        pass(&array, hours * HOUR_MS + 2000);
    }
    let before = stored();
    pass(&array, 4 * HOUR_MS + 3000);
    assert_eq!(stored(), before, "nothing rests");
    assert_eq!(connect(&array, 1), 1);
}

#[test]
fn a_release_is_committed_with_the_end_of_the_connection_and_dropped_when_over() {
    let (store, array) = begun(9);
    let key = |lun: u16| [&b"L\0h"[..], &1u64.to_be_bytes(), &lun.to_be_bytes()].concat();
    let has = |lun| store.kept.lock().0.contains_key(&key(lun));
    connect(&array, 0);
    connect(&array, 1);
    store.refuses.store(true, Ordering::Relaxed);
    array.disconnect("v0", "x").unwrap_err();
    assert!(!has(1));
    store.refuses.store(false, Ordering::Relaxed);
    assert_eq!(array.read().releases.len(), 0);
    disconnect(&array, 0);
    assert!(has(1) && store.changes.lock().last().unwrap().contains(&key(1)));
    pass(&array, REST_MS + 1);
    disconnect(&array, 1);
    assert_eq!((has(1), has(2), array.read().releases.len()), (false, true, 1));
    let array = Array::open(store.clone(), false).unwrap();
    assert_eq!(array.read().releases.len(), 1);
}

#[test]
fn the_oldest_releases_are_dropped_beyond_the_limit() {
    let mut releases = Releases::default();
    let key = |n: usize| ReleaseKey::Lun(LunOwner::Host(HostId(n as u64 / 10_000)), n as u16);
    for n in 0..RELEASES_MAX + 1000 {
        let new = (key(n), Some(Release { at_ms: releases.next_ms(7), volume: None }));
        for dropped in releases.dropped(&[new], 7) {
            assert_eq!(dropped, (key(n - RELEASES_MAX), None));
            releases.set(dropped);
        }
        releases.set(new);
        assert_eq!(releases.len(), RELEASES_MAX.min(n + 1));
    }
    let late = releases.dropped(&[], u64::MAX);
    assert_eq!((late.len(), late[0]), (100, (key(1000), None)), "a commit stays small");
}
