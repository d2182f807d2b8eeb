"""The array that clients are run against: the real binary, on a pool of its own."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

import terminator

BINARY = os.environ["HOLDFAST"]
#: How long a start may take: as long as a busy machine needs.
START_S = 120


class Array:
    """A running array."""

    def __init__(self, directory: Path):
        self.pool = directory / "pool"
        self.process = None
        self.log = open(directory / "log", "ab")
        subprocess.run(
            [BINARY, "pool", "create", str(self.pool), "--capacity", "2G"],
            check=True,
            stdout=self.log,
        )
        self.start()

    def start(self):
        """Starts it, and waits until it says that it serves."""
        self.process = subprocess.Popen(
            [BINARY, "serve", "--json", "--pool", str(self.pool), "--iscsi", "127.0.0.1:0"],
            stdout=subprocess.PIPE,
            stderr=self.log,
        )
        told = bytearray()
        decoder = json.JSONDecoder()
        while True:
            byte = self.process.stdout.read(1)
            assert byte, f"it did not start: see {self.log.name}"
            told += byte
            try:
                self.told, _ = decoder.raw_decode(told.decode())
                return
            except json.JSONDecodeError:
                continue

    def run_file(self):
        """What it leaves for those who may ask: where, and with which token."""
        return json.loads((self.pool / "array.run").read_text())

    def stop(self, kill=False):
        """Ends it, in order or not."""
        (self.process.kill if kill else self.process.terminate)()
        self.process.wait(timeout=START_S)

    def restart(self):
        """Kills it and starts it again."""
        self.stop(kill=True)
        self.start()


class Management:
    """Where clients find an array, over HTTPS: its address and an API token."""

    def __init__(self, array: Array):
        self.array = array
        self.proxy = None
        self.find()

    def find(self):
        """Finds it again, behind a start."""
        run = self.array.run_file()
        if self.proxy:
            self.proxy.close()
        self.proxy = terminator.Terminator(run["api"], Path(self.array.pool).parent)
        self.address = self.proxy.address
        self.token = run["token"]

    def restart(self):
        """Kills the array and starts it again."""
        self.array.restart()
        self.find()


@pytest.fixture(scope="session")
def management():
    """An array for all tests: each makes names of its own."""
    base = os.environ.get("HOLDFAST_DIR")
    directory = Path(tempfile.mkdtemp(prefix="array-", dir=base))
    array = Array(directory)
    found = Management(array)
    yield found
    found.proxy.close()
    array.stop()
    shutil.rmtree(directory)
