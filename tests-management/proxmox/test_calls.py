"""The requests of the Proxmox storage plugins, made without the plugins, which are in Perl.

A plugin logs in, uses sessions and version 2.26 only, and gives suffixes of snapshots in the
query. It creates a volume for each disk of a machine, and connects it to the hosts of a cluster.
"""

import json
import ssl
import urllib.error
import urllib.parse
import urllib.request

import pytest
from initiator import Disk

GIB = 1 << 30
MIB = 1 << 20
VERSION = "2.26"
#: A plugin compares the whole message. The commands in it are those of the original array.
SNAPSHOT_DESTROYED = (
    "Volume snapshot has been destroyed. It can be recovered by purevol recover and eradicated by "
    "purevol eradicate."
)


class Plugin:
    """Calls with a session."""

    def __init__(self, management):
        self.base = f"https://{management.address}/api"
        self.trust = ssl.create_default_context(cafile=management.certificate)
        self.token = management.token
        self.session = None

    def log_in(self):
        """Begins a session."""
        headers = self._send("POST", f"{VERSION}/login", {"api-token": self.token})[1]
        self.session = headers["x-auth-token"]

    def call(self, method, path, body=None, **query):
        """Sends a request, and returns the items of the answer."""
        headers = {"x-auth-token": self.session}
        path = f"{VERSION}/{path}?{urllib.parse.urlencode(query)}"
        return self._send(method, path, headers, body)[0]["items"]

    def refused(self, method, path, body=None, **query):
        """Sends a request that must be refused, and returns the status and the message."""
        try:
            self.call(method, path, body, **query)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)["errors"][0]["message"]
        raise AssertionError(f"{method} {path} was not refused")

    def _send(self, method, path, headers, body=None):
        data = None if body is None else json.dumps(body).encode()
        headers = headers | {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.base}/{path}", data, headers, method=method)
        with urllib.request.urlopen(request, context=self.trust, timeout=120) as answer:
            return json.load(answer), answer.headers


@pytest.fixture
def plugin(management):
    """A plugin that has logged in."""
    made = Plugin(management)
    made.log_in()
    return made


def test_disks_of_a_machine(plugin):
    (array,) = plugin.call("GET", "arrays/space")
    assert array["capacity"] > array["space"]["total_physical"] >= 0
    nodes = ["pve1", "pve2"]
    for node in nodes:
        iqns = {"iqns": [f"iqn.1993-08.org.debian:01:{node}"]}
        plugin.call("POST", "hosts", iqns, names=node)
    disk = "vm-100-disk-0"
    (made,) = plugin.call("POST", "volumes", {"provisioned": 4 * GIB}, names=disk)
    status, why = plugin.refused("POST", "volumes", {"provisioned": GIB}, names=disk)
    assert (status, why) == (400, "Volume already exists.")
    luns = {
        row["host"]["name"]: row["lun"]
        for node in nodes
        for row in plugin.call("POST", "connections", host_names=node, volume_names=disk)
    }
    assert set(luns) == set(nodes)
    status, why = plugin.refused("POST", "connections", host_names="pve1", volume_names=disk)
    assert (status, why) == (400, "Connection already exists.")
    (port,) = plugin.call("GET", "ports")
    seen = {
        node: Disk(port["portal"], port["iqn"], lun, f"iqn.1993-08.org.debian:01:{node}")
        for node, lun in luns.items()
    }
    seen["pve1"].write(0, MIB, 0x21)
    assert seen["pve2"].holds(0, MIB, 0x21)
    assert {each.serial() for each in seen.values()} == {made["serial"]}

    # Growth while connected, and a list of all disks of a storage by their prefix.
    plugin.call("PATCH", "volumes", {"provisioned": 8 * GIB}, names=disk)
    assert seen["pve2"].size_bytes() == 8 * GIB
    rows = plugin.call("GET", "volumes", filter="name='vm-*' and not(contains(name,'::'))")
    assert [(row["name"], row["provisioned"]) for row in rows] == [(disk, 8 * GIB)]

    # A snapshot, its rollback, and a linked clone of it.
    (snapshot,) = plugin.call("POST", "volume-snapshots", source_names=disk, suffix="snap-first")
    assert snapshot["name"] == f"{disk}.snap-first"
    seen["pve1"].write(0, MIB, 0x22)
    source = {"source": {"name": snapshot["name"]}}
    plugin.call("POST", "volumes", source, names=disk, overwrite="true")
    assert seen["pve2"].holds(0, MIB, 0x21)
    plugin.call("POST", "volumes", source, names="vm-101-disk-0")
    (row,) = plugin.call("POST", "connections", host_names="pve1", volume_names="vm-101-disk-0")
    there = Disk(port["portal"], port["iqn"], row["lun"], "iqn.1993-08.org.debian:01:pve1")
    assert there.holds(0, MIB, 0x21)
    plugin.call("DELETE", "connections", host_names="pve1", volume_names="vm-101-disk-0")
    plugin.call("PATCH", "volumes", {"name": "base-101-disk-0"}, names="vm-101-disk-0")

    # Removal: disconnected from all nodes, destroyed, eradicated.
    plugin.call("PATCH", "volume-snapshots", {"destroyed": True}, names=snapshot["name"])
    again = {"body": {"destroyed": True}, "names": snapshot["name"]}
    status, why = plugin.refused("PATCH", "volume-snapshots", **again)
    assert (status, why) == (400, SNAPSHOT_DESTROYED)
    # The plugin sends a body with this request, which has none by its definition.
    body = {"replication_snapshot": True}
    plugin.call("DELETE", "volume-snapshots", body, names=snapshot["name"])
    for method in ("PATCH", "DELETE"):
        body = {"destroyed": True} if method == "PATCH" else body
        status, why = plugin.refused(method, "volume-snapshots", body, names=snapshot["name"])
        assert (status, why) == (400, "No such volume or snapshot.")
    for node in nodes:
        plugin.call("DELETE", "connections", host_names=node, volume_names=disk)
        status, why = plugin.refused("DELETE", "connections", host_names=node, volume_names=disk)
        assert (status, why) == (400, "Connection does not exist.")
    for name in (disk, "base-101-disk-0"):
        plugin.call("PATCH", "volumes", {"destroyed": True}, names=name)
        status, why = plugin.refused("PATCH", "volumes", {"destroyed": True}, names=name)
        assert (status, why) == (400, "Volume has been deleted.")
        for node in nodes:
            pair = {"host_names": node, "volume_names": name}
            status, why = plugin.refused("DELETE", "connections", **pair)
            assert (status, why) == (400, "Volume has been destroyed.")
        plugin.call("DELETE", "volumes", names=name)
    status, why = plugin.refused("GET", "volumes", names=disk)
    assert (status, why) == (400, "Volume does not exist.")
    plugin.call("DELETE", "hosts", names="pve1,pve2")


def test_a_request_with_an_ended_session_gets_401(plugin):
    plugin.call("GET", "arrays")
    plugin.session = "dead"
    status, why = plugin.refused("GET", "arrays")
    assert (status, why) == (
        401,
        "The session has ended, or there was none: log in with an API token, or send one as "
        "`Authorization: Bearer TOKEN`.",
    )
    plugin.log_in()
    assert plugin.call("GET", "arrays")
