"""Cinder's driver: volumes, snapshots and groups, and their effect on hosts."""

import pytest
from cinder import exception, objects
from cinder.volume.drivers import pure
from initiator import Disk

GIB = 1 << 30
MIB = 1 << 20


@pytest.fixture
def driver(cinder):
    """The driver, without CHAP."""
    return cinder.driver(use_chap_auth=False)


def disk(answer, connector):
    """Returns the disk that os-brick would attach for an answer, on its first path."""
    data = answer["data"]
    assert answer["driver_volume_type"] == "iscsi"
    count = len(data["target_portals"])
    assert count == len(data["target_luns"]) == len(data["target_iqns"]) > 0
    chap = None
    if "auth_method" in data:
        assert data["auth_method"] == "CHAP"
        chap = (data["auth_username"], data["auth_password"])
    return Disk(
        portal=data["target_portals"][0],
        target=data["target_iqns"][0],
        lun=data["target_luns"][0],
        initiator=connector["initiator"],
        chap=chap,
    )


def on_array(management, volume):
    """Returns the volume as the array's own interface shows it."""
    return management.rest("volumes", names=volume.provider_id)[0]


def test_a_volume_is_made_connected_grown_and_deleted(cinder, driver, connector, management):
    volume = cinder.create(driver, size=1)
    assert volume.provider_id == f"volume-{volume.id}-cinder"
    assert volume.metadata["array_volume_name"] == volume.provider_id
    made = on_array(management, volume)
    assert made["provisioned"] == GIB
    tags = management.rest("volumes/tags", resource_names=volume.provider_id)
    assert {tag["key"]: tag["value"] for tag in tags}["VolType"] == "Data"

    answer = driver.initialize_connection(volume, connector)
    assert answer["data"]["wwn"] == "3624a9370" + made["serial"].lower()
    seen = disk(answer, connector)
    assert (seen.serial(), seen.size_bytes()) == (made["serial"], GIB)
    again = driver.initialize_connection(volume, connector)
    assert again["data"]["target_luns"] == answer["data"]["target_luns"]
    seen.write(0, MIB, 0xA5)
    driver.extend_volume(volume, 3)
    assert seen.size_bytes() == 3 * GIB
    assert seen.holds(0, MIB, 0xA5) and seen.holds(3 * GIB - MIB, MIB, 0)

    driver.terminate_connection(volume, connector)
    assert not seen.is_reached()
    # The driver created the host, and deletes it with its last connection.
    assert management.rest("hosts", filter=f"iqns='{connector['initiator']}'") == []
    driver.delete_volume(volume)
    assert on_array(management, volume)["destroyed"]
    # Deleting a missing volume succeeds: Cinder may repeat the request.
    management.verb("volume", "eradicate", volume.provider_id)
    driver.delete_volume(volume)


def test_a_host_has_a_lun_for_each_volume(cinder, driver, connector):
    volumes = [cinder.create(driver) for _ in range(3)]
    disks = [disk(driver.initialize_connection(each, connector), connector) for each in volumes]
    assert len({each.lun for each in disks}) == 3 and all(each.lun > 0 for each in disks)
    for number, each in enumerate(disks, 1):
        each.write(0, MIB, number)
    assert all(each.holds(0, MIB, number) for number, each in enumerate(disks, 1))
    driver.terminate_connection(volumes[1], connector)
    assert [each.is_reached() for each in disks] == [True, False, True]
    # A forced detach, from all hosts.
    driver.delete_volume(volumes[0])
    assert [each.is_reached() for each in disks] == [False, False, True]


def test_hosts_log_in_with_secrets(cinder, connector):
    driver = cinder.driver(use_chap_auth=True)
    volumes = [cinder.create(driver) for _ in range(2)]
    seen = [disk(driver.initialize_connection(each, connector), connector) for each in volumes]
    assert seen[0].chap == seen[1].chap and seen[0].chap[0] == connector["host"]
    assert len(seen[0].chap[1]) >= 12
    assert seen[0].is_reached() and seen[1].is_reached()
    user, secret = seen[0].chap
    seen[0].chap = (user, secret[::-1] + "x")
    assert not seen[0].is_reached()
    seen[0].chap = None
    assert not seen[0].is_reached()
    for volume in volumes:
        driver.terminate_connection(volume, connector)


def test_snapshots_hold_what_was_written(cinder, driver, connector, management):
    volume = cinder.create(driver, size=1)
    seen = disk(driver.initialize_connection(volume, connector), connector)
    seen.write(0, MIB, 1)
    snapshot = cinder.snapshot(volume)
    update = driver.create_snapshot(snapshot)
    name = update["metadata"]["array_snapshot_name"]
    assert name == f"{volume.provider_id}.{snapshot.name}"
    seen.write(0, MIB, 2)

    of_snapshot = cinder.volume(size=2)
    made = driver.create_volume_from_snapshot(of_snapshot, snapshot)
    of_snapshot = cinder.made(of_snapshot, made)
    of_volume = cinder.volume(size=2)
    of_volume = cinder.made(of_volume, driver.create_cloned_volume(of_volume, volume))
    for copy, pattern in ((of_snapshot, 1), (of_volume, 2)):
        there = disk(driver.initialize_connection(copy, connector), connector)
        assert there.holds(0, MIB, pattern) and there.holds(MIB, MIB, 0)
        assert there.size_bytes() == 2 * GIB
    # Independent of its source.
    there.write(0, MIB, 3)
    assert seen.holds(0, MIB, 2)

    driver.terminate_connection(volume, connector)
    driver.revert_to_snapshot(cinder.context, volume, snapshot)
    seen = disk(driver.initialize_connection(volume, connector), connector)
    assert seen.holds(0, MIB, 1)
    driver.delete_snapshot(snapshot)
    (left,) = management.rest("volume-snapshots", names=name)
    assert left["destroyed"]
    driver.delete_snapshot(snapshot)


def test_group_snapshots_are_consistent(cinder, driver, connector, management):
    kind = cinder.group_type()
    group = cinder.create_group(driver, kind)
    volumes = [cinder.create(driver, group_id=group.id) for _ in range(2)]
    name = f"consisgroup-{group.id}-cinder"
    members = management.rest("protection-groups/volumes", group_names=name)
    assert {row["member"]["name"] for row in members} == {v.provider_id for v in volumes}
    disks = [disk(driver.initialize_connection(each, connector), connector) for each in volumes]
    for number, each in enumerate(disks, 1):
        each.write(0, MIB, number)

    taken, parts = cinder.group_snapshot(group, volumes)
    driver.create_group_snapshot(cinder.context, taken, parts)
    for each in disks:
        each.write(0, MIB, 9)
    new = cinder.group(kind)
    copies = [cinder.volume(group_id=new.id) for _ in volumes]
    _, updates = driver.create_group_from_src(
        cinder.context, new, copies, group_snapshot=taken, snapshots=parts
    )
    copies = [cinder.made(*each) for each in zip(copies, updates)]
    for number, copy in enumerate(copies, 1):
        there = disk(driver.initialize_connection(copy, connector), connector)
        assert there.holds(0, MIB, number)
    # A copy of the current data of the group.
    newer = cinder.group(kind)
    clones = [cinder.volume(group_id=newer.id) for _ in volumes]
    driver.create_group_from_src(
        cinder.context, newer, clones, source_group=group, source_vols=volumes
    )
    for clone in clones:
        clone.provider_id = driver._generate_purity_vol_name(clone)
        there = disk(driver.initialize_connection(clone, connector), connector)
        assert there.holds(0, MIB, 9)

    driver.update_group(cinder.context, group, add_volumes=[], remove_volumes=volumes[:1])
    members = management.rest("protection-groups/volumes", group_names=name)
    assert [row["member"]["name"] for row in members] == [volumes[1].provider_id]
    driver.delete_group_snapshot(cinder.context, taken, parts)
    own = "not(name='*-tmp')"
    (left,) = management.rest("protection-group-snapshots", source_names=name, filter=own)
    assert left["destroyed"]
    driver.delete_group(cinder.context, group, volumes)
    assert management.rest("protection-groups", names=name)[0]["destroyed"]
    assert all(on_array(management, volume)["destroyed"] for volume in volumes)


def test_volumes_come_under_management_and_leave_it(cinder, driver, management):
    management.verb("volume", "create", "found", "--size", "2G")
    management.verb("snapshot", "create", "found", "--suffix", "old")
    volume = cinder.volume(size=2)
    reference = {"source-name": "found"}
    assert driver.manage_existing_get_size(volume, reference) == 2
    names = {
        row["reference"]["name"]: row["safe_to_manage"]
        for row in driver.get_manageable_volumes([], None, 1000, 0, ["size"], ["asc"])
    }
    assert names["found"]
    volume = cinder.made(volume, driver.manage_existing(volume, reference))
    assert on_array(management, volume)["provisioned"] == 2 * GIB
    assert management.refused("volumes", names="found")

    snapshot = cinder.snapshot(volume)
    reference = {"source-name": f"{volume.provider_id}.old"}
    assert driver.manage_existing_snapshot_get_size(snapshot, reference) == 2
    snapshots = driver.get_manageable_snapshots([], None, 1000, 0, ["size"], ["asc"])
    assert reference["source-name"] in {row["reference"]["name"] for row in snapshots}
    driver.manage_existing_snapshot(snapshot, reference)
    name = f"{volume.provider_id}.{snapshot.name}"
    assert management.rest("volume-snapshots", names=name)
    driver.unmanage_snapshot(snapshot)
    # The driver truncates names of snapshots to 96 characters.
    assert management.rest("volume-snapshots", names=f"{name[:-10]}-unmanaged")
    driver.unmanage(volume)
    assert management.rest("volumes", filter=f"name='{volume.provider_id[:40]}*-unmanaged'")
    with pytest.raises(exception.ManageExistingInvalidReference):
        driver.manage_existing_get_size(volume, {"source-name": "never-there"})


def test_types_limit_volumes(cinder, driver, management):
    slow = cinder.type(qos={"maxIOPS": "500", "maxBWS": "10"})
    volume = cinder.create(driver, volume_type=slow)
    qos = on_array(management, volume)["qos"]
    assert (qos["iops_limit"], qos["bandwidth_limit"]) == (500, 10 * MIB)
    slower = cinder.type(qos={"maxIOPS_per_GB": "150"})
    done, _ = driver.retype(cinder.context, volume, {"id": slower.id}, None, None)
    assert done
    assert on_array(management, volume)["qos"]["iops_limit"] == 150
    done, _ = driver.retype(cinder.context, volume, {"id": cinder.plain.id}, None, None)
    # The maximum means no limit.
    assert done and on_array(management, volume)["qos"].get("iops_limit") in (None, 100_000_000)
    bad = cinder.type(qos={"maxIOPS": "1"})
    with pytest.raises(exception.InvalidQoSSpecs):
        cinder.create(driver, volume_type=bad)
    specs = {"flasharray:vg_name": "cinder-limited", "flasharray:vg_maxIOPS": "1000"}
    volume = cinder.create(driver, volume_type=cinder.type(**specs))
    assert on_array(management, volume)["volume_group"] == {"name": "cinder-limited"}
    (group,) = management.rest("volume-groups", names="cinder-limited")
    assert group["qos"]["iops_limit"] == 1000


def test_a_type_may_have_a_volume_group(cinder, driver, management):
    grouped = cinder.type(**{"flasharray:vg_name": "cinder-group"})
    first, second = (cinder.create(driver, volume_type=grouped) for _ in range(2))
    assert first.provider_id == f"cinder-group/volume-{first.id}-cinder"
    assert on_array(management, first)["volume_group"] == {"name": "cinder-group"}
    members = management.rest("volume-groups/volumes", group_names="cinder-group")
    assert len(members) == 2
    driver.delete_volume(first)
    (group,) = management.rest("volume-groups", names="cinder-group")
    assert (group["volume_count"], group["destroyed"]) == (1, False)
    # The driver destroys the group with its last volume, and creates it again for the next one.
    driver.delete_volume(second)
    (group,) = management.rest("volume-groups", names="cinder-group")
    assert group["destroyed"]
    third = cinder.create(driver, volume_type=grouped)
    assert on_array(management, third)["destroyed"] is False
    driver.delete_volume(third)


def test_the_scheduler_gets_capacity_and_capabilities(cinder, driver, management):
    cinder.create(driver)
    driver.init_capabilities()
    stats = driver.get_volume_stats(refresh=True)
    (space,) = management.rest("arrays/space")
    assert stats["total_capacity_gb"] == space["capacity"] / GIB
    assert 0 < stats["free_capacity_gb"] <= stats["total_capacity_gb"]
    assert stats["storage_protocol"] == "iSCSI" and stats["QoS_support"]
    assert stats["total_volumes"] == len(management.rest("volumes"))
    assert stats["total_hosts"] == len(management.rest("hosts"))
    assert stats["replication_capability"] is None
    assert stats["reads_per_sec"] >= 0 and stats["usec_per_write_op"] >= 0


#: The prefix of all of the driver's errors.
FAILURE = "Pure Storage Cinder driver failure"


def test_errors_give_the_reason(cinder, driver):
    volume = cinder.create(driver)
    with pytest.raises(pure.PureDriverException) as raised:
        driver.create_volume(volume)
    what = f"Unable to create volume {volume.name}-cinder"
    assert str(raised.value) == f"{FAILURE}: {what}: Volume already exists."
    lost, copy = cinder.snapshot(volume), cinder.volume()
    with pytest.raises(pure.PureDriverException) as raised:
        driver.create_volume_from_snapshot(copy, lost)
    what = f"Unable to create volume {copy.name}-cinder"
    assert str(raised.value) == f"{FAILURE}: {what}: No such volume or snapshot."
    assert objects.Volume.get_by_id(cinder.context, volume.id).provider_id
