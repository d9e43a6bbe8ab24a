"""The mark that the tour was shown."""

from pathlib import Path

from kview.school.first_run import TourMark


def test_the_tour_is_due_once_and_never_if_it_is_skipped(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "kview"
    assert TourMark(folder, skipped=False).is_due and not TourMark(folder, skipped=True).is_due
    assert not folder.exists(), "to ask writes nothing"
    first = TourMark(folder, skipped=False)
    first.done()
    first.done()
    assert not first.is_due and not TourMark(folder, skipped=False).is_due


def test_a_folder_that_cannot_be_written_shows_it_again(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    mark = TourMark(tmp_path / "file" / "kview", skipped=False)
    mark.done()
    assert mark.is_due
