"""The array that most tests share."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from running import Array, Management


@pytest.fixture(scope="session")
def management():
    """An array for all tests; each test uses its own names."""
    base = os.environ.get("HOLDFAST_DIR")
    directory = Path(tempfile.mkdtemp(prefix="array-", dir=base))
    array = Array(directory)
    yield Management(array)
    array.stop()
    shutil.rmtree(directory)
