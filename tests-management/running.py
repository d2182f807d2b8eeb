"""Arrays that clients are run against: the real binary, each on a pool of its own."""

import json
import os
import ssl
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

BINARY = os.environ["HOLDFAST"]
#: How long a start may take: as long as a busy machine needs.
START_S = 120


class Array:
    """A running array, with the configuration that is given as TOML."""

    def __init__(self, directory: Path, settings: str = ""):
        self.pool = directory / "pool"
        self.settings = directory / "holdfast.toml"
        self.settings.write_text(settings)
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
            [BINARY, "serve", "--json", "--config", str(self.settings), "--pool", str(self.pool)]
            + ["--iscsi", "127.0.0.1:0"],
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

    def stop(self, kill=False):
        """Ends it, in order or not."""
        (self.process.kill if kill else self.process.terminate)()
        self.process.wait(timeout=START_S)

    def restart(self):
        """Kills it and starts it again."""
        self.stop(kill=True)
        self.start()


class Management:
    """Where clients find an array, and the API token of a user who may change everything."""

    def __init__(self, array: Array):
        self.array = array
        made = self.verb("token", "create", "tests", "--user", "admin")
        self.token = json.loads(made)["token"]

    @property
    def address(self):
        """The address of the interface, which speaks HTTPS."""
        return self.array.told["api"]

    @property
    def certificate(self):
        """The certificate that it made for itself."""
        return str(self.array.pool / "api-certificate.pem")

    def verb(self, *words):
        """What a verb of the command line prints."""
        command = [BINARY, "--json", "--pool", str(self.array.pool), *words]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout

    def rest(self, path, **parameters):
        """The items of a list of REST 2.x, asked for without any client."""
        return self._get(path, parameters)["items"]

    def refused(self, path, **parameters):
        """Why a list is refused."""
        try:
            self._get(path, parameters)
        except urllib.error.HTTPError as error:
            assert error.code == 400, error
            return json.load(error)["errors"]
        raise AssertionError(f"{path} was not refused")

    def _get(self, path, parameters):
        query = urllib.parse.urlencode(parameters)
        address = f"https://{self.address}/api/2.26/{path}?{query}"
        request = urllib.request.Request(address)
        request.add_header("Authorization", f"Bearer {self.token}")
        trust = ssl.create_default_context(cafile=self.certificate)
        with urllib.request.urlopen(request, context=trust, timeout=START_S) as answer:
            return json.load(answer)

    def restart(self):
        """Kills the array and starts it again."""
        self.array.restart()
