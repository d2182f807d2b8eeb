//! Host groups against a naive model: each host has a list of what it sees.

use super::*;
use crate::access::{SharedLuns, plan_pairs};

const GROUPS: [&str; 2] = ["g", "h"];
const HOSTS: [&str; 3] = ["x", "y", "z"];
const VOLUMES: [&str; 4] = ["a", "b", "c", "d"];

fn pair(a: &str, b: &str) -> Vec<(String, String)> {
    vec![(a.to_owned(), b.to_owned())]
}

fn iqn(host: &str) -> String {
    format!("iqn.2026-11.com.example:{host}")
}

fn group_name(text: &str) -> HostGroupName {
    HostGroupName::new(text).unwrap()
}

#[derive(Clone, Debug)]
enum Action {
    Join(usize, usize),
    Leave(usize, usize),
    Share(usize, usize, Option<u16>),
    Unshare(usize, usize),
    Connect(usize, usize, Option<u16>),
    Disconnect(usize, usize),
    DeleteHost(usize),
    Reload,
    Refuse(bool),
}

fn actions() -> impl Strategy<Value = Action> {
    let (group, host, volume) = (|| 0..GROUPS.len(), || 0..HOSTS.len(), || 0..VOLUMES.len());
    let lun = || prop::option::of(prop::sample::select(vec![0, 1, 2, 253, 254, 255]));
    prop_oneof![
        4 => (group(), host()).prop_map(|(g, h)| Action::Join(g, h)),
        2 => (group(), host()).prop_map(|(g, h)| Action::Leave(g, h)),
        4 => (volume(), group(), lun()).prop_map(|(v, g, l)| Action::Share(v, g, l)),
        2 => (volume(), group()).prop_map(|(v, g)| Action::Unshare(v, g)),
        4 => (volume(), host(), lun()).prop_map(|(v, h, l)| Action::Connect(v, h, l)),
        2 => (volume(), host()).prop_map(|(v, h)| Action::Disconnect(v, h)),
        1 => host().prop_map(Action::DeleteHost),
        1 => Just(Action::Reload),
        1 => any::<bool>().prop_map(Action::Refuse),
    ]
}

/// Connections as (volume, group or host, LUN), searched from end to end.
#[derive(Clone, Default)]
struct Naive {
    group_of: [Option<usize>; 3],
    gone: [bool; 3],
    shared: Vec<(usize, usize, u16)>,
    private: Vec<(usize, usize, u16)>,
    history: History<usize, usize>,
}

impl Naive {
    fn seen(&self, host: usize) -> Vec<(u16, usize)> {
        let shared = self.shared.iter().filter(|c| Some(c.1) == self.group_of[host]);
        let own = self.private.iter().filter(|c| c.1 == host);
        let mut seen: Vec<_> = shared.chain(own).map(|c| (c.2, c.0)).collect();
        seen.sort_unstable();
        seen
    }

    fn hosts_in(&self, group: usize) -> Vec<usize> {
        (0..HOSTS.len()).filter(|host| self.group_of[*host] == Some(group)).collect()
    }

    /// Returns the LUN that a volume gets for one host, or for all of a group.
    fn lun(
        &self,
        v: usize,
        hosts: &[usize],
        group: Option<usize>,
        asked: Option<u16>,
    ) -> Result<u16, &'static str> {
        let has = |lun: u16| {
            let by_group = self.shared.iter().any(|c| Some(c.1) == group && c.2 == lun);
            by_group || hosts.iter().any(|host| self.seen(*host).iter().any(|c| c.0 == lun))
        };
        match (asked, group) {
            (Some(lun), _) if !(1..=16_383).contains(&lun) => Err("invalid_lun"),
            (Some(lun), _) if has(lun) => Err("lun_in_use"),
            (Some(lun), _) => Ok(lun),
            (None, Some(_)) => Ok(self.history.choose(hosts, group, &v, &self.shared, has)),
            (None, None) => {
                let of = self.group_of[hosts[0]];
                Ok(self.history.choose_for_host(hosts[0], of, &v, &self.shared, has))
            }
        }
    }

    fn join(&mut self, group: usize, host: usize) -> Result<(), &'static str> {
        if self.gone[host] {
            return Err("no_such_host");
        }
        if self.group_of[host].is_some() {
            return Err("in_host_group");
        }
        let mut own: Vec<_> = self.private.iter().filter(|c| c.1 == host).collect();
        own.sort_by_key(|c| c.2);
        for own in own {
            if self.shared.iter().any(|c| c.1 == group && c.0 == own.0) {
                return Err("connection_exists");
            }
            if self.shared.iter().any(|c| c.1 == group && c.2 == own.2) {
                return Err("lun_in_use");
            }
        }
        self.group_of[host] = Some(group);
        Ok(())
    }

    fn share(&mut self, v: usize, group: usize, lun: Option<u16>) -> Result<(), &'static str> {
        let hosts = self.hosts_in(group);
        let is_shared = self.shared.iter().any(|c| c.0 == v && c.1 == group);
        let is_private = self.private.iter().any(|c| c.0 == v && hosts.contains(&c.1));
        if is_shared || is_private {
            return Err("connection_exists");
        }
        let lun = self.lun(v, &hosts, Some(group), lun)?;
        self.shared.push((v, group, lun));
        Ok(())
    }

    fn connect(&mut self, v: usize, host: usize, lun: Option<u16>) -> Result<(), &'static str> {
        if self.gone[host] {
            return Err("no_such_host");
        }
        if self.seen(host).iter().any(|c| c.1 == v) {
            return Err("connection_exists");
        }
        let lun = self.lun(v, &[host], None, lun)?;
        self.private.push((v, host, lun));
        Ok(())
    }

    fn act(&mut self, action: &Action) -> Result<(), &'static str> {
        match *action {
            Action::Join(group, host) => self.join(group, host)?,
            Action::Leave(_, host) if self.gone[host] => return Err("no_such_host"),
            Action::Leave(group, host) if self.group_of[host] != Some(group) => {
                return Err("not_in_host_group");
            }
            Action::Leave(group, host) => {
                self.group_of[host] = None;
                self.history.leave(host, group);
            }
            Action::Share(v, group, lun) => self.share(v, group, lun)?,
            Action::Unshare(v, group) => {
                let at = self.shared.iter().position(|c| (c.0, c.1) == (v, group));
                let (_, _, lun) = self.shared.remove(at.ok_or("no_such_connection")?);
                self.history.release(Err(group), lun, v);
            }
            Action::Connect(v, host, lun) => self.connect(v, host, lun)?,
            Action::Disconnect(_, host) if self.gone[host] => return Err("no_such_host"),
            Action::Disconnect(v, host) => {
                let at = self.private.iter().position(|c| (c.0, c.1) == (v, host));
                let is_shared = self.seen(host).iter().any(|c| c.1 == v);
                let fault = if is_shared { "shared_connection" } else { "no_such_connection" };
                let (_, _, lun) = self.private.remove(at.ok_or(fault)?);
                self.history.release(Ok(host), lun, v);
            }
            Action::DeleteHost(host) if self.gone[host] => return Err("no_such_host"),
            Action::DeleteHost(host) => {
                if !self.seen(host).is_empty() {
                    return Err("existing_connections");
                }
                (self.gone[host], self.group_of[host]) = (true, None);
            }
            Action::Reload | Action::Refuse(_) => {}
        }
        Ok(())
    }

    fn check(&self, array: &Array) {
        for (at, host) in HOSTS.iter().enumerate() {
            let seen = self.seen(at);
            let map = array.lun_map(&iqn(host));
            let found = |(lun, name): (&u16, &Arc<block::VolumeAttributes>)| {
                let name = array.volume_name(name.id).unwrap();
                (*lun, VOLUMES.iter().position(|of| *of == name).unwrap())
            };
            assert_eq!(map.luns.iter().map(found).collect::<Vec<_>>(), seen, "{host}");
            if self.gone[at] {
                continue;
            }
            let listed = array.connections(None, Some(host)).unwrap();
            assert_eq!(listed.iter().map(|c| c.lun).collect::<Vec<_>>(), luns(&seen));
            let info = array.host(host).unwrap();
            let group = self.group_of[at].map(|group| GROUPS[group].to_owned());
            assert_eq!((info.host_group, info.connection_count), (group, seen.len()));
        }
        for (at, volume) in VOLUMES.iter().enumerate() {
            let sees = |host: &usize| self.seen(*host).iter().any(|c| c.1 == at);
            let count = (0..HOSTS.len()).filter(sees).count();
            assert_eq!(array.volume(volume).unwrap().connection_count, count, "{volume}");
            assert_eq!(array.connections(Some(volume), None).unwrap().len(), count);
        }
        for (at, group) in GROUPS.iter().enumerate() {
            let hosts: Vec<_> = self.hosts_in(at).iter().map(|host| HOSTS[*host]).collect();
            assert_eq!(array.host_group(group).unwrap().hosts, hosts);
        }
        assert_eq!(array.counts().connections, self.shared.len() + self.private.len());
    }
}

fn luns(seen: &[(u16, usize)]) -> Vec<u16> {
    seen.iter().map(|c| c.0).collect()
}

fn perform(array: &Array, action: &Action) -> Result<(), Error> {
    match *action {
        Action::Join(g, h) => array.add_to_host_groups(&pair(GROUPS[g], HOSTS[h])),
        Action::Leave(g, h) => array.remove_from_host_groups(&pair(GROUPS[g], HOSTS[h])),
        Action::Share(v, g, lun) => {
            array.connect_host_groups(&pair(VOLUMES[v], GROUPS[g]), lun).map(|_| ())
        }
        Action::Unshare(v, g) => array.disconnect_host_groups(&pair(VOLUMES[v], GROUPS[g])),
        Action::Connect(v, h, lun) => array.connect(VOLUMES[v], HOSTS[h], lun).map(|_| ()),
        Action::Disconnect(v, h) => array.disconnect(VOLUMES[v], HOSTS[h]),
        Action::DeleteHost(h) => array.delete_host(HOSTS[h]),
        Action::Reload | Action::Refuse(_) => Ok(()),
    }
}

fn with_groups() -> (Arc<MemoryStore>, Array) {
    let (store, array) = new_array();
    for volume in VOLUMES {
        array.create_volume(new_volume(volume, 4096)).unwrap();
    }
    for host in HOSTS {
        array.create_host(new_host(host, &[&iqn(host)])).unwrap();
    }
    array.create_host_groups(GROUPS.map(group_name).to_vec(), 5).unwrap();
    (store, array)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn hosts_see_the_naive_models_volumes(actions in prop::collection::vec(actions(), 1..60)) {
        let (store, mut array) = with_groups();
        let mut naive = Naive::default();
        let mut refuses = false;
        for action in &actions {
            let before = HOSTS.map(|host| array.lun_map(&iqn(host)));
            let writes = !matches!(action, Action::Reload | Action::Refuse(_));
            let kept = naive.clone();
            let mut expected = naive.act(action);
            if expected.is_ok() && refuses && writes {
                expected = Err("pool_full");
                naive = kept;
            }
            prop_assert_eq!(perform(&array, action).map_err(|error| error.code()), expected);
            match action {
                Action::Reload => array = Array::open(store.clone(), false).unwrap(),
                Action::Refuse(on) => {
                    refuses = *on;
                    store.refuses.store(refuses, Ordering::Relaxed);
                }
                _ => {}
            }
            naive.check(&array);
            for (host, old) in HOSTS.iter().zip(before) {
                let new = array.lun_map(&iqn(host));
                let reported = new.generation > old.generation || matches!(action, Action::Reload);
                prop_assert!(old.luns == new.luns || reported, "{} was not notified", host);
            }
        }
    }
}

#[test]
fn groups_are_renamed_kept_and_deleted_when_unused() {
    let (store, array) = with_groups();
    let code = |result: Result<(), Error>| result.unwrap_err().code();
    array.add_to_host_groups(&pair("g", "x")).unwrap();
    let made = array.connect_host_groups(&pair("a", "G"), None).unwrap();
    assert_eq!((made[0].lun, made[0].host_group.as_str()), (254, "g"));
    let renamed = array.rename_host_group("g", group_name("cluster")).unwrap();
    assert_eq!(
        (renamed.hosts, renamed.connection_count, renamed.created_ms),
        (vec!["x".into()], 1, 5)
    );
    assert_eq!(
        array.rename_host_group("h", group_name("Cluster")).unwrap_err().code(),
        "host_group_exists"
    );
    let array = Array::open(store.clone(), false).unwrap();
    assert_eq!(array.host("x").unwrap().host_group.as_deref(), Some("cluster"));
    let seen = array.connections(None, Some("x")).unwrap();
    assert_eq!((seen[0].lun, seen[0].host_group.as_deref()), (254, Some("cluster")));
    let name = |text: &str| vec![text.to_owned()];
    assert_eq!(code(array.delete_host_groups(&name("cluster"))), "existing_connections");
    assert_eq!(array.destroy_volume("a", 0).unwrap_err().code(), "existing_connections");
    array.disconnect_host_groups(&pair("a", "cluster")).unwrap();
    assert_eq!(code(array.delete_host_groups(&name("cluster"))), "host_group_not_empty");
    // All or none: the other group could be deleted.
    let both = vec!["h".to_owned(), "cluster".to_owned()];
    assert_eq!(code(array.delete_host_groups(&both)), "host_group_not_empty");
    assert_eq!(array.host_groups(None, 9).len(), 2);
    array.remove_from_host_groups(&pair("cluster", "x")).unwrap();
    array.delete_host_groups(&both).unwrap();
    let array = Array::open(store, false).unwrap();
    assert!(array.host_groups(None, 9).is_empty());
    assert!(array.lun_map(&iqn("x")).luns.is_empty());
}

/// Several connections in one change get different LUNs; after 1 they ascend from 255.
#[test]
fn shared_luns_descend_from_254_and_then_ascend() {
    let (_, array) = with_groups();
    array.pass_time(1, 1).1.unwrap();
    array.add_to_host_groups(&pair("g", "x")).unwrap();
    array.connect("a", "x", Some(253)).unwrap();
    let pairs: Vec<_> = ["b", "c"].map(|v| (v.to_owned(), "g".to_owned())).to_vec();
    let luns = array.connect_host_groups(&pairs, None).unwrap();
    assert_eq!(luns.iter().map(|c| c.lun).collect::<Vec<_>>(), [254, 252]);
    array.disconnect_host_groups(&pairs).unwrap();
    array.pass_time(LUN_REST_MS + 9, LUN_REST_MS + 9).1.unwrap();
    let same = array.connect_host_groups(&pairs, Some(9)).unwrap_err();
    assert_eq!(same.code(), "lun_in_use");
    for n in 0..253 {
        array.create_volume(new_volume(&format!("v{n}"), 4096)).unwrap();
        array.connect_host_groups(&pair(&format!("v{n}"), "g"), None).unwrap();
    }
    assert_eq!(array.connect_host_groups(&pair("b", "g"), None).unwrap()[0].lun, 255);
    // LUNs of a host without a group start at 1; those of a host in a group, at the first free LUN.
    assert_eq!(array.connect("d", "x", None).unwrap().lun, 256);
    assert_eq!(array.connect("d", "y", None).unwrap().lun, 1);
}

/// Returns a group of many hosts, and volumes with which it has no connection yet: as pairs.
fn many_hosts(hosts: usize, volumes: usize) -> (Array, Vec<(String, String)>) {
    let (_, array) = new_array();
    array.create_host_groups(vec![group_name("many")], 5).unwrap();
    let host = |n| format!("host-{n}");
    for n in 0..hosts {
        array.create_host(new_host(&host(n), &[&iqn(&host(n))])).unwrap();
    }
    let members: Vec<_> = (0..hosts).map(|n| ("many".to_owned(), host(n))).collect();
    array.add_to_host_groups(&members).unwrap();
    let volume = |n| format!("volume-{n}");
    let new = (0..volumes).map(|n| new_volume(&volume(n), 4096)).collect();
    array.create_volumes(new).unwrap();
    (array, (0..volumes).map(|n| (volume(n), "many".to_owned())).collect())
}

#[test]
fn the_volumes_of_a_group_change_in_one_step_for_all_its_hosts() {
    let (array, pairs) = many_hosts(50, 40);
    let map = || array.lun_map(&iqn("host-49"));
    let step = |what: &str, count: usize, change: &dyn Fn()| {
        let (before, old) = (array.generation(), map());
        change();
        assert_eq!(array.generation() - before, count as u64, "{what}");
        assert!(map().generation > old.generation, "{what}: hosts are notified");
        assert!(map().luns != old.luns, "{what}");
    };
    step("connect", 40, &|| drop(array.connect_host_groups(&pairs, None).unwrap()));
    let names: Vec<String> = pairs.iter().map(|(volume, _)| volume.clone()).collect();
    let larger = VolumeUpdate { size_bytes: Some(8192), ..VolumeUpdate::default() };
    step("resize", 40, &|| drop(array.update_volumes(&names, &larger).unwrap()));
    let offloads = vec![(block::Offload::Unmap, false)];
    let off = SettingsChange { offloads, ..SettingsChange::default() };
    step("offloads of the array", 1, &|| drop(array.change_settings(off.clone()).unwrap()));
    step("disconnect", 40, &|| array.disconnect_host_groups(&pairs).unwrap());
}

#[test]
fn the_private_luns_of_a_group_are_examined_once_for_all_connections() {
    let (array, pairs) = many_hosts(50, 40);
    for n in 0..8 {
        let name = format!("private-{n}");
        array.create_volume(new_volume(&name, 4096)).unwrap();
        let own: Vec<_> = (0..50).map(|host| (name.clone(), format!("host-{host}"))).collect();
        array.connect_all(&own, None).unwrap();
    }
    let mut luns = SharedLuns::default();
    let (_, planned) = plan_pairs(&array.read(), &pairs, None, &mut luns).unwrap();
    let found: Vec<u16> = planned.iter().map(|(_, _, info)| info.lun).collect();
    assert_eq!(found, (215..=254).rev().collect::<Vec<u16>>());
    assert_eq!(luns.steps, 50 * 8 + 40);
}
