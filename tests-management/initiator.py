"""A host: the disk of a connection, accessed by the tools of libiscsi and qemu."""

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
    #: CHAP user and secret, if the host logs in with them.
    chap: tuple[str, str] | None = None

    def serial(self):
        """Returns the unit serial number (SPC-4 7.8.14)."""
        output = _run("iscsi-inq", *self._as(), "-e", "1", "-c", "128", self._url())
        return re.search(r"Unit Serial Number:\[(\w+)\]", output).group(1)

    def size_bytes(self):
        """Returns the capacity by READ CAPACITY(16)."""
        return int(_run("iscsi-readcapacity16", "-s", *self._as(), self._url()))

    def write(self, offset, length, pattern):
        """Fills a range with one byte value."""
        self._io(f"write -P {pattern} {offset} {length}")

    def write_file(self, offset, length, path):
        """Writes the beginning of a file to a range."""
        self._io(f"write -s {path} {offset} {length}")

    def holds(self, offset, length, pattern):
        """Returns whether all bytes of a range have one value."""
        output = self._io(f"read -P {pattern} {offset} {length}")
        return "Pattern verification failed" not in output

    def is_reached(self):
        """Returns whether the initiator can log in and finds the LUN."""
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
