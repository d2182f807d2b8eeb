"""The space of hosts and groups, which have several volumes."""

import os

from answers import good, one, refused
from initiator import Disk
from pypureclient.flasharray import HostPost, Reference, VolumePost

GIB = 1 << 30
MIB = 1 << 20


def test_the_space_of_hosts_and_groups(management, client, prefix, tmp_path):
    host, group, protection = f"{prefix}-h", f"{prefix}-hg", f"{prefix}-pg"
    volumes, initiator = [f"{prefix}-a", f"{prefix}-b"], f"iqn.2026-11.com.example:{prefix}"
    good(client.post_volumes(names=volumes, volume=VolumePost(provisioned=GIB)))
    good(client.post_hosts(names=[host], host=HostPost(iqns=[initiator])))
    good(client.post_host_groups(names=[group]))
    good(client.post_host_groups_hosts(group_names=[group], member_names=[host]))
    good(client.post_connections(host_names=[host], volume_names=volumes[:1]))
    good(client.post_connections(host_group_names=[group], volume_names=volumes[1:]))
    good(client.post_protection_groups(names=[protection]))
    good(client.post_protection_groups_hosts(group_names=[protection], member_names=[host]))
    (port,) = management.rest("ports")
    for connection in good(client.get_connections(host_names=[host])):
        # Random data, which can't be compressed or deduplicated.
        (tmp_path / "random").write_bytes(os.urandom(MIB))
        disk = Disk(port["portal"], port["iqn"], connection.lun, initiator)
        disk.write_file(0, MIB, tmp_path / "random")

    def spaces():
        management.verb("pool", "space", "--refresh")
        return [
            one(client.get_hosts_space(names=[host])),
            one(client.get_host_groups_space(names=[group])),
            one(client.get_protection_groups_space(names=[protection])),
        ]

    at_host, at_group, protected = spaces()
    assert (at_host.name, at_group.name, protected.name) == (host, group, protection)
    assert at_host.space.total_provisioned == protected.space.total_provisioned == 2 * GIB
    assert at_group.space.total_provisioned == GIB
    assert at_host.space.virtual == 2 * MIB and at_host.time > 1_700_000_000_000
    assert at_host.space.unique == protected.space.unique >= 2 * MIB
    alone = good(client.get_volumes_space(names=volumes))
    assert at_host.space.unique == sum(volume.space.unique for volume in alone)
    assert at_group.space.unique == alone[1].space.unique
    refused(client.get_hosts_space(names=[f"{prefix}-none"]), "Host does not exist.")
    refused(client.get_host_groups_space(names=[host]), "Host group does not exist.")

    # Data that two volumes share is not unique to either.
    copy = VolumePost(source=Reference(name=volumes[0]))
    good(client.post_volumes(names=[f"{prefix}-c"], volume=copy))
    good(client.post_connections(host_names=[host], volume_names=[f"{prefix}-c"]))
    with_clone, without, protected = spaces()
    assert getattr(with_clone.space, "unique", None) is None
    assert getattr(protected.space, "unique", None) is None
    assert with_clone.space.total_provisioned == 3 * GIB
    assert with_clone.space.data_reduction > at_host.space.data_reduction
    assert without.space.unique == alone[1].space.unique
