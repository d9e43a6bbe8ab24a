"""Saved files: complete or not there, never over another one, and every failure is one sentence."""

import os
from pathlib import Path

import pytest

from kview.errors import KviewError
from kview.language.errors import sentence
from kview.run.saves import FolderSaves


def test_a_file_has_its_name_only_when_it_is_complete(tmp_path: Path) -> None:
    saving = FolderSaves(tmp_path / "new" / "saved").begin("kview-screen", "txt")
    saving.add("a\r\n")
    path = tmp_path / "new" / "saved" / "kview-screen.txt"
    assert path.read_bytes() == b""
    saving.add("żółw \udc80")
    assert saving.finish() == str(path)
    assert path.read_bytes() == "a\r\nżółw ?".encode()
    assert path.stat().st_mode & 0o077 == 0, "figures of a cluster are for its owner"


def test_a_second_file_of_the_name_gets_a_number_and_a_cancelled_one_leaves_nothing(tmp_path: Path) -> None:
    saves = FolderSaves(tmp_path)
    first, second = saves.begin("a", "csv"), saves.begin("a", "csv")
    assert first.finish() == str(tmp_path / "a.csv")
    second.add("x" * 100_000)
    second.cancel()
    assert os.listdir(tmp_path) == ["a.csv"]
    assert saves.begin("a", "csv").finish() == str(tmp_path / "a-2.csv")


def test_a_disk_that_fills_up_meanwhile_leaves_nothing(tmp_path: Path) -> None:
    saving = FolderSaves(tmp_path).begin("a", "csv")
    with open("/dev/full", "w") as full:
        saving._file.close()
        saving._file = full
        with pytest.raises(KviewError) as failed:
            saving.add("x" * 100_000)
        saving.cancel()
    assert "no space left on device" in sentence(failed.value.facts)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("folder", "why"), [("file", "file exists"), ("file/saved", "not a directory")])
def test_a_file_in_place_of_the_folder_is_one_sentence(tmp_path: Path, folder: str, why: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(KviewError) as failed:
        FolderSaves(tmp_path / folder).begin("a", "csv")
    assert why in sentence(failed.value.facts)
