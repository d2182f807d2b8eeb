"""The Python SDK, as its users make a client of it."""

import itertools
import time

import pytest
from pypureclient import flasharray
from running import Array, Management


@pytest.fixture
def client(management):
    """A client that has logged in, with the newest version that both sides speak."""
    return flasharray.Client(management.address, api_token=management.token, verify_ssl=False)


@pytest.fixture
def started(tmp_path):
    """Starts an array of the test's own, with a configuration; it is ended with the test."""
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
    """A beginning of names that no other test has."""
    return f"t{next(_numbers)}"



@pytest.fixture
def eventually():
    """Waits until something is there that the array does by itself; a minute at most."""

    def wait(look):
        for _ in range(240):
            if found := look():
                return found
            time.sleep(0.25)
        raise AssertionError("it did not happen")

    return wait
