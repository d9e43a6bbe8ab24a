"""Log directories: what a broker answers about them, and a directory that fails while its broker runs."""

from typing import Any

import numpy as np
import pytest
from kafka.protocol.admin import DescribeLogDirsResponse

from kview.model.failures import STORAGE_ERROR
from kview.model.snapshot import LogDirs, empty
from kview.model.units import UNKNOWN
from kview.observe import log_dirs
from kview.observe.causes import Refused
from kview.observe.state import NO_TOPICS, nothing_read

GB = 1_000_000_000
NOT_AUTHORIZED = 31


def answer(*folders: tuple[str, int, int, int], error: int = 0) -> Any:
    """An answer with directories of (path, error, total bytes, usable bytes), of which none has replicas."""
    made = [
        DescribeLogDirsResponse.DescribeLogDirsResult(
            version=4, error_code=code, log_dir=path, topics=[], total_bytes=total, usable_bytes=usable
        )
        for path, code, total, usable in folders
    ]
    return DescribeLogDirsResponse(version=4, throttle_time_ms=0, error_code=error, results=made)


def test_an_answer_takes_the_place_of_the_broker_s_earlier_one_alone() -> None:
    known = log_dirs.with_answer(empty(LogDirs), 1, answer(("/b", 0, 9 * GB, 5 * GB)), 1_000)
    known = log_dirs.with_answer(known, 0, answer(("/b", 0, -1, -1), ("/a", 0, 2 * GB, GB)), 2_000)
    known = log_dirs.with_answer(known, 1, answer(("/b", STORAGE_ERROR, -1, -1)), 3_000)
    assert known.broker.tolist() == [0, 0, 1] and known.path.tolist() == ["/a", "/b", "/b"]
    assert known.error_code.tolist() == [0, 0, STORAGE_ERROR]
    assert known.total_bytes.tolist() == [2 * GB, UNKNOWN, UNKNOWN]
    assert known.usable_bytes.tolist() == [GB, UNKNOWN, UNKNOWN]
    assert known.received_ms.tolist() == [2_000, 2_000, 3_000]
    assert {known.broker.dtype, known.error_code.dtype} == {np.dtype(np.int32)}


def read(told: Any) -> int:
    return log_dirs.read_sizes(nothing_read(NO_TOPICS), NO_TOPICS, 0, told)


def test_a_failed_directory_is_an_answer_and_a_broker_that_may_not_tell_gives_none() -> None:
    assert read(answer(("/a", 0, GB, GB), ("/b", STORAGE_ERROR, -1, -1))) == 0
    for told in (answer(error=NOT_AUTHORIZED), answer(("", NOT_AUTHORIZED, -1, -1))):
        with pytest.raises(Refused):
            read(told)
