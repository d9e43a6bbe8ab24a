"""Completion in a shell: its script for each shell, and what it completes, without slow imports."""

from pathlib import Path

import pytest

from tests.cli.commands import run_kview

HEAVY = ("pyspark", "pyarrow", "textual", "kafka", "numpy")


@pytest.mark.parametrize(
    ("shell", "says"),
    [
        ("bash", "complete -o nosort -F"),
        ("zsh", "#compdef kview"),
        ("fish", "complete --no-files --command kview"),
    ],
)
def test_each_shell_has_its_script(shell: str, says: str) -> None:
    done = run_kview(environment={"_KVIEW_COMPLETE": f"{shell}_source"})
    if "Couldn't detect Bash version" in done.stderr:
        pytest.skip("bash is too old, or not there")
    assert done.returncode == 0, done.stderr
    assert says in done.stdout and f"_KVIEW_COMPLETE={shell}_complete" in done.stdout


@pytest.mark.parametrize(
    ("shell", "words", "at", "completed"),
    [
        ("bash", "kview ", "1", {"connect", "replay", "serve"}),
        ("bash", "kview se", "1", {"serve"}),
        ("bash", "kview serve --br", "2", {"--brokers"}),
        ("bash", "kview connect a:1 --format ", "4", {"text", "json"}),
        ("zsh", "kview co", "1", {"connect"}),
        ("fish", "kview re", "re", {"replay", "report"}),
    ],
)
def test_what_is_completed(shell: str, words: str, at: str, completed: set[str]) -> None:
    done = run_kview(
        environment={
            "_KVIEW_COMPLETE": f"{shell}_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": at,
            "PYTHONPROFILEIMPORTTIME": "1",
        }
    )
    assert done.returncode == 0, done.stderr
    found = {word for line in done.stdout.splitlines() for word in line.replace("\t", ",").split(",")}
    assert completed <= found
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "kview.cli.group" in loaded, "imports are listed"
    assert not [name for name in loaded if name.split(".")[0] in HEAVY]


def test_kept_recordings_and_themes_are_completed(tmp_path: Path) -> None:
    for name in ("friday", "monday", "broken"):
        folder = tmp_path / "kview" / "recordings" / name
        folder.mkdir(parents=True)
        if name != "broken":
            (folder / "manifest.json").write_text("{}")
    assert {"friday", "monday"} <= completed("kview replay ", 2, tmp_path) - {"broken"}
    assert "broken" not in completed("kview replay ", 2, tmp_path)
    assert {"friday"} == completed("kview replay fr", 2, tmp_path) & {"friday", "monday"}
    assert {"dark", "light"} <= completed("kview connect a:1 --theme ", 4, tmp_path)
    assert {"dark"} == completed("kview --simulate --theme da", 3, tmp_path) & {"dark", "light"}


def completed(words: str, at: int, state: Path) -> set[str]:
    """What bash is offered."""
    environment = {
        "_KVIEW_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(at),
        "XDG_STATE_HOME": str(state),
        "PYTHONPROFILEIMPORTTIME": "1",
    }
    done = run_kview(environment=environment)
    assert done.returncode == 0, done.stderr
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert not [name for name in loaded if name.split(".")[0] in HEAVY]
    return {word for line in done.stdout.splitlines() for word in line.split(",")}
