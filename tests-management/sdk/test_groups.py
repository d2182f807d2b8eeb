"""Host groups, tags, schedules of protection groups, limits of volumes."""

from answers import good, names, one, refused
from pypureclient.flasharray import (
    ConnectionPost,
    HostGroupPatch,
    HostPost,
    ProtectionGroup,
    Qos,
    Reference,
    RetentionPolicy,
    SnapshotSchedule,
    TagBatch,
    VolumePatch,
    VolumePost,
)

GIB = 1 << 30


def test_a_host_group_shares_volumes(client, prefix):
    group, hosts, volume = f"{prefix}-hg", [f"{prefix}-x", f"{prefix}-y"], f"{prefix}-v"
    good(client.post_volumes(names=[volume], volume=VolumePost(provisioned=GIB)))
    good(client.post_hosts(names=hosts, host=HostPost()))
    assert one(client.post_host_groups(names=[group])).name == group
    refused(client.post_host_groups(names=[group]), "Host group already exists.")
    good(client.post_host_groups_hosts(group_names=[group], member_names=hosts))
    members = good(client.get_host_groups_hosts(group_names=[group]))
    assert [member.member.name for member in members] == hosts
    assert one(client.get_hosts(names=hosts[:1])).host_group.name == group
    made = client.post_connections(
        host_group_names=[group], volume_names=[volume], connection=ConnectionPost()
    )
    assert {(row.host.name, row.lun) for row in good(made)} == {(host, 254) for host in hosts}
    again = client.post_connections(
        host_names=hosts[:1], volume_names=[volume], connection=ConnectionPost()
    )
    refused(again, "Connection already exists.")
    shown = one(client.get_connections(host_names=hosts[1:], volume_names=[volume]))
    assert (shown.host_group.name, shown.lun) == (group, 254)
    refused(
        client.delete_host_groups(names=[group]),
        f"Host group {prefix}-hg cannot be deleted due to existing connections (1). Disconnect it.",
    )
    good(client.delete_connections(host_group_names=[group], volume_names=[volume]))
    good(client.delete_host_groups_hosts(group_names=[group], member_names=hosts))
    changed = client.patch_host_groups(names=[group], host_group=HostGroupPatch(name=f"{group}2"))
    assert one(changed).name == f"{group}2"
    good(client.delete_host_groups(names=[f"{group}2"]))
    refused(client.get_host_groups(names=[f"{group}2"]), "Host group does not exist.")


def test_tags(client, prefix):
    volumes = [f"{prefix}-a", f"{prefix}-b"]
    good(client.post_volumes(names=volumes, volume=VolumePost(provisioned=GIB)))
    tags = [TagBatch(key="app", value="db", namespace="x.example.com", copyable=True)]
    good(client.put_volumes_tags_batch(resource_names=volumes, tag=tags))
    found = good(client.get_volumes_tags(resource_names=volumes[:1], namespaces=["x.example.com"]))
    assert [(tag.key, tag.value, tag.resource.name) for tag in found] == [("app", "db", volumes[0])]
    copy = VolumePost(source=Reference(name=volumes[0]))
    clone = one(client.post_volumes(names=[f"{prefix}-c"], volume=copy))
    assert clone.source.name == volumes[0]
    assert one(client.get_volumes_tags(resource_names=[clone.name])).value == "db"
    gone = {"resource_names": volumes, "namespaces": ["x.example.com"], "keys": ["app"]}
    good(client.delete_volumes_tags(**gone))
    assert not good(client.get_volumes_tags(resource_names=volumes))
    refused(client.delete_volumes_tags(**gone), f"Tag does not exist: app of {prefix}-a.")


def test_schedules_run(client, prefix, eventually):
    group, volume = f"{prefix}-g", f"{prefix}-v"
    good(client.post_volumes(names=[volume], volume=VolumePost(provisioned=GIB)))
    good(client.post_protection_groups(names=[group]))
    good(client.post_protection_groups_volumes(group_names=[group], member_names=[volume]))
    change = ProtectionGroup(
        snapshot_schedule=SnapshotSchedule(enabled=True, frequency=3_600_000),
        source_retention=RetentionPolicy(all_for_sec=3600, days=3, per_day=2),
    )
    changed = one(client.patch_protection_groups(names=[group], protection_group=change))
    assert changed.snapshot_schedule.enabled and changed.source_retention.days == 3
    taken = eventually(
        lambda: good(client.get_protection_group_snapshots(source_names=[group]))
    )
    assert [snapshot.name for snapshot in taken] == [f"{group}.1"]
    ends, comes = ProtectionGroup(destroyed=True), ProtectionGroup(destroyed=False)
    good(client.patch_protection_groups(names=[group], protection_group=ends))
    assert one(client.get_protection_groups(names=[group], destroyed=True)).time_remaining > 0
    refused(
        client.get_protection_groups(names=[group], destroyed=False),
        f"Group does not exist: {prefix}-g. The list of groups shows their names.",
    )
    assert not names(client.get_volume_snapshots(source_names=[volume], destroyed=False))
    good(client.patch_protection_groups(names=[group], protection_group=comes))
    assert names(client.get_volume_snapshots(source_names=[volume])) == [f"{group}.1.{volume}"]
    good(client.patch_protection_groups(names=[group], protection_group=ends))
    good(client.delete_protection_groups(names=[group]))
    refused(
        client.get_protection_groups(names=[group]),
        f"Group does not exist: {prefix}-g. The list of groups shows their names.",
    )


def test_limits(client, prefix):
    limits = Qos(bandwidth_limit=10 << 20, iops_limit=1000)
    made = one(client.post_volumes(names=[prefix], volume=VolumePost(provisioned=GIB, qos=limits)))
    assert (made.qos.bandwidth_limit, made.qos.iops_limit) == (10 << 20, 1000)
    none = VolumePatch(qos=Qos(bandwidth_limit=512 << 30, iops_limit=100_000_000))
    good(client.patch_volumes(names=[prefix], volume=none))
    assert one(client.get_volumes(names=[prefix])).qos.iops_limit == 100_000_000
