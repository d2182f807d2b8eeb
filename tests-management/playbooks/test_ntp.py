"""The Ansible collection: time servers, against chronyd."""

import socket
import subprocess
import time
from pathlib import Path

import pytest

#: How long a start may take, on a busy machine.
PATIENCE_S = 60
#: A request of an NTP client, version 4 (RFC 5905, 7.3).
REQUEST = b"\x23" + bytes(47)


def answers(port):
    """Returns whether a time server answers at a port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(0.5)
        asking.connect(("127.0.0.1", port))
        try:
            asking.send(REQUEST)
            return len(asking.recv(512)) >= len(REQUEST)
        except OSError:
            return False


@pytest.fixture
def time_server(tmp_path, server_program, udp_port):
    """The port of a server that serves this machine's time, and does not set the clock."""
    program, port = server_program("chronyd", "chrony"), udp_port
    settings = tmp_path / "chrony.conf"
    settings.write_text(
        f"port {port}\nbindaddress 127.0.0.1\nallow 127.0.0.1\nlocal stratum 8\ncmdport 0\n"
        f"pidfile {tmp_path}/chronyd.pid\nbindcmdaddress /\n"
    )
    with subprocess.Popen([program, "-d", "-x", "-U", "-u", "root", "-f", settings]) as server:
        end = time.monotonic() + PATIENCE_S
        while not answers(port):
            assert server.poll() is None and time.monotonic() < end, "chronyd does not start"
        yield port
        server.terminate()


def test_time_servers_are_asked(management, play, time_server):
    play(Path(__file__).parent / "ntp.yml", ntp_port=time_server)
    server = f"127.0.0.1:{time_server}"
    management.verb("array", "set", "--ntp-servers", server)
    (tested,) = management.rest("arrays/ntp-test")
    assert tested["success"] and tested["resource"]["name"] == server, tested
    assert tested["result_details"].startswith("The clock is 0.0"), tested
    assert b'"error":null' in management.verb("array", "ntp-test").replace(b" ", b"")
    management.verb("array", "set", "--ntp-servers", "none")
    (array,) = management.rest("arrays")
    assert array["ntp_servers"] == []
