"""Pages with commands, and a shell that runs them: what the scripts here have in common."""

import ctypes
import fcntl
import os
import re
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: How long a command may take: as long as a busy machine needs.
PATIENCE_S = 300
PORTS = (3260, 3280)


def blocks(page):
    """The blocks of a page that are commands, a list of lines each."""
    found = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return [block.splitlines() for block in found]


class Shell:
    """One bash for all lines."""

    def __init__(self, directory, programs):
        self.directory = directory
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")
        }
        environment["PATH"] = f"{programs}:{environment['PATH']}:/usr/sbin:/sbin"
        environment["XDG_RUNTIME_DIR"] = str(directory)
        self.output = directory / "output"
        self.log = self.output.open("wb")
        self.process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            stdout=self.log,
            stderr=self.log,
            cwd=directory,
            env=environment,
            text=True,
        )
        self.process.stdin.write("set -m\n")
        self.lines = 0

    def run(self, line):
        """Runs a line; its exit code."""
        self.lines += 1
        told = self.directory / f"code-{self.lines}"
        self.process.stdin.write(f"{line}\necho $? > {told}.new; mv {told}.new {told}\n")
        self.process.stdin.flush()
        return int(wait(lambda: told.exists() and told.read_text(), f"the end of: {line}"))

    def text(self):
        """Everything that was printed."""
        return self.output.read_text(errors="replace")

    def end(self):
        """Ends it and what it started."""
        if self.process.poll() is None:
            self.process.stdin.write("kill -9 %1; exit\n")
            self.process.stdin.close()
        self.process.wait(timeout=PATIENCE_S)


def wait(found, what):
    """What `found` gives once it gives something."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        value = found()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"no sign of {what}")


def own_network():
    """Takes a network with nothing but loopback, where that is allowed: no port is taken there."""
    clone_newnet = 0x40000000
    if ctypes.CDLL(None).unshare(clone_newnet) != 0:
        return
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            up_and_running = 0x1 | 0x40
            # SIOCSIFFLAGS (netdevice(7)).
            fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", up_and_running))
    except OSError as error:
        sys.exit(f"no loopback in a network of its own: {error}")


def taken_port():
    """A port of the page that another program has."""
    for port in PORTS:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                return port
    return None


def make_programs(directory, *binaries):
    """A directory with these programs, and a `sudo` that asks nobody: what needs root for the
    kernel does not need it here, or is root already."""
    programs = directory / "programs"
    programs.mkdir()
    for binary in binaries:
        (programs / binary.name).symlink_to(binary)
    sudo = programs / "sudo"
    sudo.write_text('#!/bin/sh\nexec "$@"\n')
    sudo.chmod(0o755)
    return programs
