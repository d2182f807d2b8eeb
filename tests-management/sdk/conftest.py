"""The Python SDK, as its users make a client of it."""

import itertools

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

