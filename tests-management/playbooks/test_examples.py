"""The Ansible collection: every documented example of every module, on a fresh array for each.

`examples.yml` says how each ends: unchanged (`ok`), `changed`, or with the message of the module.
"""

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
from running import Array, Management

HERE = Path(__file__).parent
MODULES = (
    Path(os.environ["HOLDFAST_COLLECTIONS"])
    / "ansible_collections/purestorage/flasharray/plugins/modules"
)
EXPECTED = yaml.safe_load((HERE / "examples.yml").read_text())


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
                found.append(arguments)
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
