"""What a test asks of an error: its class, and what its words say."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kview.errors import KviewError
from kview.language.errors import sentence


@contextmanager
def raises_saying(expected: type[KviewError], pattern: str) -> Iterator[pytest.ExceptionInfo[KviewError]]:
    """Like `pytest.raises`, with `pattern` looked for in the sentence that the error becomes."""
    with pytest.raises(expected) as caught:
        yield caught
    said = sentence(caught.value)
    assert re.search(pattern, said, re.DOTALL), f"{pattern!r} is not in {said!r}"
