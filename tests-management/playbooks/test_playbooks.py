"""The Ansible collection: the examples of `contrib/ansible`."""

from pathlib import Path

from initiator import Disk

EXAMPLES = Path(__file__).parents[2] / "contrib" / "ansible"
GIB = 1 << 30
MIB = 1 << 20


def test_the_examples_provision_copy_and_remove_a_cluster(management, play):
    volumes = [f"demo-{name}" for name in ("datastore-1", "datastore-2", "scratch")]
    first = play(EXAMPLES / "provision.yml")
    assert first["changed"] == 6
    before = everything(management)
    assert [row["name"] for row in before["volumes"]] == volumes
    assert before["volumes"][2]["qos"] == {"bandwidth_limit": 100 * MIB, "iops_limit": 5000}
    assert {row["personality"] for row in before["hosts"]} == {"esxi"}
    (group,) = before["protection-groups"]
    schedule = group["snapshot_schedule"]
    assert schedule["enabled"] and schedule["frequency"] == 3_600_000
    assert group["source_retention"] == {"all_for_sec": 86400, "per_day": 4, "days": 7}
    luns = {
        (row["host"]["name"], row["volume"]["name"]): row["lun"]
        for row in management.rest("connections", volume_names=",".join(volumes))
    }
    assert luns[("demo-esx1", "demo-datastore-1")] == luns[("demo-esx2", "demo-datastore-1")]
    assert luns[("demo-esx1", "demo-scratch")] == 7
    assert len(luns) == 5

    assert play(EXAMPLES / "provision.yml", "--check")["changed"] == 0
    assert play(EXAMPLES / "provision.yml")["changed"] == 0
    assert everything(management) == before

    seen = on_host(management, "demo-esx1", "demo-datastore-1", "iqn.1998-01.com.vmware:esx1")
    assert seen.size_bytes() == 64 * GIB
    seen.write(0, MIB, 0x11)
    assert play(EXAMPLES / "copies.yml")["changed"] >= 5
    for copy in ("copy", "restored"):
        name = f"demo-datastore-1-{copy}"
        management.verb("connect", name, "demo-esx2")
        assert on_host(management, "demo-esx2", name, "iqn.1998-01.com.vmware:esx2").holds(
            0, MIB, 0x11
        )
        management.verb("disconnect", name, "demo-esx2")

    management.verb("disconnect", "demo-scratch", "demo-esx1")
    assert play(EXAMPLES / "remove.yml", eradicate="true")["changed"] > 0
    assert all(rows == [] for rows in everything(management).values())
    assert play(EXAMPLES / "remove.yml", eradicate="true")["changed"] == 0


def everything(management):
    """Returns the objects of the cluster, without their space, which changes by itself."""
    kept = {}
    for path in ("volumes", "hosts", "host-groups", "protection-groups"):
        rows = management.rest(path, filter="name='demo*'")
        kept[path] = [{k: v for k, v in row.items() if k != "space"} for row in rows]
    return kept


def on_host(management, host, volume, initiator):
    """Returns the volume as a disk of the host."""
    (row,) = management.rest("connections", host_names=host, volume_names=volume)
    (port,) = management.rest("ports")
    return Disk(port["portal"], port["iqn"], row["lun"], initiator)
