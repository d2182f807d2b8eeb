"""Clients of the Python SDK."""

import itertools
import time

import pytest
from pypureclient import flasharray
from running import Array, Management


@pytest.fixture
def client(management):
    """A client that has logged in, with the newest common version."""
    return flasharray.Client(management.address, api_token=management.token, verify_ssl=False)


@pytest.fixture
def started(tmp_path):
    """Starts an array with a configuration, for this test only."""
    arrays = []

    def start(settings):
        arrays.append(Array(tmp_path, settings))
        return Management(arrays[-1])

    yield start
    for array in arrays:
        array.stop()


_numbers = itertools.count(1)


@pytest.fixture
def prefix():
    """A prefix of names that no other test uses."""
    return f"t{next(_numbers)}"



@pytest.fixture
def eventually():
    """Waits for a background action of the array, at most a minute."""

    def wait(look):
        for _ in range(240):
            if found := look():
                return found
            time.sleep(0.25)
        raise AssertionError("it did not happen")

    return wait
