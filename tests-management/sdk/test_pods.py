"""Pods: name spaces of volumes."""

from answers import good, names, one, refused
from pypureclient.flasharray import (
    PodPatch,
    PodPost,
    Reference,
    VolumePatch,
    VolumePost,
    VolumeSnapshotPost,
)

GIB = 1 << 30


def test_volumes_in_pods(client, prefix):
    pod, other = f"{prefix}-pod", f"{prefix}-other"
    made = one(client.post_pods(names=[pod], pod=PodPost()))
    assert (made.name, made.array_count, made.promotion_status) == (pod, 1, "promoted")
    refused(client.post_pods(names=[pod], pod=PodPost()), "Pod already exists.")
    inside = [f"{pod}::a", f"{pod}::b"]
    volumes = good(client.post_volumes(names=inside, volume=VolumePost(provisioned=GIB)))
    assert [volume.pod.name for volume in volumes] == [pod, pod]
    suffix = VolumeSnapshotPost(suffix="s")
    taken = client.post_volume_snapshots(source_names=inside[:1], volume_snapshot=suffix)
    snapshot = one(taken)
    assert snapshot.name == f"{pod}::a.s"
    found = client.get_volumes(filter=f"pod.name='{pod}'")
    assert names(found) == inside
    assert one(client.get_pods_space(names=[pod])).space.total_provisioned == 2 * GIB
    (array,) = good(client.get_arrays())
    assert one(client.get_pods_members(pod_names=[pod])).member.name == array.name
    assert one(client.get_pods_arrays(group_names=[pod])).member.name == array.name
    out = VolumePatch(pod=Reference(name=""))
    assert one(client.patch_volumes(names=inside[1:], volume=out)).name == "b"
    back = VolumePatch(pod=Reference(name=pod))
    assert one(client.patch_volumes(names=["b"], volume=back)).name == inside[1]
    good(client.patch_pods(names=[pod], pod=PodPatch(name=other)))
    refused(client.get_pods(names=[pod]), "Pod does not exist.")
    destroy = PodPatch(destroyed=True)
    refused(
        client.patch_pods(names=[other], pod=destroy),
        f"Pod {other} has volumes. Destroy or move them first, or destroy them together.",
    )
    good(client.patch_pods(names=[other], pod=destroy, destroy_contents=True))
    good(client.delete_pods(names=[other], eradicate_contents=True))
    assert good(client.get_volumes(filter=f"name='{other}*'")) == []
    assert good(client.get_pods(filter=f"name='{other}*'")) == []
    refused(
        client.post_pods(names=[pod], pod=PodPost(source=Reference(name=other))),
        "A copy of a whole pod: not supported by this array.",
    )
