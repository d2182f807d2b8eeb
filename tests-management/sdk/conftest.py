"""The Python SDK, as its users make a client of it."""

import itertools
import time

import pytest
from pypureclient import flasharray


@pytest.fixture
def client(management):
    """A client that has logged in, with the newest version that both sides speak."""
    return flasharray.Client(management.address, api_token=management.token, verify_ssl=False)


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
