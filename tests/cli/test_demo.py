"""`kview demo` lists the demos, and checks one: 0 if it holds, 1 if it does not, 2 if its file is wrong."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kview.cli.group import kview
from kview.errors import BadUse, ErrorKind

LESSON = """title = "Mine"
about = "What I teach."
minutes = 1
[world]
brokers = 3
racks = 1
[[steps]]
caption = "Stop broker 1."
press = "stop 1"
wait = "5s"
expect = ["broker 1 state is fenced within 5s"]
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the user's own demos."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "kview" / "demos"
    folder.mkdir(parents=True)
    return folder


def run(*words: str) -> Result:
    return CliRunner().invoke(kview, ["demo", *words], prog_name="kview")


def test_it_lists_kviews_demos_and_the_users(own: Path) -> None:
    (own / "mine.toml").write_text(LESSON)
    (own / "hang.toml").write_text(LESSON.replace("Mine", "Another hang"))
    listed = run()
    assert listed.exit_code == 0, listed.output
    lines = listed.output.splitlines()
    assert ["mine", "1", "min", "Mine"] in [line.split() for line in lines]
    assert "Another hang" in listed.output and "A broker hangs" not in listed.output
    assert "Find the fault" in listed.output and max(map(len, lines)) <= 80
    config = CliRunner().invoke(kview, ["config"], prog_name="kview")
    assert str(own) in config.output


def test_a_check_holds_or_says_what_does_not(own: Path) -> None:
    path = own / "mine.toml"
    path.write_text(LESSON)
    good = run("mine", "--check")
    assert (good.exit_code, good.output) == (0, "mine: ok (1 step, 1 s of the cluster's time)\n")
    path.write_text(LESSON.replace("is fenced", "is silent"))
    bad = run("mine", "--check")
    assert bad.exit_code == 1
    assert bad.output.splitlines() == [
        "step 1: expected broker 1 state is silent within 5s, but it was fenced",
        "mine: 1 expectation not met (1 step, 5 s of the cluster's time)",
    ]


def test_a_wrong_file_or_name_is_bad_use(own: Path) -> None:
    (own / "mine.toml").write_text(LESSON.replace("caption", "capton"))
    checked = run("mine", "--check")
    assert isinstance(checked.exception, BadUse)
    assert checked.exception.kind is ErrorKind.LESSON_KEY_MISSPELT
    (own / "mine.toml").write_text(LESSON.replace("stop 1", "stop 7"))
    checked = run("mine", "--check")
    assert isinstance(checked.exception, BadUse)
    assert checked.exception.kind is ErrorKind.LESSON_WRONG
    assert "there is no broker 7" in str(checked.exception.values)
    listed = run()
    assert listed.exit_code == BadUse.exit_code and "leader-crash" in listed.output
    unknown = run("nothing", "--check")
    assert isinstance(unknown.exception, BadUse) and unknown.exception.kind is ErrorKind.LESSON_UNKNOWN
    for words in (("leader-crush",), ("leader-crush", "--check")):
        misspelt = run(*words).exception
        assert isinstance(misspelt, BadUse) and misspelt.kind is ErrorKind.LESSON_MISSPELT
        assert str(misspelt.values["nearest"]).split(" or ")[0] == "leader-crash"
    elsewhere = run("nothing").exception
    assert isinstance(elsewhere, BadUse) and elsewhere.kind is ErrorKind.LESSON_UNKNOWN
    assert run("--check").exit_code == BadUse.exit_code
    assert run("hang").exit_code == BadUse.exit_code
