"""The requests of the published exporter for FlashArrays, and the types that it decodes.

It is compiled, so a fraction in a field that it decodes as an integer fails the scrape.
"""

import pytest

#: Fields with an integer or null.
PERFORMANCE = """
bytes_per_mirrored_write bytes_per_op bytes_per_read bytes_per_write mirrored_write_bytes_per_sec
mirrored_writes_per_sec qos_rate_limit_usec_per_mirrored_write_op qos_rate_limit_usec_per_read_op
qos_rate_limit_usec_per_write_op queue_usec_per_mirrored_write_op queue_usec_per_read_op
queue_usec_per_write_op read_bytes_per_sec reads_per_sec san_usec_per_mirrored_write_op
san_usec_per_read_op san_usec_per_write_op service_usec_per_mirrored_write_op
service_usec_per_read_op service_usec_per_write_op service_usec_per_read_op_cache_reduction time
usec_per_mirrored_write_op usec_per_read_op usec_per_write_op write_bytes_per_sec writes_per_sec
""".split()
OF_THE_ARRAY = "queue_depth local_queue_usec_per_op usec_per_other_op others_per_sec".split()
SPACE = """
replication shared snapshots system total_physical total_provisioned unique virtual
""".split()


@pytest.fixture(scope="module", autouse=True)
def objects(management):
    """A volume that is connected to a host."""
    management.verb("volume", "create", "exported", "--size", "1G")
    management.verb("host", "create", "exporting", "--iqn", "iqn.2026-01.com.example:exporting")
    management.verb("connect", "exported", "exporting")


def whole(item, fields):
    """Checks that each field is present, and an integer or null."""
    for field in fields:
        assert item[field] is None or type(item[field]) is int, (field, item[field])


def named(items, name):
    """Returns the item with a name."""
    (item,) = [item for item in items if item["name"] == name]
    return item


def test_arrays(exporter):
    (array,) = exporter.items("arrays")
    assert array["id"] and array["name"] and array["version"] and array["os"]
    (subscription,) = exporter.items("subscriptions")
    assert isinstance(subscription["service"], str)
    (controller,) = exporter.items("controllers")
    assert isinstance(controller["mode_since"], int) and controller["status"] == "ready"


def test_performance(exporter):
    (array,) = exporter.items("arrays/performance")
    whole(array, PERFORMANCE + OF_THE_ARRAY)
    assert array["time"] > 1_700_000_000_000 and array["reads_per_sec"] is not None
    whole(named(exporter.items("volumes/performance"), "exported"), PERFORMANCE)
    whole(named(exporter.items("hosts/performance"), "exporting"), PERFORMANCE)


def test_space(exporter):
    (array,) = exporter.items("arrays/space")
    assert array["capacity"] > 1 << 30
    whole(array["space"], SPACE)
    # The exporter adds this to `system` without checking for null.
    assert array["space"]["replication"] == 0
    assert isinstance(array["space"]["data_reduction"], float)
    volume = named(exporter.items("volumes"), "exported")
    assert volume["provisioned"] == 1 << 30 and volume["serial"]
    whole(volume["space"], SPACE)


def test_hosts_and_connections(exporter):
    host = named(exporter.items("hosts"), "exporting")
    assert host["connection_count"] == 1 and host["is_local"] is True
    pairs = [(it["host"]["name"], it["volume"]["name"]) for it in exporter.items("connections")]
    assert ("exporting", "exported") in pairs


def test_hardware(exporter):
    assert named(exporter.items("hardware"), "CT0")["status"] == "ok"
    assert named(exporter.items("drives"), "CH0.BAY0")["status"] == "healthy"
    port, *_ = exporter.items("ports")
    assert port["iqn"] and port["portal"]
    assert named(exporter.items("hardware"), "CH0.BAY0")["type"] == "drive_bay"
    interface, *_ = exporter.items("network-interfaces")
    assert isinstance(interface["speed"], int) and isinstance(interface["enabled"], bool)


@pytest.mark.parametrize(
    "path",
    [
        "alerts?filter=state%3D%27open%27",
        "directories",
        "directories/performance",
        "pods",
        "pods/performance/replication",
        "pod-replica-links",
        "pod-replica-links/lag",
        "pod-replica-links/performance/replication",
        "volume-groups",
    ],
)
def test_lists_that_may_be_empty(exporter, path):
    assert isinstance(exporter.items(path), list)
