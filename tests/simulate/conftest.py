"""Fixtures that the tests of groups share."""

import pytest

from tests.simulate.groups_host import Offsets


@pytest.fixture
def offsets() -> Offsets:
    return Offsets()
