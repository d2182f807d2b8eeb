"""Volumes: created, changed, copied, destroyed."""

import re

from answers import good, names, one, refused
from pypureclient import flasharray
from pypureclient.flasharray import Reference, VolumePatch, VolumePost

GIB = 1 << 30


def test_a_volume_lives_and_dies(client, prefix):
    name = f"{prefix}-db_1"
    made = one(client.post_volumes(names=[name], volume=VolumePost(provisioned=GIB)))
    assert (made.name, made.provisioned, made.destroyed) == (name, GIB, False)
    assert re.fullmatch("[0-9A-F]{24}", made.serial)
    assert made.created > 1_700_000_000_000
    assert made.space.total_provisioned == GIB
    assert (made.subtype, made.promotion_status) == ("regular", "promoted")
    again = client.post_volumes(names=[name], volume=VolumePost(provisioned=GIB))
    refused(again, "Volume already exists.")
    assert one(client.get_volumes(names=[name.upper()])).id == made.id
    assert one(client.get_volumes(ids=[made.id])).name == name

    bigger = client.patch_volumes(names=[name], volume=VolumePatch(provisioned=2 * GIB))
    assert one(bigger).provisioned == 2 * GIB
    smaller = VolumePatch(provisioned=GIB)
    refused(
        client.patch_volumes(names=[name], volume=smaller),
        f"Volume {prefix}-db_1 has 2147483648 bytes: a smaller size cuts data off permanently. "
        "Request it explicitly (truncate).",
    )
    good(client.patch_volumes(names=[name], volume=smaller, truncate=True))
    new = f"{prefix}-db-2"
    renamed = one(client.patch_volumes(names=[name], volume=VolumePatch(name=new)))
    assert (renamed.id, renamed.serial) == (made.id, made.serial)

    refused(
        client.delete_volumes(names=[new]),
        f"Volume {prefix}-db-2 is not destroyed. Destroy it first.",
    )
    destroyed = one(client.patch_volumes(names=[new], volume=VolumePatch(destroyed=True)))
    assert destroyed.destroyed and 0 < destroyed.time_remaining <= 86_400_000
    again = client.patch_volumes(names=[new], volume=VolumePatch(destroyed=True))
    refused(again, "Volume has been deleted.")
    assert one(client.get_volumes(names=[new], destroyed=True)).id == made.id
    refused(client.get_volumes(names=[new], destroyed=False), "Volume does not exist.")
    good(client.patch_volumes(names=[new], volume=VolumePatch(destroyed=False)))
    refused(client.get_volumes(names=[new], destroyed=True), "Volume does not exist.")
    good(client.patch_volumes(ids=[made.id], volume=VolumePatch(destroyed=True)))
    good(client.delete_volumes(names=[new]))
    refused(client.get_volumes(names=[new]), "Volume does not exist.")
    refused(client.get_volumes(ids=[made.id]), f"The id does not exist: {made.id}.")


def test_requests_for_several_volumes_are_atomic(client, prefix):
    some = [f"{prefix}-{n}" for n in range(3)]
    assert names(client.post_volumes(names=some, volume=VolumePost(provisioned=GIB))) == some
    more = [f"{prefix}-3", f"{prefix}-1"]
    refused(
        client.post_volumes(names=more, volume=VolumePost(provisioned=GIB)),
        "Volume already exists.",
    )
    missing = some + [f"{prefix}-x"]
    answer = client.patch_volumes(names=missing, volume=VolumePatch(destroyed=True))
    refused(answer, "Volume does not exist.")
    assert answer.errors[0].context == f"{prefix}-x"
    assert names(client.get_volumes(filter=f"name='{prefix}*'", destroyed=False)) == some
    good(client.patch_volumes(names=some, volume=VolumePatch(destroyed=True)))
    assert names(client.get_volumes(filter=f"name='{prefix}*' and not(destroyed)")) == []
    assert names(client.get_volumes(filter=f"name='{prefix}*' and destroyed")) == some
    good(client.delete_volumes(names=some))
    both = client.get_volumes(names=[f"{prefix}-x", f"{prefix}-y"])
    assert [error.context for error in both.errors] == [f"{prefix}-x", f"{prefix}-y"]


def test_clones_and_overwrites(client, prefix):
    source, clone = f"{prefix}-source", f"{prefix}-clone"
    good(client.post_volumes(names=[source], volume=VolumePost(provisioned=GIB)))
    from_source = VolumePost(source=Reference(name=source))
    made = one(client.post_volumes(names=[clone], volume=from_source))
    assert made.provisioned == GIB
    refused(client.post_volumes(names=[clone], volume=from_source), "Volume already exists.")
    good(client.patch_volumes(names=[source], volume=VolumePatch(provisioned=3 * GIB)))
    over = one(client.post_volumes(names=[clone], volume=from_source, overwrite=True))
    assert (over.id, over.provisioned) == (made.id, 3 * GIB)
    lost = VolumePost(source=Reference(name=f"{prefix}-none"))
    refused(client.post_volumes(names=[f"{prefix}-a"], volume=lost), "Volume does not exist.")
    lost = VolumePost(source=Reference(name=f"{source}.none"))
    refused(client.post_volumes(names=[f"{prefix}-a"], volume=lost), "No such volume or snapshot.")


def test_unsupported_fields_are_refused(client, prefix):
    size = VolumePost(provisioned=GIB)
    refused(
        client.post_volumes(names=["pod::volume"], volume=size),
        "Pod does not exist.",
    )
    refused(
        client.post_volumes(names=[f"{prefix}-a"], volume=VolumePost(provisioned=1)),
        "A volume's size is a multiple of 4096 bytes; not 1: try 4096.",
    )
    good(client.post_volumes(names=[f"{prefix}-a"], volume=size))
    pod = VolumePatch(pod=Reference(name="pod"))
    refused(
        client.patch_volumes(names=[f"{prefix}-a"], volume=pod),
        "Pod does not exist.",
    )
    assert names(client.get_volumes(names=[f"{prefix}-a"])) == [f"{prefix}-a"]


def test_pages_order_and_totals(client, prefix):
    some = [f"{prefix}-{n:02}" for n in range(25)]
    for at, name in enumerate(some):
        size = (1 + at % 3) * GIB
        good(client.post_volumes(names=[name], volume=VolumePost(provisioned=size)))
    own = f"name='{prefix}-*'"
    page = client.get_volumes(filter=own, limit=10)
    assert [item.name for item in page.items] == some[:10]
    assert page.more_items_remaining and page.continuation_token
    token = page.continuation_token
    page = client.get_volumes(filter=own, limit=10, continuation_token=token)
    assert [item.name for item in page.items] == some[10:20]
    assert [item.name for item in client.get_volumes(filter=own).items] == some
    by_size = names(client.get_volumes(filter=own, sort=["provisioned-", "name-"], limit=3))
    assert by_size == [f"{prefix}-23", f"{prefix}-20", f"{prefix}-17"]
    counted = client.get_volumes(filter=own, limit=1, total_item_count=True)
    assert counted.total_item_count == 25
    assert client.get_volumes(filter=own, limit=0).total_item_count == 25
    assert names(client.get_volumes(filter=own, offset=23)) == some[23:]
    total = client.get_volumes(filter=own, total_only=True)
    assert total.total[0].provisioned == sum((1 + at % 3) * GIB for at in range(25))
    space = client.get_volumes_space(names=some[:2])
    assert [item.space.total_provisioned for item in space.items] == [GIB, 2 * GIB]


def test_filters_as_the_sdk_writes_them(client, prefix):
    for name, size in (("a", 1), ("b", 2), ("it", 3)):
        volume = VolumePost(provisioned=size * GIB)
        good(client.post_volumes(names=[f"{prefix}-{name}"], volume=volume))
    own = flasharray.Filter.contains("name", prefix + "-")
    big = flasharray.Filter.ge("provisioned", 2 * GIB)
    found = client.get_volumes(filter=flasharray.Filter.and_(own, big))
    assert names(found) == [f"{prefix}-b", f"{prefix}-it"]
    some = flasharray.Filter.in_("name", [f"{prefix}-a", f"{prefix}-it"])
    assert names(client.get_volumes(filter=some)) == [f"{prefix}-a", f"{prefix}-it"]
    neither = flasharray.Filter.and_(own, flasharray.Filter.not_(some))
    assert names(client.get_volumes(filter=neither)) == [f"{prefix}-b"]
    refused(
        client.get_volumes(filter="name=="),
        "Invalid filter, at character 6: a value is expected here: 'TEXT', a number, true, false.",
    )


def test_a_kill_loses_nothing(management, client, prefix):
    good(client.post_volumes(names=[prefix], volume=VolumePost(provisioned=GIB)))
    before = one(client.get_volumes(names=[prefix]))
    management.restart()
    again = flasharray.Client(management.address, api_token=management.token, verify_ssl=False)
    after = one(again.get_volumes(names=[prefix]))
    assert (after.id, after.serial, after.created) == (before.id, before.serial, before.created)
