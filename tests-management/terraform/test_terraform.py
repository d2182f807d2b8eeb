"""Terraform with the published provider `restapi`, and the example of contrib/terraform."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

PROVIDERS = os.environ.get("HOLDFAST_TERRAFORM_PROVIDERS")
EXAMPLE = Path(__file__).parents[2] / "contrib" / "terraform" / "main.tf"
GIB = 1 << 30
#: Of `terraform plan -detailed-exitcode`: nothing to change, and changes.
SAME, CHANGES = 0, 2

pytestmark = pytest.mark.skipif(
    not PROVIDERS or not shutil.which("terraform"),
    reason="terraform is missing, or its provider could not be built here",
)


class Site:
    """A directory with the example, and the variables of a site."""

    def __init__(self, directory, management):
        self.directory = directory
        self.environment = {
            **os.environ,
            "CHECKPOINT_DISABLE": "1",
            "SSL_CERT_FILE": management.certificate,
            "TF_CLI_CONFIG_FILE": os.devnull,
        }
        shutil.copy(EXAMPLE, directory)
        self.variables = {
            "array": f"https://{management.address}",
            "token": management.token,
            "volumes": {"terraform1": 1, "terraform2": 2},
            "hosts": {"terraformed": ["iqn.2026-01.com.example:terraformed"]},
        }
        self.run("init", f"-plugin-dir={PROVIDERS}")

    def run(self, *words, status=0):
        """Runs terraform, which must exit with a status, and returns its output."""
        (self.directory / "terraform.tfvars.json").write_text(json.dumps(self.variables))
        done = subprocess.run(
            ["terraform", words[0], "-no-color", *words[1:]],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == status, done.stdout
        return done.stdout

    def apply(self, status=0):
        return self.run("apply", "-auto-approve", status=status)

    def plan(self, status):
        return self.run("plan", "-detailed-exitcode", status=status)

    def destroy(self):
        return self.run("destroy", "-auto-approve")


@pytest.fixture
def site(tmp_path, management):
    site = Site(tmp_path, management)
    yield site
    site.destroy()
    for volume in management.rest("volumes", filter="name='terraform*'"):
        management.verb("volume", "eradicate", volume["name"])


def sizes(management):
    """Returns the sizes in GiB of the volumes that are not destroyed."""
    volumes = management.rest("volumes", filter="name='terraform*'", destroyed="false")
    return {volume["name"]: volume["provisioned"] // GIB for volume in volumes}


def connected(management):
    """Returns the volumes that the host sees."""
    found = management.rest("connections", filter="host.name='terraformed'")
    return sorted(connection["volume"]["name"] for connection in found)


def test_objects_are_created_changed_and_destroyed(site, management):
    site.apply()
    assert sizes(management) == {"terraform1": 1, "terraform2": 2}
    assert connected(management) == ["terraform1", "terraform2"]
    site.plan(SAME)

    site.variables["volumes"] = {"terraform1": 3}
    site.variables["hosts"]["terraformed"].append("iqn.2026-01.com.example:terraformed.b")
    site.plan(CHANGES)
    site.apply()
    assert sizes(management) == {"terraform1": 3}
    assert connected(management) == ["terraform1"]
    (host,) = management.rest("hosts", names="terraformed")
    assert host["iqns"] == site.variables["hosts"]["terraformed"]
    site.plan(SAME)

    site.destroy()
    assert sizes(management) == {}
    assert management.rest("hosts", filter="name='terraformed'") == []
    # Only destroyed: they can be recovered.
    found = management.rest("volumes", filter="name='terraform*'", destroyed="true")
    assert [volume["name"] for volume in found] == ["terraform1", "terraform2"]


def test_the_name_of_a_destroyed_volume_is_refused_until_it_is_eradicated(site, management):
    site.variables["hosts"] = {}
    site.apply()
    site.destroy()
    assert "Recover it, or eradicate it" in site.apply(status=1)
    for name in site.variables["volumes"]:
        management.verb("volume", "eradicate", name)
    site.apply()
    assert sizes(management) == {"terraform1": 1, "terraform2": 2}


def test_an_eradicated_volume_is_created_again(site, management):
    site.variables["hosts"] = {}
    site.apply()
    management.verb("volume", "destroy", "terraform1")
    management.verb("volume", "eradicate", "terraform1")
    site.plan(CHANGES)
    site.apply()
    assert sizes(management) == {"terraform1": 1, "terraform2": 2}
