"""Arrays for clients: the real program, each with a pool of its own."""

import json
import os
import ssl
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

BINARY = os.environ["HOLDFAST"]
#: How long a start may take, on a busy machine.
START_S = 120


class Array:
    """A running array with a configuration in TOML."""

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
        """Starts the array, and waits until it reports that it serves."""
        self.process = subprocess.Popen(
            [BINARY, "serve", "--json", "--config", str(self.settings), "--pool", str(self.pool)]
            + ["--iscsi", "127.0.0.1:0"],
            stdout=subprocess.PIPE,
            stderr=self.log,
        )
        output = bytearray()
        decoder = json.JSONDecoder()
        while True:
            byte = self.process.stdout.read(1)
            assert byte, f"the array did not start: see {self.log.name}"
            output += byte
            try:
                self.told, _ = decoder.raw_decode(output.decode())
                return
            except json.JSONDecodeError:
                continue

    def stop(self, kill=False):
        """Ends the array, by SIGKILL if `kill` is set."""
        (self.process.kill if kill else self.process.terminate)()
        self.process.wait(timeout=START_S)

    def restart(self):
        """Kills the array and starts it again."""
        self.stop(kill=True)
        self.start()


class Management:
    """The management interface of an array, with the API token of an array admin."""

    def __init__(self, array: Array):
        self.array = array
        made = self.verb("token", "create", "tests", "--user", "admin")
        self.token = json.loads(made)["token"]

    @property
    def address(self):
        """Returns the HTTPS address of the interface."""
        return self.array.told["api"]

    @property
    def certificate(self):
        """Returns the path of the array's self-signed certificate."""
        return str(self.array.pool / "api-certificate.pem")

    def verb(self, *words):
        """Runs a verb of the command line, and returns its output."""
        command = [BINARY, "--json", "--pool", str(self.array.pool), *words]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout

    def rest(self, path, **parameters):
        """Returns the items of a REST 2.x list, requested without a client library."""
        return self._get(path, parameters)["items"]

    def refused(self, path, **parameters):
        """Requests a list that must be refused, and returns the errors."""
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
