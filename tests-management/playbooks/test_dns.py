"""The Ansible collection: name servers, against dnsmasq."""

import socket
import subprocess
import time
from pathlib import Path

import pytest

#: How long a message or a start may take, on a busy machine.
PATIENCE_S = 60


@pytest.fixture
def name_server(tmp_path, server_program, udp_port):
    """The port of a name server that knows `log.lab.example`."""
    program, port = server_program("dnsmasq", "dnsmasq-base"), udp_port
    log = tmp_path / "dnsmasq.log"
    with subprocess.Popen(
        [program, "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts"]
        + ["--bind-interfaces", "--listen-address=127.0.0.1", f"--port={port}", "--user="]
        + ["--pid-file=", "--log-queries", f"--log-facility={log}"]
        + ["--host-record=log.lab.example,127.0.0.1"]
    ) as server:
        end = time.monotonic() + PATIENCE_S
        while "started" not in (log.read_text() if log.exists() else ""):
            assert server.poll() is None and time.monotonic() < end, "dnsmasq does not start"
            time.sleep(0.1)
        yield port, log
        server.terminate()


def test_names_are_resolved_by_the_configured_server(management, play, name_server):
    port, log = name_server
    syslog = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    syslog.bind(("127.0.0.1", 0))
    syslog.settimeout(PATIENCE_S)
    play(
        Path(__file__).parent / "dns.yml",
        dns_port=port,
        syslog_port=syslog.getsockname()[1],
    )
    lines = []
    while not any("this is a test of notifications" in line for line in lines):
        lines.append(syslog.recv(4096).decode())
    assert "log.lab.example" in log.read_text()
    assert management.rest("dns") == management.rest("syslog-servers") == []
