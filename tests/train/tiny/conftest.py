"""What the tests of the embedded policy share."""

import pytest


@pytest.fixture(scope="session")
def pool(sandbox):
    """The sandbox of all tests, by the name that stands in for a pool of workers here."""
    return sandbox
