"""Fixtures that run playbooks and their peers."""

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def play(management, tmp_path):
    """Runs a playbook, and returns the counts of its recap."""

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
            "ANSIBLE_PIPELINING": "True",
            # Without this, a module that crashes reports no reason.
            "ANSIBLE_DISPLAY_TRACEBACK": "error",
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


@pytest.fixture
def server_program():
    """Finds the program of a peer server by its name, or skips and names its Debian package."""

    def find(name, package):
        program = shutil.which(name, path="/usr/sbin:/usr/bin:/sbin")
        if program is None:
            pytest.skip(f"{name} is missing (Debian: {package})")
        return program

    return find


@pytest.fixture
def udp_port():
    """A free UDP port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
