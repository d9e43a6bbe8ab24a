"""Choices kept for a cluster: what is restored, and what happens to a file that cannot be used."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kview.errors import ErrorKind, KviewError
from kview.model.choices import KeptChoices, KeptSort
from kview.run.memory import ChoiceFiles
from kview.tui.options import Sort
from kview.tui.widgets.table import Table
from tests.tui.harness import CRASH, dashboard, press, running, state, text, until

CHOICES = KeptChoices("invoice", {"partitions": KeptSort("watermark", True)}, "groups")


@pytest.mark.parametrize("cluster_id", ["abc", "../../etc/passwd", "", "x" * 5000, "\x00\n"])
def test_what_is_kept_is_recalled_for_its_cluster_alone(tmp_path: Path, cluster_id: str) -> None:
    files = ChoiceFiles(tmp_path / "choices", fresh=False)
    assert files.recall(cluster_id) is None
    files.keep(cluster_id, CHOICES)
    assert files.recall(cluster_id) == CHOICES
    assert files.recall(cluster_id + "2") is None
    assert ChoiceFiles(tmp_path / "choices", fresh=True).recall(cluster_id) is None
    assert [path.suffix for path in (tmp_path / "choices").iterdir()] == [".json"]


@given(st.binary(max_size=200))
def test_any_damage_is_said_or_harmless(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("choices")
    files = ChoiceFiles(folder, fresh=False)
    files.keep("c", CHOICES)
    (path,) = folder.iterdir()
    path.write_bytes(data)
    try:
        assert isinstance(files.recall("c"), KeptChoices)
    except KviewError as error:
        assert error.kind is ErrorKind.CHOICES_DAMAGED


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(KviewError) as caught:
        ChoiceFiles(tmp_path / "file" / "choices", fresh=False).keep("c", CHOICES)
    assert caught.value.kind is ErrorKind.CHOICES_NOT_KEPT


@running
async def choices_survive_a_run(folder: Path) -> None:
    async with dashboard(state(CRASH), memory=ChoiceFiles(folder, fresh=False)) as (app, pilot):
        await press(pilot, ["slash", *"invoice", "enter"])
        app.sort_by(app.screen.query_one("#partitions", Table), "watermark")
        await press(pilot, ["5"])
        await until(pilot, lambda: app.current_mode == "groups", "the screen")
    async with dashboard(state(CRASH), memory=ChoiceFiles(folder, fresh=False)) as (app, pilot):
        await until(pilot, lambda: app.current_mode == "groups", "the screen of the last run")
        await until(pilot, lambda: "filter /invoice" in text(app), "the chip")
        assert app.options.sort("partitions") == Sort("watermark", True)
    async with dashboard(state(CRASH), memory=ChoiceFiles(folder, fresh=True)) as (app, pilot):
        assert app.current_mode == "overview" and not app.options.filter and not app.options.sorts


def test_filter_order_and_screen_survive_a_run(tmp_path: Path) -> None:
    choices_survive_a_run(tmp_path)


@running
async def damage_is_said_once(folder: Path) -> None:
    files = ChoiceFiles(folder, fresh=False)
    files.keep(state(CRASH).snapshot.observation.cluster_id, CHOICES)
    (path,) = folder.iterdir()
    path.write_text("{")
    async with dashboard(state(CRASH), memory=files) as (app, pilot):
        assert "is damaged" in text(app) and not app.options.filter
        await press(pilot, ["5"])
    assert files.recall(state(CRASH).snapshot.observation.cluster_id) == KeptChoices(screen="groups")


def test_a_damaged_file_is_said_and_written_again(tmp_path: Path) -> None:
    damage_is_said_once(tmp_path)
