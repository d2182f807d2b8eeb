"""The storage plugin itself. Each repeatable call is made twice; the second must change nothing."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from running import Array, Management

PLUGIN = os.environ.get("HOLDFAST_PROXMOX_PLUGIN")
HERE = Path(__file__).parent
#: Calls `purestorage_NAME` of the plugin with its configuration and arguments.
CALL = """
my ( $address, $token, $plugin, $name, @arguments ) = @ARGV;
require $plugin;
my $configuration = { address => $address, token => $token };
my $function = "purestorage_$name";
@arguments = map { /^\\d+$/ ? 0 + $_ : $_ } @arguments;
PVE::Storage::Custom::PureStoragePlugin->$function( $configuration, @arguments );
"""

pytestmark = pytest.mark.skipif(
    not PLUGIN or not shutil.which("perl"), reason="HOLDFAST_PROXMOX_PLUGIN names no plugin"
)


@pytest.fixture(scope="module")
def call():
    """Calls a function of the plugin, which must not die."""
    directory = Path(tempfile.mkdtemp(prefix="proxmox-", dir=os.environ.get("HOLDFAST_DIR")))
    array = Array(directory, "http = true\n")
    management = Management(array)
    management.verb("host", "create", "pve", "--iqn", "iqn.1993-08.org.debian:01:pve")
    perl = ["perl", "-I", str(HERE), "-Mstand_ins", "-e", CALL]
    there = [f"http://{management.address}", management.token, PLUGIN]

    def run(name, *arguments):
        words = [*perl, *there, name, *map(str, arguments)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    yield run
    array.stop()
    shutil.rmtree(directory)


def test_repeated_calls_succeed(call):
    disk = "vm-100-disk-0"
    call("create_volume", disk, 1 << 30, "store")
    to, off = "connected to host", "disconnected from host"
    line = f'Info :: Volume "{disk}" is '
    for mode, first in ((1, to), (0, off)):
        assert call("volume_connection", disk, mode) == f'{line}{first} "pve".\n'
        assert call("volume_connection", disk, mode) == f'{line}already {first} "pve".\n'
    call("snap_volume_create", "first", disk)
    of = f'Info :: Volume "{disk}" snapshot "first" is'
    assert call("snap_volume_delete", "first", disk) == f"{of} destroyed.\n{of} eradicated.\n"
    again = f"{of} already destroyed.\n{of} already eradicated.\n"
    assert call("snap_volume_delete", "first", disk) == again
    assert call("remove_volume", disk, "store", 0) == f"{line}destroyed.\n"
    assert call("remove_volume", disk, "store", 0) == f"{line}already destroyed.\n"
    # Disconnecting and eradicating work on the destroyed volume.
    assert call("volume_connection", disk, 0) == f'{line}already {off} "pve".\n'
    gone = f"{line}already destroyed.\n{line}eradicated.\n"
    assert call("remove_volume", disk, "store", 1) == gone
