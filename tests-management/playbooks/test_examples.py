"""The Ansible collection: every documented example of every module, on a fresh array for each.

`examples.yml` says how each ends: unchanged (`ok`), `changed`, or with the message of the module.
"""

import datetime
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from running import Array, Management

HERE = Path(__file__).parent
MODULES = (
    Path(os.environ["HOLDFAST_COLLECTIONS"])
    / "ansible_collections/purestorage/flasharray/plugins/modules"
)
EXPECTED = yaml.safe_load((HERE / "examples.yml").read_text())


@functools.cache
def files():
    """The files that examples read: a certificate with its key, which is not encrypted."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "array.example.com")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = x509.CertificateBuilder(issuer_name=name, subject_name=name)
    made = made.public_key(key.public_key()).serial_number(x509.random_serial_number())
    made = made.not_valid_before(now).not_valid_after(now + datetime.timedelta(days=9))
    encodings = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return {
        "example.crt": made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM),
        "example.key": key.private_bytes(*encodings, serialization.NoEncryption()),
    }


def filled(value):
    """An argument, with the content of the file that a playbook would look up."""
    named = re.fullmatch(r"{{\s*lookup\('file', '(.*?)'\)\s*}}", str(value))
    if named is None or named.group(1) not in files():
        return value
    return files()[named.group(1)].decode()


def examples(module):
    """The arguments in the documented examples of a module; the array is named otherwise."""
    text = (MODULES / f"{module}.py").read_text()
    written = re.search(r"EXAMPLES = r?(\"\"\"|''')(.*?)\1", text, re.S).group(2)
    found = []
    for task in yaml.safe_load(written):
        for key, arguments in task.items():
            if key.split(".")[-1] == module:
                arguments = dict(arguments or {})
                arguments.pop("fa_url", None)
                arguments.pop("api_token", None)
                found.append({key: filled(value) for key, value in arguments.items()})
    return found


@pytest.fixture(scope="module")
def runner():
    """Runs an example of a module, and tells its result."""
    with subprocess.Popen(
        [sys.executable, HERE / "examples.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:

        def run(**example):
            process.stdin.write(json.dumps(example, default=str) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield run
        process.stdin.close()


@pytest.fixture
def fresh():
    """An array of its own: what an example leaves behind would change others."""
    directory = Path(tempfile.mkdtemp(prefix="examples-", dir=os.environ.get("HOLDFAST_DIR")))
    array = Array(directory)
    yield Management(array)
    array.stop()
    shutil.rmtree(directory)


def ended(result):
    """How an example ended, in a word or by its message."""
    if "died" in result:
        return {"dies": result["died"].split(":")[0]}
    if result.get("failed"):
        return result["msg"]
    return "changed" if result.get("changed") else "ok"


def test_every_module_is_here():
    published = {path.stem for path in MODULES.glob("purefa_*.py")}
    assert published == EXPECTED.keys()


@pytest.mark.parametrize("module", EXPECTED)
def test_documented_examples_end_as_they_should(fresh, runner, module):
    if "skipped" in EXPECTED[module]:
        pytest.skip(EXPECTED[module]["skipped"])
    token, address = fresh.token, fresh.address
    results = [
        runner(module=module, arguments=arguments, address=address, token=token)
        for arguments in examples(module)
    ]
    assert [ended(result) for result in results] == EXPECTED[module]
