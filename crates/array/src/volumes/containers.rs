//! Volume groups and pods: a common prefix of the names of volumes, which are renamed and destroyed
//! together.
//!
//! The name of a volume determines its container. A destroyed container has only destroyed volumes;
//! those that were destroyed with it have its eradication time, and are recovered with it.

use block::{VolumeId, VolumeLimits};
use store::Change;

use super::ends::{check_recoverable, plan_doom, plan_volume_end};
use crate::array::Array;
use crate::array::distinct::{CHANGES_MAX, check, check_all};
use crate::container_kind::ContainerKind;
use crate::error::Error;
use crate::objects::containers::{CONTAINERS_MAX, Container, ContainerId};
use crate::objects::time::BEGUN_MS;
use crate::objects::volumes::VolumeRecord;
use crate::record;
use crate::state::State;
use crate::values::container::ContainerName;
use crate::values::limits::{self, LimitsChange};

/// A volume group or a pod, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerInfo {
    /// Its id, which never changes.
    pub id: u64,
    /// Its current name.
    pub name: String,
    /// The names of its volumes that are not destroyed.
    pub volumes: Vec<String>,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: u64,
    /// If it is destroyed: when it is eradicated, in milliseconds since 1970.
    pub eradicate_ms: Option<u64>,
    /// Limits on the I/O of hosts to all of its volumes together.
    pub limits: VolumeLimits,
}

/// A container and volumes of it, as they will be after the change.
type Planned = (ContainerId, Container, Vec<VolumeRecord>);

impl Array {
    /// Creates volume groups or pods without volumes; durable when it returns.
    ///
    /// # Errors
    /// `volume_group_exists`, `volume_group_destroyed`, or those of pods; `limit_reached`,
    /// `named_twice`, and those of the store.
    pub fn create_containers(
        &self,
        names: Vec<ContainerName>,
        limits: VolumeLimits,
        created_ms: u64,
    ) -> Result<Vec<ContainerInfo>, Error> {
        check(names.iter().map(ContainerName::as_str))?;
        limits::check(limits)?;
        let plan = |state: &State, before, name: ContainerName| {
            check_free(state, &name)?;
            let kind = name.kind();
            if state.containers.count(kind) + before >= CONTAINERS_MAX {
                return Err(Error::Limit { what: kind.plural(), limit: CONTAINERS_MAX });
            }
            let container = Container { name, created_ms, eradicate_ms: None, limits };
            plan_container(state.containers.next_id(kind, before), container, Vec::new())
        };
        self.change_all(names, plan, show)
    }

    /// Renames a volume group or a pod, and with it its volumes. Their connections stay.
    ///
    /// # Errors
    /// `no_such_volume_group`, `volume_group_exists`, `volume_group_destroyed`, or those of pods;
    /// those of the store.
    pub fn rename_container(
        &self,
        name: &str,
        new_name: ContainerName,
    ) -> Result<ContainerInfo, Error> {
        let plan = |state: &State| {
            let kind = new_name.kind();
            let (id, container) = state.containers.live(kind, name)?;
            if new_name.key() != container.name.key() {
                check_free(state, &new_name)?;
            }
            let volumes = state.volumes_within(kind, name).map(|volume| {
                let name = volume.name.within(Some(&new_name));
                VolumeRecord { name, ..volume.clone() }
            });
            let volumes = volumes.collect();
            plan_container(id, Container { name: new_name, ..container.clone() }, volumes)
        };
        self.change(plan, show)
    }

    /// Changes the limits of volume groups, which apply to all volumes of each together.
    ///
    /// # Errors
    /// `no_such_volume_group`, `volume_group_destroyed`, `invalid_limit`, `named_twice`, and those
    /// of the store.
    pub fn limit_volume_groups(
        &self,
        names: &[String],
        change: LimitsChange,
    ) -> Result<Vec<ContainerInfo>, Error> {
        check_all(names)?;
        let kind = ContainerKind::VolumeGroup;
        let plan = |state: &State, _, name: &String| {
            let (id, group) = state.containers.live(kind, name)?;
            let limits = change.of(group.limits);
            limits::check(limits)?;
            plan_container(id, Container { limits, ..group.clone() }, Vec::new())
        };
        self.change_all(names, plan, |state, planned| {
            let shown = show(state, planned);
            // Their records do not change, but the attributes that hosts see do.
            let volumes: Vec<_> = state.volumes_within(kind, &shown.name).cloned().collect();
            volumes.into_iter().for_each(|volume| state.replace_volume(volume));
            shown
        })
    }

    /// Destroys volume groups or pods with their volumes. They can be recovered until they are
    /// eradicated. Without `contents`, one that has volumes is refused.
    ///
    /// # Errors
    /// `no_such_volume_group`, `volume_group_destroyed`, or those of pods; `not_empty`,
    /// `existing_connections`, `named_twice`, `limit_reached` if they have too many volumes
    /// together, and those of the store.
    pub fn destroy_containers(
        &self,
        kind: ContainerKind,
        names: &[String],
        contents: bool,
        now_ms: u64,
    ) -> Result<Vec<ContainerInfo>, Error> {
        check_all(names)?;
        self.change_containers(kind, names, |state, name| {
            let (id, container) = state.containers.live(kind, name)?;
            let eradicate_ms = state.doom(now_ms);
            let live = state.volumes_within(kind, name).filter(|it| it.eradicate_ms.is_none());
            let mut live = live.peekable();
            if !contents && live.peek().is_some() {
                return Err(Error::ContainerNotEmpty(kind, container.name.to_string()));
            }
            let ended = live.map(|volume| {
                let (_, ended) = plan_volume_end(state, volume.name.as_str(), now_ms)?;
                Ok(VolumeRecord { eradicate_ms, ..ended })
            });
            let ended = ended.collect::<Result<_, Error>>()?;
            Ok((id, Container { eradicate_ms, ..container.clone() }, ended))
        })
    }

    /// Recovers destroyed volume groups or pods, with the volumes that were destroyed with them.
    ///
    /// # Errors
    /// `no_such_volume_group`, `not_destroyed`, `eradicated`, `named_twice`, `limit_reached`, and
    /// those of the store.
    pub fn recover_containers(
        &self,
        kind: ContainerKind,
        names: &[String],
    ) -> Result<Vec<ContainerInfo>, Error> {
        check_all(names)?;
        self.change_containers(kind, names, |state, name| {
            let (id, container) = state.containers.any(kind, name)?;
            check_recoverable(container.eradicate_ms, || format!("{kind} {}", container.name))?;
            let with_it = state.volumes_within(kind, name);
            let with_it = with_it.filter(|volume| volume.eradicate_ms == container.eradicate_ms);
            let back = with_it.map(|volume| VolumeRecord { eradicate_ms: None, ..volume.clone() });
            let back = back.collect();
            Ok((id, Container { eradicate_ms: None, ..container.clone() }, back))
        })
    }

    /// Eradicates destroyed volume groups or pods with all of their volumes. After the first commit
    /// none of them can be recovered; the eradication may need further commits, and continues after
    /// a crash. Without `contents`, one that has volumes is refused.
    ///
    /// # Errors
    /// `no_such_volume_group`, `not_destroyed`, `named_twice`, `limit_reached`, and those of the
    /// store.
    pub fn eradicate_containers(
        &self,
        kind: ContainerKind,
        names: &[String],
        contents: bool,
    ) -> Result<(), Error> {
        check_all(names)?;
        let mut ids = Vec::new();
        let mut volumes: Vec<VolumeId> = Vec::new();
        self.change_containers(kind, names, |state, name| {
            let (id, container) = state.containers.any(kind, name)?;
            if container.eradicate_ms.is_none() {
                return Err(Error::NotDestroyed(format!("{kind} {}", container.name)));
            }
            let eradicate_ms = Some(BEGUN_MS);
            let begun = state.volumes_within(kind, name);
            let begun = begun.map(|volume| VolumeRecord { eradicate_ms, ..volume.clone() });
            let begun: Vec<_> = begun.collect();
            if !contents && !begun.is_empty() {
                return Err(Error::ContainerNotEmpty(kind, container.name.to_string()));
            }
            ids.push(id);
            volumes.extend(begun.iter().map(|volume| volume.id));
            Ok((id, Container { eradicate_ms, ..container.clone() }, begun))
        })?;
        self.finish_eradications(&volumes)?;
        self.remove_containers(&ids)
    }

    /// Removes destroyed containers without volumes; those with volumes wait for their eradication.
    pub(crate) fn remove_containers(&self, ids: &[ContainerId]) -> Result<(), Error> {
        let plan = |state: &State| {
            let is_over = |id: &ContainerId| {
                let container = state.containers.get(*id);
                container
                    .filter(|it| it.eradicate_ms.is_some())
                    .is_some_and(|it| state.volumes_within(id.kind, it.name.as_str()).count() == 0)
            };
            let gone: Vec<_> = ids.iter().copied().filter(is_over).collect();
            let config = gone.iter().map(|id| (record::container_key(*id), None)).collect();
            Ok((Change { config, ..Change::default() }, gone))
        };
        self.change(plan, |state, gone| gone.into_iter().for_each(|id| state.containers.remove(id)))
    }

    /// Returns a volume group or a pod, destroyed or not.
    ///
    /// # Errors
    /// `no_such_volume_group`.
    pub fn container(&self, kind: ContainerKind, name: &str) -> Result<ContainerInfo, Error> {
        let state = self.read();
        state.containers.any(kind, name).map(|(id, container)| info(&state, id, container))
    }

    /// Returns the name of the volume group or the pod with this id, if it exists.
    pub fn container_name(&self, kind: ContainerKind, number: u64) -> Option<String> {
        self.read()
            .containers
            .get(ContainerId { kind, number })
            .map(|container| container.name.to_string())
    }

    /// Returns up to `limit` volume groups or pods in the order of their names (ignoring case),
    /// after `after`: only destroyed ones, only the others, or (`None`) both.
    pub fn containers(
        &self,
        kind: ContainerKind,
        after: Option<&str>,
        destroyed: Option<bool>,
        limit: usize,
    ) -> Vec<ContainerInfo> {
        let state = self.read();
        let rows = state.containers.after(kind, after);
        rows.filter(|(_, container)| {
            destroyed.is_none_or(|d| container.eradicate_ms.is_some() == d)
        })
        .take(limit)
        .map(|(id, container)| info(&state, id, container))
        .collect()
    }

    /// Changes containers and their volumes in one commit, which can contain a limited number of
    /// records.
    fn change_containers(
        &self,
        kind: ContainerKind,
        names: &[String],
        mut planned: impl FnMut(&State, &str) -> Result<Planned, Error>,
    ) -> Result<Vec<ContainerInfo>, Error> {
        let plan = |state: &State| {
            let (mut whole, mut all, mut count) = (Change::default(), Vec::new(), 0);
            for name in names {
                let (id, container, volumes) = planned(state, name)?;
                count += volumes.len();
                if count > CHANGES_MAX {
                    let what = match kind {
                        ContainerKind::VolumeGroup => "volumes of volume groups are changed",
                        ContainerKind::Pod => "volumes of pods are changed",
                    };
                    return Err(Error::TooManyAtOnce { what, limit: CHANGES_MAX });
                }
                let (change, one) = plan_container(id, container, volumes)?;
                whole.config.extend(change.config);
                all.push(one);
            }
            Ok((whole, all))
        };
        self.change(plan, |state, all: Vec<Planned>| {
            all.into_iter().map(|one| show(state, one)).collect()
        })
    }
}

/// Checks that no container of the kind has this name.
fn check_free(state: &State, name: &ContainerName) -> Result<(), Error> {
    match state.containers.live(name.kind(), name.as_str()) {
        Ok(_) => Err(Error::ContainerExists(name.kind(), name.to_string())),
        Err(destroyed @ Error::ContainerDestroyed(..)) => Err(destroyed),
        Err(_) => Ok(()),
    }
}

fn plan_container(
    id: ContainerId,
    container: Container,
    volumes: Vec<VolumeRecord>,
) -> Result<(Change, Planned), Error> {
    let mut config = vec![(record::container_key(id), Some(record::container(&container)?))];
    for volume in &volumes {
        config.extend(plan_doom(volume.clone())?.0.config);
    }
    Ok((Change { config, ..Change::default() }, (id, container, volumes)))
}

fn show(state: &mut State, (id, container, volumes): Planned) -> ContainerInfo {
    state.containers.replace(id, container.clone());
    volumes.into_iter().for_each(|volume| state.replace_volume(volume));
    info(state, id, &container)
}

fn info(state: &State, id: ContainerId, container: &Container) -> ContainerInfo {
    let volumes = state.volumes_within(id.kind, container.name.as_str());
    let live = volumes.filter(|volume| volume.eradicate_ms.is_none());
    ContainerInfo {
        id: id.number,
        name: container.name.to_string(),
        volumes: live.map(|volume| volume.name.to_string()).collect(),
        created_ms: container.created_ms,
        eradicate_ms: state.shown_doom(container.eradicate_ms),
        limits: container.limits,
    }
}
