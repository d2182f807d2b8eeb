"""Snapshots of volumes and of protection groups."""

from answers import good, names, one, refused
from pypureclient.flasharray import (
    ProtectionGroupSnapshot,
    ProtectionGroupSnapshotPatch,
    Reference,
    VolumePatch,
    VolumePost,
    VolumeSnapshotPatch,
    VolumeSnapshotPost,
)

GIB = 1 << 30


def test_a_snapshot_lives_and_dies(client, prefix):
    volume = f"{prefix}-v"
    made = one(client.post_volumes(names=[volume], volume=VolumePost(provisioned=GIB)))
    before = VolumeSnapshotPost(suffix="before")
    snapshot = one(client.post_volume_snapshots(source_names=[volume], volume_snapshot=before))
    name = f"{volume}.before"
    assert (snapshot.name, snapshot.suffix, snapshot.source.name) == (name, "before", volume)
    assert snapshot.provisioned == GIB and snapshot.serial != made.serial
    again = client.post_volume_snapshots(source_names=[volume], volume_snapshot=before)
    refused(again, "Volume snapshot already exists.")
    counted = one(
        client.post_volume_snapshots(source_names=[volume], volume_snapshot=VolumeSnapshotPost())
    )
    assert counted.name == f"{volume}.1"
    listed = names(client.get_volume_snapshots(source_names=[volume]))
    assert listed == [f"{volume}.1", name]
    assert one(client.get_volume_snapshots(ids=[snapshot.id])).name == name
    found = client.get_volume_snapshots(filter=f"source.name='{volume}' and suffix='be*'")
    assert names(found) == [name]
    refused(client.get_volume_snapshots(names=[f"{volume}.none"]), "No such volume or snapshot.")

    renamed = VolumeSnapshotPatch(name="after")
    assert one(client.patch_volume_snapshots(names=[name], volume_snapshot=renamed)).name == (
        f"{volume}.after"
    )
    name = f"{volume}.after"
    clone = VolumePost(source=Reference(name=name))
    assert one(client.post_volumes(names=[f"{prefix}-c"], volume=clone)).provisioned == GIB
    good(client.patch_volumes(names=[volume], volume=VolumePatch(provisioned=2 * GIB)))
    back = client.post_volumes(names=[volume], volume=clone, overwrite=True)
    assert one(back).provisioned == GIB

    ends = VolumeSnapshotPatch(destroyed=True)
    refused(
        client.delete_volume_snapshots(names=[name]),
        f"Snapshot {prefix}-v.after is not destroyed. Destroy it first.",
    )
    assert one(client.patch_volume_snapshots(names=[name], volume_snapshot=ends)).destroyed
    refused(
        client.get_volume_snapshots(names=[name], destroyed=False),
        "No such volume or snapshot.",
    )
    stays = VolumeSnapshotPatch(destroyed=False)
    good(client.patch_volume_snapshots(names=[name], volume_snapshot=stays))
    good(client.patch_volume_snapshots(names=[name, f"{volume}.1"], volume_snapshot=ends))
    good(client.delete_volume_snapshots(names=[name, f"{volume}.1"]))
    assert names(client.get_volume_snapshots(source_names=[volume])) == []


def test_snapshots_are_destroyed_with_their_volume(client, prefix):
    volume = f"{prefix}-v"
    good(client.post_volumes(names=[volume], volume=VolumePost(provisioned=GIB)))
    for _ in range(3):
        good(client.post_volume_snapshots(
            source_names=[volume], volume_snapshot=VolumeSnapshotPost()
        ))
    own = f"name='{volume}.*'"
    assert len(names(client.get_volume_snapshots(filter=own, destroyed=False))) == 3
    good(client.patch_volumes(names=[volume], volume=VolumePatch(destroyed=True)))
    assert names(client.get_volume_snapshots(filter=own, destroyed=False)) == []
    gone = names(client.get_volume_snapshots(filter=own, destroyed=True, sort=["created-"]))
    assert len(gone) == 3
    page = client.get_volume_snapshots(source_names=[volume], limit=2)
    first = [item.name for item in page.items]
    page = client.get_volume_snapshots(
        source_names=[volume], limit=2, continuation_token=page.continuation_token
    )
    assert first + [item.name for item in page.items] == [f"{volume}.{n}" for n in (1, 2, 3)]


def test_protection_groups(client, prefix):
    group, volumes = f"{prefix}-g", [f"{prefix}-a", f"{prefix}-b"]
    good(client.post_volumes(names=volumes, volume=VolumePost(provisioned=GIB)))
    made = one(client.post_protection_groups(names=[group]))
    assert (made.name, made.destroyed, made.volume_count) == (group, False, 0)
    refused(
        client.post_protection_groups(names=[group]),
        f"Group already exists: {prefix}-g. Choose another name.",
    )
    members = client.post_protection_groups_volumes(group_names=[group], member_names=volumes)
    assert [member.member.name for member in good(members)] == volumes
    assert one(client.get_protection_groups(names=[group])).volume_count == 2
    assert one(client.get_protection_groups(ids=[made.id])).name == group
    member = one(client.get_protection_groups_volumes(member_names=[volumes[0]]))
    assert (member.group.name, member.member.name) == (group, volumes[0])
    member = one(client.get_volumes_protection_groups(member_names=volumes[1:]))
    assert (member.group.name, member.member.name) == (group, volumes[1])

    new = ProtectionGroupSnapshot(suffix="s1")
    snapshot = client.post_protection_group_snapshots(
        source_names=[group], protection_group_snapshot=new
    )
    assert one(snapshot).name == f"{group}.s1"
    parts = [f"{group}.s1.{volume}" for volume in volumes]
    assert names(client.get_volume_snapshots(filter=f"name='{group}.s1.*'")) == parts
    listed = client.get_protection_group_snapshots(source_names=[group])
    assert names(listed) == [f"{group}.s1"]
    replicated = client.post_protection_group_snapshots(source_names=[group], replicate_now=True)
    refused(replicated, "Replication: not supported by this array.")
    ends = ProtectionGroupSnapshotPatch(destroyed=True)
    name = f"{group}.s1"
    good(client.patch_protection_group_snapshots(names=[name], protection_group_snapshot=ends))
    found = client.get_protection_group_snapshots(names=[name], destroyed=True)
    assert one(found).destroyed
    good(client.delete_protection_group_snapshots(names=[name]))
    refused(
        client.get_protection_group_snapshots(names=[name]),
        f"Group snapshot does not exist: {prefix}-g.s1. It is named GROUP.SUFFIX.",
    )
    good(client.delete_protection_groups_volumes(group_names=[group], member_names=volumes[:1]))
    assert one(client.get_protection_groups(names=[group])).volume_count == 1
