"""Performance: the last second, and samples between two times."""

import time

from answers import good, one, refused
from pypureclient import flasharray


def test_the_last_second(client, prefix):
    name = f"{prefix}-perf"
    good(client.post_volumes(names=[name], volume=flasharray.VolumePost(provisioned=1 << 30)))
    array = one(client.get_arrays_performance())
    assert array.reads_per_sec >= 0 and array.time > 1_700_000_000_000
    volume = one(client.get_volumes_performance(names=[name]))
    assert (volume.name, volume.writes_per_sec) == (name, 0)
    refused(client.get_volumes_performance(names=["nowhere"]), "Volume does not exist.")
    total = client.get_volumes_performance(total_only=True)
    assert total.status_code == 200 and len(list(total.total)) == 1


def test_by_array_and_of_groups(client, prefix):
    host, group, volume = f"{prefix}-h", f"{prefix}-hg", f"{prefix}-v"
    pod, volume_group = f"{prefix}-p", f"{prefix}-vg"
    good(client.post_volumes(names=[volume], volume=flasharray.VolumePost(provisioned=1 << 30)))
    good(client.post_hosts(names=[host], host=flasharray.HostPost()))
    good(client.post_host_groups(names=[group]))
    good(client.post_host_groups_hosts(group_names=[group], member_names=[host]))
    good(client.post_pods(names=[pod], pod=flasharray.PodPost()))
    good(client.post_volume_groups(names=[volume_group], volume_group=flasharray.VolumeGroupPost()))
    array = one(client.get_arrays())
    for found, name in (
        (client.get_pods_performance_by_array(names=[pod]), pod),
        (client.get_volumes_performance_by_array(names=[volume]), volume),
        (client.get_hosts_performance_by_array(names=[host]), host),
        (client.get_host_groups_performance_by_array(names=[group]), group),
    ):
        found = one(found)
        assert (found.name, found.reads_per_sec) == (name, 0)
        assert (found.array.id, found.array.name) == (array.id, array.name)
    assert one(client.get_host_groups_performance(names=[group])).writes_per_sec == 0
    assert one(client.get_volume_groups_performance(names=[volume_group])).reads_per_sec == 0
    assert one(client.get_pods_performance(names=[pod])).name == pod
    assert one(client.get_pods_space(names=[pod])).name == pod
    for interface in good(client.get_network_interfaces_performance()):
        assert interface.eth.received_bytes_per_sec == 0
    for ask in (
        client.get_pods_performance_replication_by_array,
        client.get_protection_groups_performance_replication_by_array,
        client.get_realms_space,
        client.get_directories_space,
        client.get_resource_accesses_status,
    ):
        assert good(ask()) == [], ask
    access = flasharray.ResourceAccess()
    refused(
        client.post_resource_accesses_batch(items=[access]),
        "Access of other arrays: not supported by this array.",
    )


def test_samples(client, eventually):
    now = int(time.time() * 1000)

    def seconds():
        hour = {"start_time": now - 3_600_000, "end_time": now + 3_600_000}
        return good(client.get_arrays_performance(resolution=1000, **hour))

    # The array takes a sample each second.
    found = eventually(lambda: len(seconds()) > 1 and seconds())
    assert found[0].time < found[1].time
    day = client.get_arrays_performance(
        start_time=now - 86_400_000, end_time=now, resolution=30_000, total_item_count=True
    )
    assert day.status_code == 200 and day.total_item_count == len(list(day.items))
    refused(
        client.get_hosts_performance(start_time=now - 1000, resolution=1000),
        "The resolution is a whole number of times 30000, 300000 or 3600000 ms, up to 30 days.",
    )
