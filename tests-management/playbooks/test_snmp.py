"""The Ansible collection: SNMP managers, against snmptrapd."""

import re
import subprocess
import time
from pathlib import Path

import pytest

#: How long a message or a start may take: as long as a busy machine needs.
PATIENCE_S = 60
#: How often somebody is refused before that is worth an alert.
STRANGERS = 6
#: Where the objects of contrib/snmp are.
ROOT = ".1.3.6.1.4.1.8072.9999.9999.7326"
TRAP = ".1.3.6.1.6.3.1.1.4.1.0"


class Manager:
    """A receiver of traps and informs, which writes down what it takes."""

    def __init__(self, program, place, port):
        self.log = place / "traps.log"
        self.program, self.place, self.port = program, place, port

    def start(self, engine):
        """Starts it; by version 3 only what this engine sends is taken."""
        settings = self.place / "snmptrapd.conf"
        aes = '"correct horse" AES "battery staple"'
        settings.write_text(
            "authCommunity log public\n"
            f"createUser -e 0x{engine} manager SHA {aes}\n"
            "createUser md5 MD5 password\n"
            "authUser log manager priv\n"
            "authUser log md5 auth\n"
        )
        self.process = subprocess.Popen(
            [self.program, "-f", "-C", "-c", settings, "-On", "-m", "", "-n"]
            + ["-Lf", self.log, "-p", self.place / "pid", "-F", "%P|%v\n"]
            + [f"udp:127.0.0.1:{self.port}"],
            env={"SNMP_PERSISTENT_DIR": str(self.place / "kept"), "PATH": "/usr/bin"},
        )
        self.wait_for(lambda text: "NET-SNMP version" in text)

    def wait_for(self, is_there):
        end = time.monotonic() + PATIENCE_S
        while not is_there(self.text()):
            assert self.process.poll() is None and time.monotonic() < end, self.text()
            time.sleep(0.1)

    def text(self):
        return self.log.read_text() if self.log.exists() else ""

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=PATIENCE_S)


@pytest.fixture
def manager(tmp_path, server_program, udp_port):
    return Manager(server_program("snmptrapd", "snmptrapd"), tmp_path, udp_port)


def told(text, number):
    """The lines of one notification of the MIB."""
    name = f"{TRAP} = OID: {ROOT}.0.{number}"
    return [line for line in text.splitlines() if name in line]


def test_snmp_managers_are_told(management, play, manager):
    (agent,) = management.rest("snmp-agents")
    manager.start(agent["engine_id"])
    try:
        play(Path(__file__).parent / "snmp.yml", snmp_port=manager.port)
        # Version 2c with its community; 3 with a user that encrypts, and one that does not.
        manager.wait_for(lambda text: len(told(text, 3)) >= 3)
        tests = told(manager.text(), 3)
        assert any("community public" in line for line in tests), tests
        assert any("user manager" in line for line in tests), tests
        assert any("user md5" in line for line in tests), tests
        (array,) = management.rest("arrays")
        for line in tests:
            assert f'{ROOT}.1.1.0 = STRING: "{array["name"]}"' in line, line
        # After a start the engine is a later one, or nothing of version 3 would be taken.
        management.restart()
        before = len(told(manager.text(), 3))
        management.rest("snmp-managers/test", names="manager2")
        manager.wait_for(lambda text: len(told(text, 3)) > before)
        assert "user manager" in told(manager.text(), 3)[-1]
        # An alert opens as a stranger comes again and again, and is closed.
        told_now = management.array.told
        place = f"iscsi://{told_now['portals'][0]}/{told_now['target_name']}/1"
        stranger = ["iscsi-inq", "-i", "iqn.2026-01.com.example:stranger", place]
        for _ in range(STRANGERS):
            assert subprocess.run(stranger, capture_output=True, check=False).returncode != 0
        manager.wait_for(lambda text: any("login-refused" in line for line in told(text, 1)))
        opened = [line for line in told(manager.text(), 1) if "login-refused" in line][0]
        number = re.search(re.escape(f"{ROOT}.1.3.0") + r" = Gauge32: (\d+)", opened).group(1)
        assert f"{ROOT}.1.4.0 = Gauge32: 403" in opened, opened
        management.verb("alert", "close", number)
        closed = f"{ROOT}.1.3.0 = Gauge32: {number}"
        manager.wait_for(lambda text: any(closed in line for line in told(text, 2)))
        play(Path(__file__).parent / "snmp_gone.yml")
        assert management.rest("snmp-managers") == []
    finally:
        manager.stop()
