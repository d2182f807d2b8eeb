"""The Ansible collection: SNMP managers, against snmptrapd."""

import re
import subprocess
import time
from pathlib import Path

import pytest

#: How long a message or a start may take, on a busy machine.
PATIENCE_S = 60
#: The number of refused logins that open an alert.
STRANGERS = 6
#: The OID of the MIB in contrib/snmp.
ROOT = ".1.3.6.1.4.1.8072.9999.9999.7326"
TRAP = ".1.3.6.1.6.3.1.1.4.1.0"


class Manager:
    """A receiver of traps and informs, which logs what it accepts."""

    def __init__(self, program, place, port):
        self.log = place / "traps.log"
        self.program, self.place, self.port = program, place, port

    def start(self, engine):
        """Starts the manager, which accepts SNMPv3 messages of this engine only."""
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


def lines_of(text, number):
    """Returns the log lines of one notification of the MIB."""
    name = f"{TRAP} = OID: {ROOT}.0.{number}"
    return [line for line in text.splitlines() if name in line]


def test_snmp_managers_get_notifications(management, play, manager):
    (agent,) = management.rest("snmp-agents")
    manager.start(agent["engine_id"])
    try:
        play(Path(__file__).parent / "snmp.yml", snmp_port=manager.port)
        # SNMPv2c with its community; SNMPv3 with a user with encryption, and one without.
        manager.wait_for(lambda text: len(lines_of(text, 3)) >= 3)
        tests = lines_of(manager.text(), 3)
        assert any("community public" in line for line in tests), tests
        assert any("user manager" in line for line in tests), tests
        assert any("user md5" in line for line in tests), tests
        (array,) = management.rest("arrays")
        for line in tests:
            assert f'{ROOT}.1.1.0 = STRING: "{array["name"]}"' in line, line
        # After a restart, snmpEngineBoots must be higher, or the manager rejects SNMPv3 messages.
        management.restart()
        before = len(lines_of(manager.text(), 3))
        management.rest("snmp-managers/test", names="manager2")
        manager.wait_for(lambda text: len(lines_of(text, 3)) > before)
        assert "user manager" in lines_of(manager.text(), 3)[-1]
        # Repeated logins of an unknown initiator open an alert, which is then closed.
        started = management.array.told
        place = f"iscsi://{started['portals'][0]}/{started['target_name']}/1"
        stranger = ["iscsi-inq", "-i", "iqn.2026-01.com.example:stranger", place]
        for _ in range(STRANGERS):
            assert subprocess.run(stranger, capture_output=True, check=False).returncode != 0
        manager.wait_for(lambda text: any("login-refused" in line for line in lines_of(text, 1)))
        opened = [line for line in lines_of(manager.text(), 1) if "login-refused" in line][0]
        number = re.search(re.escape(f"{ROOT}.1.3.0") + r" = Gauge32: (\d+)", opened).group(1)
        assert f"{ROOT}.1.4.0 = Gauge32: 403" in opened, opened
        management.verb("alert", "close", number)
        closed = f"{ROOT}.1.3.0 = Gauge32: {number}"
        manager.wait_for(lambda text: any(closed in line for line in lines_of(text, 2)))
        play(Path(__file__).parent / "snmp_gone.yml")
        assert management.rest("snmp-managers") == []
    finally:
        manager.stop()
