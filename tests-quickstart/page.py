"""Pages with commands, and a shell that runs them; shared by the scripts in this directory."""

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
#: How long a command may take, on a busy machine.
PATIENCE_S = 300
PORTS = (3260, 3280)


def blocks(page):
    """Returns the `sh` blocks of a page, each as a list of lines."""
    found = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return [block.splitlines() for block in found]


class Shell:
    """A bash that runs all lines."""

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
        """Runs a line, and returns its exit code."""
        self.lines += 1
        code = self.directory / f"code-{self.lines}"
        self.process.stdin.write(f"{line}\necho $? > {code}.new; mv {code}.new {code}\n")
        self.process.stdin.flush()
        return int(wait(lambda: code.exists() and code.read_text(), f"the end of: {line}"))

    def text(self):
        """Returns all output."""
        return self.output.read_text(errors="replace")

    def end(self):
        """Ends the shell and the array that it started."""
        if self.process.poll() is None:
            self.process.stdin.write("kill -9 %1; exit\n")
            self.process.stdin.close()
        self.process.wait(timeout=PATIENCE_S)


def wait(found, what):
    """Waits until `found` returns a true value, and returns that."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        value = found()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"timed out waiting for {what}")


def own_network():
    """Enters a new network namespace with loopback only, if allowed: all ports are free there."""
    clone_newnet = 0x40000000
    if ctypes.CDLL(None).unshare(clone_newnet) != 0:
        return
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            up_and_running = 0x1 | 0x40
            # SIOCSIFFLAGS (netdevice(7)).
            fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", up_and_running))
    except OSError as error:
        sys.exit(f"can't set up loopback in a network namespace: {error}")


def taken_port():
    """Returns a port of the pages that another program uses, if any."""
    for port in PORTS:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                return port
    return None


def make_programs(directory, *binaries):
    """Makes a directory with links to the programs, and a `sudo` that only runs its arguments:
    here, its commands don't need root, or this process is root already."""
    programs = directory / "programs"
    programs.mkdir()
    for binary in binaries:
        (programs / binary.name).symlink_to(binary)
    sudo = programs / "sudo"
    sudo.write_text('#!/bin/sh\nexec "$@"\n')
    sudo.chmod(0o755)
    return programs
