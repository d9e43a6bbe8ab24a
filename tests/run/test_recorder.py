"""The folders that a run can record to."""

from pathlib import Path

import pytest

from kview.errors import BadUse
from kview.run.recorder import check_target
from kview.run.settings import Record
from tests.errors import raises_saying


@pytest.mark.parametrize("name", ["x" * 300, f"{'x' * 300}/r"])
def test_a_folder_that_cannot_be_looked_into_cannot_be_made(tmp_path: Path, name: str) -> None:
    with raises_saying(BadUse, r"cannot be created \(File name too long\): record to another folder"):
        check_target(Record(tmp_path / name))
