"""Hosts and connections."""

from answers import good, names, one, refused
from initiator import Disk
from pypureclient.flasharray import Chap, ConnectionPost, HostPatch, HostPost, VolumePost


def iqn(prefix, number):
    return f"iqn.2026-11.com.example:{prefix}-{number}"


def test_a_host_lives_and_dies(client, prefix):
    host, iqns = f"{prefix}-h", [iqn(prefix, 1), iqn(prefix, 2)]
    made = one(client.post_hosts(names=[host], host=HostPost(iqns=iqns)))
    assert (made.name, made.iqns, made.is_local, made.connection_count) == (host, iqns, True, 0)
    refused(client.post_hosts(names=[host], host=HostPost()), "Host already exists.")
    other = client.post_hosts(names=[f"{prefix}-o"], host=HostPost(iqns=iqns[:1]))
    refused(
        other,
        f"The initiator iqn.2026-11.com.example:{prefix}-1 is already in use by host "
        f"{prefix}-h. Remove it there first.",
    )
    found = client.get_hosts(filter=f"iqns='{iqns[1].upper()}' and is_local")
    assert names(found) == [host]
    change = HostPatch(add_iqns=[iqn(prefix, 3)], remove_iqns=[iqns[0]])
    changed = one(client.patch_hosts(names=[host], host=change))
    assert changed.iqns == [iqns[1], iqn(prefix, 3)]
    refused(
        client.patch_hosts(names=[host], host=change),
        f"The initiator iqn.2026-11.com.example:{prefix}-1 does not exist in {prefix}-h.",
    )
    good(client.patch_hosts(names=[host], host=HostPatch(iqns=iqns)))
    renamed = one(client.patch_hosts(names=[host], host=HostPatch(name=f"{prefix}-n")))
    assert renamed.name == f"{prefix}-n"
    refused(client.get_hosts(names=[host]), "Host does not exist.")
    good(client.delete_hosts(names=[f"{prefix}-n"]))
    refused(client.delete_hosts(names=[f"{prefix}-n"]), "Host does not exist.")


def test_initiators_are_seen_at_ports(management, client, prefix):
    initiator, volume = iqn(prefix, 1), f"{prefix}-v"
    good(client.post_volumes(names=[volume], volume=VolumePost(provisioned=1 << 30)))
    good(client.post_hosts(names=[prefix], host=HostPost(iqns=[initiator])))
    made = client.post_connections(host_names=[prefix], volume_names=[volume])
    asked = {"filter": f"initiator.iqn='{initiator}'"}
    assert good(client.get_ports_initiators(**asked)) == []
    port = one(client.get_ports())
    assert Disk(port.portal, port.iqn, one(made).lun, initiator).is_reached()
    # The initiator has logged out, but is still listed.
    seen = one(client.get_ports_initiators(**asked))
    assert (seen.initiator.iqn, seen.target.name) == (initiator, port.name)
    assert (seen.target.iqn, seen.target.portal) == (port.iqn, port.portal)
    assert seen.initiator.portal.startswith("127.0.0.1:")
    assert one(client.get_ports_initiators(names=[port.name], **asked)).target.name == port.name
    refused(client.get_ports_initiators(names=["CT9"]), "CT9 does not exist.")


def test_secrets_are_not_shown(client, prefix):
    chap = Chap(host_user="u", host_password="correct horse battery")
    made = one(client.post_hosts(names=[prefix], host=HostPost(chap=chap)))
    assert (made.chap.host_user, made.chap.host_password) == ("u", "****")
    shown = one(client.get_hosts(names=[prefix]))
    assert "horse" not in str(shown)
    none = HostPatch(chap=Chap(host_user="", host_password=""))
    changed = one(client.patch_hosts(names=[prefix], host=none))
    assert getattr(changed.chap, "host_user", None) is None
    short = HostPost(chap=Chap(host_user="u", host_password="short"))
    text = refused(
        client.post_hosts(names=[f"{prefix}-b"], host=short),
        "A CHAP secret must have 12 to 255 characters.",
    )
    assert "short" not in text


def test_connections(client, prefix):
    hosts, volumes = [f"{prefix}-h", f"{prefix}-i"], [f"{prefix}-a", f"{prefix}-b"]
    good(client.post_hosts(names=hosts, host=HostPost()))
    good(client.post_volumes(names=volumes, volume=VolumePost(provisioned=1 << 30)))
    made = client.post_connections(
        host_names=hosts[:1], volume_names=volumes[:1], connection=ConnectionPost(lun=7)
    )
    made = one(made)
    assert (made.lun, made.volume.name) == (7, volumes[0])
    again = client.post_connections(host_names=hosts[:1], volume_names=volumes[:1])
    refused(again, "Connection already exists.")
    taken = client.post_connections(
        host_names=hosts[:1], volume_names=volumes[1:], connection=ConnectionPost(lun=7)
    )
    refused(
        taken,
        f"LUN 7 of host {prefix}-h is already in use by volume {prefix}-a. Choose another.",
    )
    good(client.delete_connections(host_names=hosts[:1], volume_names=volumes[:1]))
    good(client.post_connections(host_names=hosts, volume_names=volumes))
    pairs = [
        (connection.host.name, connection.volume.name, connection.lun)
        for connection in good(client.get_connections(filter=f"volume.name='{prefix}*'"))
    ]
    # A volume that returns to a host gets its LUN again; no other one does for hours.
    assert pairs == [
        (hosts[0], volumes[1], 1),
        (hosts[0], volumes[0], 7),
        (hosts[1], volumes[0], 1),
        (hosts[1], volumes[1], 2),
    ]
    assert len(good(client.get_connections(volume_names=volumes[:1]))) == 2
    assert len(good(client.get_connections(host_names=hosts[:1], volume_names=volumes[:1]))) == 1
    assert one(client.get_volumes(names=volumes[:1])).connection_count == 2
    ids = [volume.id for volume in good(client.get_volumes(names=volumes))]
    assert len(good(client.get_connections(volume_ids=ids))) == 4
    refused(client.get_connections(host_names=[f"{prefix}-x"]), "Host does not exist.")
    refused(
        client.delete_hosts(names=hosts),
        f"Host {prefix}-h cannot be deleted due to existing connections (2). Disconnect it.",
    )
    unknown = client.delete_connections(host_names=hosts, volume_names=[f"{prefix}-x"])
    refused(unknown, "Volume does not exist.")
    good(client.delete_connections(host_names=hosts, volume_names=volumes))
    gone = client.delete_connections(host_names=hosts[:1], volume_names=volumes[:1])
    refused(gone, "Connection does not exist.")
    good(client.delete_hosts(names=hosts))
