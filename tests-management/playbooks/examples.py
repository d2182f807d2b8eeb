"""Runs modules of the Ansible collection, as published, but without a playbook around them.

The playbook takes most of the time. This imports the client once, and forks for each example. A
line of its input is JSON: the module, its arguments, the array's address and a token. A line of its
output is the module's result, or what it died of.
"""

import importlib
import io
import json
import os
import runpy
import sys
import traceback

sys.path.insert(0, os.environ["HOLDFAST_COLLECTIONS"])

from ansible.module_utils import basic  # noqa: E402

# What would be imported in each fork otherwise.
for name in [
    "ansible.module_utils.facts.default_collectors",
    "ansible_collections.purestorage.flasharray.plugins.module_utils.purefa",
    "pypureclient.flasharray.client",
    # The version of REST 2.x that the client takes.
    "pypureclient.flasharray.FA_2_42.client",
]:
    importlib.import_module(name)
# Modules take the models of the newest version.
_ = importlib.import_module("pypureclient.flasharray").VolumePost


MODULES = "ansible_collections.purestorage.flasharray.plugins.modules."


def result(module, arguments):
    """What a module answers to these arguments: its result, or what it died of."""
    basic._ANSIBLE_ARGS = json.dumps({"ANSIBLE_MODULE_ARGS": arguments}).encode()
    basic._ANSIBLE_PROFILE = "legacy"
    sys.stdout, sys.argv = io.StringIO(), [module]
    try:
        runpy.run_module(MODULES + module, run_name="__main__", alter_sys=True)
    except SystemExit:
        pass
    except BaseException as error:
        traceback.print_exc()
        return {"died": f"{type(error).__name__}: {error}"}
    return json.loads(sys.stdout.getvalue().strip().splitlines()[-1])


def forked(module, arguments, address, token):
    """The same, in a process of its own, as modules leave settings behind."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.environ |= {"PUREFA_URL": address, "PUREFA_API": token}
        told = json.dumps(result(module, arguments))
        with os.fdopen(writer, "w") as answer:
            answer.write(told)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        told = answer.read()
    os.waitpid(child, 0)
    return told


if __name__ == "__main__":
    for line in sys.stdin:
        print(forked(**json.loads(line)), flush=True)
