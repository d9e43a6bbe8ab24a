"""What the tests of logins share."""

from collections.abc import Iterator

import pytest

from kview.observe.loop import Loop
from tests.clocks import SetClock


@pytest.fixture
def loop() -> Iterator[Loop]:
    """An event loop that runs, with a clock that stands still."""
    loop = Loop(lambda: 0, SetClock())
    loop.start()
    yield loop
    loop.stop()
