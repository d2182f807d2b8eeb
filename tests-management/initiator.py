"""A host: what it finds behind a connection, by the tools of libiscsi and qemu."""

import re
import subprocess
from dataclasses import dataclass


@dataclass
class Disk:
    """A LUN, as one initiator sees it."""

    portal: str
    target: str
    lun: int
    initiator: str
    #: User and secret, if the host has to give them.
    chap: tuple[str, str] | None = None

    def serial(self):
        """The unit serial number (SPC-4 7.8.14)."""
        told = _run("iscsi-inq", *self._as(), "-e", "1", "-c", "128", self._url())
        return re.search(r"Unit Serial Number:\[(\w+)\]", told).group(1)

    def size_bytes(self):
        """What READ CAPACITY(16) tells."""
        told = _run("iscsi-readcapacity16", "-s", *self._as(), self._url())
        return int(told)

    def write(self, offset, length, pattern):
        """Fills so many bytes with one value."""
        self._io(f"write -P {pattern} {offset} {length}")

    def write_file(self, offset, length, path):
        """Writes so many bytes of a file."""
        self._io(f"write -s {path} {offset} {length}")

    def holds(self, offset, length, pattern):
        """Whether so many bytes are all of one value."""
        told = self._io(f"read -P {pattern} {offset} {length}")
        return "Pattern verification failed" not in told

    def is_reached(self):
        """Whether the initiator can log in and finds the LUN."""
        command = ["iscsi-inq", *self._as(), self._url()]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def _as(self):
        return ["-i", self.initiator]

    def _url(self):
        user = "%".join(self.chap) + "@" if self.chap else ""
        return f"iscsi://{user}{self.portal}/{self.target}/{self.lun}"

    def _io(self, command):
        disk = {
            "driver": "iscsi",
            "transport": "tcp",
            "portal": self.portal,
            "target": self.target,
            "lun": str(self.lun),
            "initiator-name": self.initiator,
        }
        words = []
        if self.chap:
            user, secret = self.chap
            words = ["--object", f"secret,id=chap,data={secret}"]
            disk |= {"user": user, "password-secret": "chap"}
        words += ["--image-opts", ",".join(f"{key}={value}" for key, value in disk.items())]
        return _run("qemu-io", "-t", "none", *words, "-c", command)


def _run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout
