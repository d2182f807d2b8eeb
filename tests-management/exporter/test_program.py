"""The published exporter itself, scraped at all of its endpoints.

It adds up fields without checking for null: a missing field ends its process.
"""

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest
from running import START_S

PROGRAM = os.environ.get("HOLDFAST_EXPORTER")
ENDPOINTS = {
    "/metrics": [
        "purefa_info",
        "purefa_array_space_bytes",
        "purefa_hw_component_status",
        "purefa_network_interface_performance_bandwidth_bytes",
        "purefa_volume_group_performance_throughput_iops",
        "purefa_volume_group_qos_iops_limit",
        "purefa_volume_space_bytes",
    ],
    "/metrics/array": ["purefa_info", "purefa_array_space_bytes", "purefa_array_space_utilization"],
    "/metrics/volumes": ["purefa_volume_space_bytes", "purefa_volume_performance_latency_usec"],
    "/metrics/hosts": [
        "purefa_info",
        "purefa_host_connections_info",
        "purefa_host_performance_throughput_iops",
        "purefa_host_space_bytes",
    ],
    "/metrics/pods": ["purefa_pod_performance_throughput_iops", "purefa_pod_space_bytes"],
    "/metrics/directories": [],
}

pytestmark = pytest.mark.skipif(not PROGRAM, reason="the exporter could not be built here")


@pytest.fixture(scope="module")
def scraped(management):
    """A running exporter, and an array with objects, and a token for it."""
    management.verb("volume", "create", "scraped", "--size", "1G")
    management.verb("volume", "limit", "scraped", "--iops", "1000")
    management.verb("snapshot", "create", "scraped", "--suffix", "s")
    management.verb("host", "create", "scraping", "--iqn", "iqn.2026-01.com.example:scraping")
    management.verb("connect", "scraped", "scraping")
    management.verb("volume-group", "create", "scraped")
    management.verb("volume-group", "limit", "scraped", "--iops", "1000")
    management.verb("volume", "create", "scraped/volume", "--size", "1G")
    management.verb("pod", "create", "scraped")
    management.verb("volume", "create", "scraped::volume", "--size", "1G")
    management.verb("pool", "space", "--refresh")
    management.verb("user", "create", "scraper", "--role", "readonly")
    token = json.loads(management.verb("token", "create", "s", "--user", "scraper"))["token"]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([PROGRAM, "-a", "127.0.0.1", "-p", str(port)])
    yield process, f"http://127.0.0.1:{port}", management.address, token
    process.kill()
    process.wait(timeout=START_S)


def scrape(base, path, array, token):
    """Scrapes an endpoint for an array, and returns the status and the text."""
    request = urllib.request.Request(f"{base}{path}?endpoint={array}")
    request.add_header("Authorization", f"Bearer {token}")
    end = time.monotonic() + START_S
    while True:
        try:
            with urllib.request.urlopen(request, timeout=START_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError:
            raise
        except urllib.error.URLError as error:
            # The exporter does not listen yet.
            assert isinstance(error.reason, ConnectionRefusedError), error
            assert time.monotonic() < end, error
            time.sleep(0.05)


def test_all_parts_of_the_space_are_known_together(management):
    while True:
        (array,) = management.rest("arrays/space")
        space = array["space"]
        if space["system"] is not None:
            break
        time.sleep(0.05)
    # The exporter adds these up as soon as `system` is not null.
    parts = [space[part] for part in ("replication", "shared", "snapshots", "unique")]
    assert all(type(part) is int for part in parts), space


@pytest.mark.parametrize("path", ENDPOINTS)
def test_scraping_an_endpoint_does_not_end_the_exporter(scraped, path):
    process, base, array, token = scraped
    for _ in range(2):
        status, text = scrape(base, path, array, token)
        assert status == 200
        assert process.poll() is None, "the exporter died"
        metrics = {line.split("{")[0].split(" ")[0] for line in text.splitlines()}
        assert set(ENDPOINTS[path]) <= metrics, sorted(metrics)
