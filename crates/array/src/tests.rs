//! Compares the array with a naive model, over a store in memory that can refuse changes.

mod access;
mod alerts;
mod certificates;
mod first;
mod host_groups;
mod host_state;
mod luns;
mod memory;
mod months;
mod notifications;
mod ports;
mod protection;
mod retired;
mod settings;
mod several;
mod snapshots;
mod steps;
mod sums;
mod tags;
mod time;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use block::LogicalBlockSize;
use proptest::prelude::*;

use super::*;
use luns::History;
use memory::MemoryStore;
use steps::{Step, steps};

fn new_array() -> (Arc<MemoryStore>, Array) {
    let store = Arc::new(MemoryStore::default());
    (store.clone(), Array::open(store, false).unwrap())
}

fn new_volume(name: &str, size_bytes: u64) -> NewVolume {
    NewVolume {
        name: VolumeName::new(name).unwrap(),
        size_bytes,
        logical_block: LogicalBlockSize::B512,
        reduction: Reduction::default(),
        limits: block::VolumeLimits::NONE,
        created_ms: 7,
    }
}

fn new_host(name: &str, iqns: &[&str]) -> NewHost {
    NewHost {
        name: HostName::new(name).unwrap(),
        initiators: iqns.iter().map(|iqn| InitiatorName::new(iqn).unwrap()).collect(),
        chap: None,
        personality: None,
        created_ms: 8,
    }
}

fn iqns(numbers: &[u8]) -> Vec<InitiatorName> {
    let name = |n: &u8| InitiatorName::new(&format!("iqn.2026-11.com.example:{n}")).unwrap();
    numbers.iter().map(name).collect()
}

/// The expected state: lists, searched from end to end.
#[derive(Default)]
struct Model {
    refuses: bool,
    volumes: Vec<(String, u64, String)>,
    hosts: Vec<(String, Vec<InitiatorName>)>,
    connections: Vec<(String, String, u16)>,
    history: History<String, String>,
}

fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

impl Model {
    fn volume(&self, name: &str) -> Option<usize> {
        self.volumes.iter().position(|v| same(&v.0, name))
    }

    fn host(&self, name: &str) -> Option<usize> {
        self.hosts.iter().position(|h| same(&h.0, name))
    }

    fn initiator_fault(&self, own: Option<usize>, iqns: &[InitiatorName]) -> Option<&'static str> {
        let is_taken = |iqn: &InitiatorName| {
            let mut others = self.hosts.iter().enumerate().filter(|(at, _)| Some(*at) != own);
            others.any(|(_, host)| host.1.contains(iqn))
        };
        // The first fault is the one that is reported.
        for (at, iqn) in iqns.iter().enumerate() {
            if iqns[..at].contains(iqn) {
                return Some("invalid_initiator");
            }
            if is_taken(iqn) {
                return Some("initiator_in_use");
            }
        }
        assert_eq!(iqns.iter().collect::<BTreeSet<_>>().len(), iqns.len());
        None
    }

    /// Returns the code of the expected refusal, or `Ok` if the step is accepted.
    fn expect(&self, step: &Step) -> Result<(), &'static str> {
        let volume = |name: &str| self.volume(name).ok_or("no_such_volume");
        let host = |name: &str| self.host(name).ok_or("no_such_host");
        let pair = |v: &str, h: &str| {
            self.connections.iter().find(|c| same(&c.0, v) && same(&c.1, h)).cloned()
        };
        let refuse = |is_so: bool, code| if is_so { Err(code) } else { Ok(()) };
        match step {
            Step::Create(name, size) => {
                refuse(size % 4096 != 0, "invalid_size")?;
                refuse(volume(name).is_ok(), "volume_exists")
            }
            Step::Resize(name, size, truncate) => {
                let at = volume(name)?;
                refuse(*size < self.volumes[at].1 && !truncate, "would_truncate")
            }
            Step::Rename(name, new) => {
                let at = volume(name)?;
                refuse(volume(new).is_ok_and(|other| other != at), "volume_exists")
            }
            Step::Destroy(name) => {
                volume(name)?;
                let is_used = self.connections.iter().any(|c| same(&c.0, name));
                refuse(is_used, "existing_connections")
            }
            Step::AddHost(name, numbers) => {
                refuse(host(name).is_ok(), "host_exists")?;
                self.initiator_fault(None, &iqns(numbers)).map_or(Ok(()), Err)
            }
            Step::SetInitiators(name, numbers) => {
                let at = host(name)?;
                self.initiator_fault(Some(at), &iqns(numbers)).map_or(Ok(()), Err)
            }
            Step::DeleteHost(name) => {
                host(name)?;
                let is_used = self.connections.iter().any(|c| same(&c.1, name));
                refuse(is_used, "existing_connections")
            }
            Step::Connect(v, h, lun) => {
                volume(v)?;
                host(h)?;
                refuse(pair(v, h).is_some(), "connection_exists")?;
                let Some(lun) = lun else { return Ok(()) };
                refuse(!(1..=16_383).contains(lun), "invalid_lun")?;
                let is_used = self.connections.iter().any(|c| same(&c.1, h) && c.2 == *lun);
                refuse(is_used, "lun_in_use")
            }
            Step::Disconnect(v, h) => {
                volume(v)?;
                host(h)?;
                refuse(pair(v, h).is_none(), "no_such_connection")
            }
            Step::Reload | Step::Refuse(_) => Ok(()),
        }
    }

    /// Returns whether an accepted step writes something.
    fn writes(&self, step: &Step) -> bool {
        match step {
            Step::Resize(name, size, _) => {
                self.volume(name).is_some_and(|at| self.volumes[at].1 != *size)
            }
            Step::Rename(name, new) => {
                self.volume(name).is_some_and(|at| self.volumes[at].0 != *new)
            }
            Step::Reload | Step::Refuse(_) => false,
            _ => true,
        }
    }

    fn free_lun(&self, volume: &str, host: &str) -> u16 {
        let is_used = |lun: u16| self.connections.iter().any(|c| same(&c.1, host) && c.2 == lun);
        let serial = &self.volumes[self.volume(volume).unwrap()].2;
        self.history.choose_for_host(host.to_lowercase(), None, serial, &[], is_used)
    }

    fn apply(&mut self, step: &Step, serial: Option<String>) {
        match step.clone() {
            Step::Create(name, size) => self.volumes.push((name, size, serial.unwrap())),
            Step::Resize(name, size, _) => {
                let at = self.volume(&name).unwrap();
                self.volumes[at].1 = size;
            }
            Step::Rename(name, new) => {
                let at = self.volume(&name).unwrap();
                self.volumes[at].0.clone_from(&new);
                let connected = self.connections.iter_mut().filter(|c| same(&c.0, &name));
                connected.for_each(|c| c.0.clone_from(&new));
            }
            Step::Destroy(name) => self.volumes.retain(|v| !same(&v.0, &name)),
            Step::AddHost(name, numbers) => self.hosts.push((name, iqns(&numbers))),
            Step::SetInitiators(name, numbers) => {
                let at = self.host(&name).unwrap();
                self.hosts[at].1 = iqns(&numbers);
            }
            Step::DeleteHost(name) => {
                self.hosts.retain(|h| !same(&h.0, &name));
                self.history.forget(&name.to_lowercase());
            }
            Step::Connect(v, h, lun) => {
                let lun = lun.unwrap_or_else(|| self.free_lun(&v, &h));
                let volume = self.volumes[self.volume(&v).unwrap()].0.clone();
                let host = self.hosts[self.host(&h).unwrap()].0.clone();
                self.connections.push((volume, host, lun));
            }
            Step::Disconnect(v, h) => {
                let at = self.connections.iter().position(|c| same(&c.0, &v) && same(&c.1, &h));
                let (volume, host, lun) = self.connections.remove(at.unwrap());
                let serial = self.volumes[self.volume(&volume).unwrap()].2.clone();
                self.history.release(Ok(host.to_lowercase()), lun, serial);
            }
            Step::Refuse(refuses) => self.refuses = refuses,
            Step::Reload => {}
        }
    }

    fn check(&self, array: &Array) {
        let mut volumes: Vec<_> = self.volumes.clone();
        volumes.sort_by_key(|v| v.0.to_lowercase());
        let shown = array.volumes(None, false, usize::MAX);
        let shown: Vec<_> = shown.into_iter().map(|v| (v.name, v.size_bytes, v.serial)).collect();
        assert_eq!(shown, volumes);
        let mut hosts: Vec<_> = self.hosts.iter().map(|h| h.0.clone()).collect();
        hosts.sort_by_key(|name| name.to_lowercase());
        let shown: Vec<_> = array.hosts(None, usize::MAX).into_iter().map(|h| h.name).collect();
        assert_eq!(shown, hosts);
        let mut connections = self.connections.clone();
        connections.sort_by_key(|c| (c.1.to_lowercase(), c.2));
        let shown = array.connections(None, None).unwrap();
        let shown: Vec<_> = shown.into_iter().map(|c| (c.volume, c.host, c.lun)).collect();
        assert_eq!(shown, connections);
        assert_eq!(array.counts().connections, connections.len());
        iqns(&[0, 1, 2, 3]).iter().for_each(|iqn| self.check_initiator(array, iqn));
    }

    /// Checks that an initiator sees exactly the volumes that are connected to its host.
    fn check_initiator(&self, array: &Array, iqn: &InitiatorName) {
        let host = self.hosts.iter().find(|host| host.1.contains(iqn)).map(|host| &host.0);
        let access = array.initiator(&iqn.as_str().to_uppercase());
        assert_eq!(access.map(|access| access.host).as_ref(), host);
        let reachable = self.connections.iter().filter(|c| Some(&c.1) == host);
        let expected: BTreeMap<u16, (String, u64)> = reachable
            .map(|c| {
                let volume = &self.volumes[self.volume(&c.0).unwrap()];
                (c.2, (volume.2.clone(), volume.1))
            })
            .collect();
        let map = array.lun_map(iqn.as_str());
        let shown = map
            .luns
            .iter()
            .map(|(lun, volume)| (*lun, (volume.serial.clone(), volume.size.0 * 512)));
        assert_eq!(shown.collect::<BTreeMap<_, _>>(), expected);
    }
}

fn perform(array: &Array, step: &Step) -> Result<Option<String>, Error> {
    match step.clone() {
        Step::Create(name, size) => {
            array.create_volume(new_volume(&name, size)).map(|volume| Some(volume.serial))
        }
        Step::Resize(name, size, truncate) => {
            array.resize_volume(&name, size, truncate).map(|_| None)
        }
        Step::Rename(name, new) => {
            array.rename_volume(&name, VolumeName::new(&new).unwrap()).map(|_| None)
        }
        Step::Destroy(name) => {
            array.destroy_volume(&name, 1)?;
            array.eradicate_volume(&name).map(|()| None)
        }
        Step::AddHost(name, numbers) => {
            let host = NewHost { initiators: iqns(&numbers), ..new_host(&name, &[]) };
            array.create_host(host).map(|_| None)
        }
        Step::SetInitiators(name, numbers) => {
            let initiators = Some(iqns(&numbers));
            array.change_host(&name, HostChange { initiators, ..Default::default() }).map(|_| None)
        }
        Step::DeleteHost(name) => array.delete_host(&name).map(|()| None),
        Step::Connect(v, h, lun) => array.connect(&v, &h, lun).map(|_| None),
        Step::Disconnect(v, h) => array.disconnect(&v, &h).map(|()| None),
        Step::Reload | Step::Refuse(_) => Ok(None),
    }
}

fn maps(array: &Array) -> Vec<(InitiatorName, Arc<block::LunMap>)> {
    let map = |iqn: InitiatorName| (iqn.clone(), array.lun_map(iqn.as_str()));
    iqns(&[0, 1, 2, 3]).into_iter().map(map).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn behaves_as_the_naive_model(steps in prop::collection::vec(steps(), 1..60)) {
        let (store, mut array) = new_array();
        let mut model = Model::default();
        let mut serials = BTreeSet::new();
        for step in &steps {
            let before = maps(&array);
            let mut expected = model.expect(step);
            if expected.is_ok() && model.refuses && model.writes(step) {
                expected = Err("pool_full");
            }
            let result = perform(&array, step);
            prop_assert_eq!(result.as_ref().map(|_| ()).map_err(Error::code), expected);
            match (step, result) {
                (Step::Reload, _) => array = Array::open(store.clone(), false).unwrap(),
                (_, Ok(serial)) => {
                    let is_new = serial.iter().all(|serial| serials.insert(serial.clone()));
                    prop_assert!(is_new, "a serial came twice");
                    model.apply(step, serial);
                    store.refuses.store(model.refuses, Ordering::Relaxed);
                }
                (_, Err(error)) => prop_assert!(!error.to_string().contains('\n')),
            }
            model.check(&array);
            for (iqn, old) in before {
                let new = array.lun_map(iqn.as_str());
                let reloaded = matches!(step, Step::Reload);
                let reported = new.generation > old.generation;
                prop_assert!(reloaded || old.luns == new.luns || reported, "{iqn} was missed");
            }
        }
    }
}

#[test]
fn ten_thousand_volumes_take_a_moment() {
    let (store, array) = new_array();
    array.create_host(new_host("esx1", &["iqn.2026-11.com.example:1"])).unwrap();
    for n in 0..10_000 {
        let name = format!("volume-{n}");
        array.create_volume(new_volume(&name, 1 << 30)).unwrap();
        array.connect(&name, "esx1", None).unwrap();
    }
    let array = Array::open(store, false).unwrap();
    assert_eq!(array.lun_map("iqn.2026-11.com.example:1").luns.len(), 10_000);
    let page = array.volumes(Some("VOLUME-5000"), false, 2);
    assert_eq!(page.len(), 2);
    assert_eq!(page[0].name, "volume-5001");
}

#[test]
fn secrets_are_stored_and_never_shown() {
    let (store, array) = new_array();
    let initiator = ChapUser::new("esx1", "correct horse").unwrap();
    let target = ChapUser::new("array", "battery staple").unwrap();
    let chap = Chap::new(initiator, Some(target)).unwrap();
    let host =
        NewHost { chap: Some(chap.clone()), ..new_host("esx1", &["iqn.2026-11.com.example:1"]) };
    let shown = format!("{:?}", array.create_host(host).unwrap());
    assert!(!shown.contains("horse") && !shown.contains("staple"), "{shown}");
    let again = Array::open(store, false).unwrap();
    let found = again.initiator("iqn.2026-11.com.example:1").unwrap();
    assert_eq!(found.chap, Some(chap));
}

#[test]
fn a_new_company_identifier_does_not_change_existing_names() {
    let (store, array) = new_array();
    let old = array.create_volume(new_volume("old", 4096)).unwrap();
    let company_id = Some(CompanyId::parse("24a937").unwrap());
    array.change_settings(SettingsChange { company_id, ..Default::default() }).unwrap();
    let new = array.create_volume(new_volume("new", 4096)).unwrap();
    assert_eq!(new.naa, format!("naa.624a9370{}", new.serial.to_lowercase()));
    let again = Array::open(store, false).unwrap();
    assert_eq!(again.volume("old").unwrap(), old);
    assert_eq!(again.settings(), array.settings());
}
