"""The Ansible collection: the examples of `contrib/ansible`, and modules that they leave out."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from initiator import Disk

EXAMPLES = Path(__file__).parents[2] / "contrib" / "ansible"
MORE = Path(__file__).parent
GIB = 1 << 30
MIB = 1 << 20


@pytest.fixture
def play(management, tmp_path):
    """Runs a playbook, and tells what it counted."""

    def run(playbook, *words, **variables):
        settings = [f"{key}={value}" for key, value in variables.items()]
        command = [
            Path(sys.executable).with_name("ansible-playbook"),
            *words,
            *(word for setting in settings for word in ("--extra-vars", setting)),
            playbook,
        ]
        environment = os.environ | {
            "ANSIBLE_COLLECTIONS_PATH": os.environ["HOLDFAST_COLLECTIONS"],
            "ANSIBLE_HOME": str(tmp_path),
            "ANSIBLE_REMOTE_TEMP": str(tmp_path / "remote"),
            "ANSIBLE_LOCALHOST_WARNING": "False",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "False",
            "ANSIBLE_NOCOLOR": "True",
            "PUREFA_URL": management.address,
            "PUREFA_API": management.token,
        }
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False
        )
        recap = re.search(r"localhost +: (.*)", done.stdout)
        assert recap, done.stdout + done.stderr
        counts = {key: int(n) for key, n in re.findall(r"(\w+)=(\d+)", recap.group(1))}
        assert done.returncode == 0, done.stdout + done.stderr
        assert counts["failed"] == counts["unreachable"] == 0, done.stdout
        return counts

    return run


def test_a_cluster_is_as_the_playbook_says(management, play):
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
    """What is there of the cluster, but for what changes by itself."""
    kept = {}
    for path in ("volumes", "hosts", "host-groups", "protection-groups"):
        rows = management.rest(path, filter="name='demo*'")
        kept[path] = [{k: v for k, v in row.items() if k != "space"} for row in rows]
    return kept


def on_host(management, host, volume, initiator):
    """The volume, as the host sees it."""
    (row,) = management.rest("connections", host_names=host, volume_names=volume)
    (port,) = management.rest("ports")
    return Disk(port["portal"], port["iqn"], row["lun"], initiator)


def test_modules_that_the_examples_leave_out(management, play):
    play(MORE / "modules.yml")
    assert management.rest("volumes", filter="name='more*'") == []


def test_what_there_is_not_fails_plainly(play):
    play(MORE / "refused.yml")
