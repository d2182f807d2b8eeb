"""Checks the array against the OpenAPI description that it serves."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from running import Array

SETTINGS = Path(__file__).with_name("schemathesis.toml")


@pytest.fixture
def scratch():
    """An array for this test alone, whose requests may change anything."""
    directory = Path(tempfile.mkdtemp(prefix="scratch-", dir=os.environ.get("HOLDFAST_DIR")))
    array = Array(directory)
    yield array
    array.stop()
    shutil.rmtree(directory)


def test_nothing_contradicts_the_description(scratch, tmp_path):
    # A request of the test could delete a user's token, but not the token in the run file.
    token = json.loads((scratch.pool / "array.run").read_text())["token"]
    array = f"https://{scratch.told['api']}"
    done = subprocess.run(
        [
            Path(sys.executable).with_name("st"),
            f"--config-file={SETTINGS}",
            "--no-color",
            "run",
            f"{array}/v1/openapi.json",
            f"--header=Authorization: Bearer {token}",
            f"--tls-verify={scratch.pool / 'api-certificate.pem'}",
            "--phases=examples,coverage,fuzzing",
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"REQUESTS_CA_BUNDLE": str(scratch.pool / "api-certificate.pem")},
    )
    print(done.stdout[-20000:], done.stderr[-4000:])
    assert done.returncode == 0
    assert scratch.process.poll() is None
