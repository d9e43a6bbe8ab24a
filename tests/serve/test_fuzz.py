"""Mutated requests of every API and version, batches with the right checksum over anything, and time that
passes: nothing fails, nobody else waits.

`--fuzz-frames 1000000` sends more of them.
"""

import logging

import pytest

from tests.serve.fuzz import Fuzz

FRAMES_PER_SEED = 5_000

FOUND: list[int] = []
"""Seeds that once ended the cluster or closed a connection with a traceback."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        seeds = max(1, metafunc.config.getoption("--fuzz-frames") // FRAMES_PER_SEED)
        metafunc.parametrize("seed", [*FOUND, *range(1, 1 + seeds)])


def test_no_frame_fails_and_others_are_served(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        outcome = Fuzz(seed).run(FRAMES_PER_SEED)
    seconds, slowest = outcome.slowest
    print(f"seed {seed}: {outcome.answered} answered, {outcome.refused} refused, {seconds:.2f} s: {slowest}")
    assert outcome.failures == []
    assert [record.message for record in caplog.records] == []
    assert outcome.answered > FRAMES_PER_SEED // 4, "most frames are not just refused"
