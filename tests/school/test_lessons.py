"""Every lesson is played on the engine, and what it says must happen. A lesson that is wrong says where."""

from pathlib import Path

import msgspec
import pytest

from kview.errors import BadUse, ErrorKind
from kview.language.errors import sentence
from kview.school.acts import LOOKING, PRESSES
from kview.school.captions import filled
from kview.school.checking import Played, play, stage_of
from kview.school.expectations import Operator, expectation
from kview.school.figures import NotAFigure
from kview.school.files import lesson_files, lesson_of, read_lesson
from kview.school.lesson import Lesson, Step
from kview.tui.keys import ACTIONS
from tests.language.turns import banned_turns

OWN = list(lesson_files())
LONGEST = 300
"""The most characters of a caption: four lines of 76 columns."""
MOST_MS = 180_000
"""A lesson's own time, without the time that people need to read."""
COURSE = """topics keys hot-key acks replication isr follower-crash leader-crash stop-or-crash hang committed
min-insync placement rack-loss rack-blind last-replica controller-crash quorum-loss bootstrap groups
rebalances delivery exactly-once retention zookeeper share-groups split-network lost-disk"""


def failures(lesson: Lesson) -> list[str]:
    """What a lesson expected and did not happen."""
    return [
        f"{one.expected}: {one.seen}{one.refused or ''}" for played in play(lesson) for one in played.failed
    ]


def test_there_is_a_lesson_on_every_subject_of_a_course() -> None:
    assert set(OWN) == set(COURSE.split())


@pytest.mark.quick(6)
@pytest.mark.parametrize("name", OWN)
def test_a_lesson_is_true(name: str) -> None:
    lesson = lesson_of(name)
    steps: list[Played] = list(play(lesson))
    assert [one.failed for one in steps] == [()] * len(lesson.steps)
    assert sum(one.took_ms for one in steps) <= MOST_MS
    assert not any("–" in one.caption for one in steps), "a caption names a figure that is not known"
    assert any(step.question for step in lesson.steps) or name == "topics", "it asks before it tells"
    for step in lesson.steps:
        assert not (step.press or step.does) or step.expect, "what is done has a consequence"


@pytest.mark.parametrize("name", OWN)
def test_a_lesson_is_in_plain_english(name: str) -> None:
    lesson = lesson_of(name)
    said = [lesson.title, lesson.about, *(step.caption for step in lesson.steps)]
    for step in lesson.steps:
        if step.question is not None:
            said += [step.question.text, step.question.because, *step.question.answers]
    assert [(text, turns) for text in said if (turns := banned_turns(text))] == []
    assert all(len(text) <= LONGEST for text in said), "it fits under an 80-column screen"


@pytest.mark.parametrize("name", ["leader-crash", "groups", "rebalances", "retention"])
def test_a_lesson_does_not_hold_without_its_faults(name: str) -> None:
    lesson = lesson_of(name)
    idle = tuple(msgspec.structs.replace(step, press="", does=()) for step in lesson.steps)
    assert failures(msgspec.structs.replace(lesson, steps=idle))


def test_a_failure_names_step_expectation_and_what_was_seen() -> None:
    step = Step(caption="Look.", expect=("broker 4 state is fenced within 2s",), press="crash 4")
    lesson = Lesson(title="t", about="a", minutes=1, steps=(Step(caption="First."), step))
    first, second = play(lesson)
    (failed,) = second.failed
    assert not first.failed
    assert (failed.step, failed.expected, failed.seen) == (2, step.expect[0], "silent")


def test_what_the_cluster_refuses_is_a_failure() -> None:
    step = Step(caption="Look.", does=("pause nobody",))
    (played,) = play(Lesson(title="t", about="a", minutes=1, steps=(step,)))
    (failed,) = played.failed
    assert failed.refused is not None and failed.refused.kind is ErrorKind.GROUP_UNKNOWN


def test_throughout_is_judged_at_every_observation() -> None:
    step = Step(caption="Look.", press="stop 4", wait="4s", expect=("broker 4 state is up throughout",))
    (played,) = play(Lesson(title="t", about="a", minutes=1, steps=(step,)))
    assert [one.seen for one in played.failed] == ["fenced"]


def test_captions_show_figures_as_people_read_them() -> None:
    stage = stage_of(lesson_of("placement"))
    text = filled("{broker 4 leads}, {partition invoice-0 replicas}, {group nobody lag}.", stage.moment)
    assert text == "2, 0, 3, 1, –."


def test_operators() -> None:
    def holds(text: str, then: object, now: object) -> bool:
        return expectation(f"broker 4 leads {text}").holds(then, now)  # type: ignore[arg-type]

    assert holds("is 2", 0, 2) and not holds("is 2", 2, 3) and not holds("is 2", 2, None)
    assert holds("is-not 2", 2, 3) and not holds("is-not 2", 3, 2) and not holds("is-not 2", 3, None)
    assert holds(">= 2", 0, 2) and not holds(">= 2", 0, 1) and not holds(">= 2", 0, None)
    assert holds("<= 2s", 0, 2000) and not holds("<= 2s", 0, 2001)
    assert holds("grows", 1, 2) and not holds("grows", 2, 2) and not holds("grows", None, 2)
    assert holds("falls", 2, 1) and holds("changes", 1, 2)
    assert holds("stays", 1, 1) and not holds("stays", 1, 2)
    assert holds("has 1 2", (), (1, 2, 3)) and not holds("has 1 4", (), (1, 2, 3))
    assert holds("lacks 4", (), (1, 2)) and not holds("lacks 1 4", (), (1, 2))
    assert holds("is 1 2", (), (1, 2)) and holds("is none", (), ()) and holds("is unknown", 0, None)
    assert holds("is none", 4, -1) and holds("is yes", False, True) and not holds("is no", False, True)
    assert expectation("broker 4 leads stays").throughout
    assert [one.value for one in Operator] == ["is", "is-not", ">=", "<=", "has", "lacks", "grows", "falls", "changes", "stays"]  # fmt: skip  # noqa: E501


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("brocker 4 state is up", "did you mean broker?"),
        ("broker 4 stat is up", "did you mean state?"),
        ("broker", "write broker ID"),
        ("broker 4 state", "write FIGURE"),
        ("broker 4 state was up", "write FIGURE"),
        ("broker 4 state stays up", "write FIGURE"),
        ("broker 4 leads >= many", "write 100 or 12s"),
        ("broker 4 state is up within soon", "write 500ms, 12s or 2m"),
        ("partition invoice-0 end@x grows", "write a number, such as end@4"),
    ],
)
def test_a_wrong_expectation_says_what_would_be_right(text: str, hint: str) -> None:
    with pytest.raises(NotAFigure) as raised:
        expectation(text)
    assert raised.value.hint.startswith(hint)


GOOD = """title = "t"
about = "a"
minutes = 1
[world]
brokers = 3
racks = 1
[[steps]]
caption = "Look at broker 1."
look = ["broker 1"]
press = "crash 1"
wait = "5s"
expect = ["broker 1 state is silent within 5s"]
"""


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('title = "t"', 'tittle = "t"', "line 1: there is no key named tittle: did you mean title?"),
        ("racks = 1", "rocks = 1", "line 6: there is no key named rocks: did you mean racks?"),
        ("look =", "zzz =", "line 9: there is no key named zzz: available keys: title, about"),
        ("minutes = 1", "minutes = 9", "line 3: Expected `int` <= 3: correct the value of minutes"),
        ("brokers = 3", 'brokers = "x"', "line 5: Expected `int`, got `str`: correct the value of brokers"),
        ("racks = 1", "racks = 9", "line 4: --racks 9 is more than --brokers 3"),
        ("state is silent", "state ist silent", "line 12: 'ist silent' does not compare broker 1 state"),
        (
            "crash 1",
            "krash 1",
            "line 10: no key has an action named 'krash': did you mean crash?",
        ),
        ('["broker 1"]', '["panel grups"]', "line 9: there is no panel named 'grups'"),
        ('"5s"', '"soon"', "line 11: 'soon' is not a duration: write 12s"),
        ("Look at broker 1.", "One. Two. Three. Four.", "line 8: the caption has no sentence, or too many"),
        ("Look at broker 1.", "{broker 1 stat}.", "line 8: there is no figure of a broker named 'stat'"),
        ("minutes = 1", "minutes", "is not TOML (line 3, column 8): correct that line"),
        ("racks = 1", "racks = 0", "line 6: Expected `int` >= 1: correct the value of racks"),
        ("racks = 1", 'producers = ["a:b:c"]', "line 6: there is no topic named 'b'"),
        ("racks = 1", 'producers = ["a:invoice:inf"]', "line 6: 'inf' is not a number"),
        ('["broker 1"]', '["broker 7"]', "line 9: there is no broker 7: the brokers are 0 to 2"),
        ('["broker 1"]', '["broker one"]', "line 9: there is no broker one"),
        (
            '["broker 1"]',
            '["partition invoice-99"]',
            "line 9: there is no partition invoice-99: the last one",
        ),
        ('["broker 1"]', '["partition invoice"]', "line 9: 'invoice' is not a partition"),
        (
            '["broker 1"]',
            '["group biling lag"]',
            "line 9: there is no group named 'biling': did you mean billing?",
        ),
        ("crash 1", "crash 9", "line 10: there is no broker 9: the brokers are 0 to 2"),
        ("crash 1", "lose-rack R7", "line 10: there is no rack named 'R7'"),
        ("Look at broker 1.", "x" * 600 + ".", "line 8: the caption has 601 characters: write at most 400"),
        ('caption = "Look at broker 1."', "", "line 7: caption is missing: add it"),
        ('title = "t"', 'title = ""', "line 1: title is empty: write a sentence"),
        ('title = "t"', f'title = "{"x" * 249}"', "line 1: title is too long: write at most 60 characters"),
        ("Look at broker 1.", "Look\\u001b[2J.", "line 7: the text has a character that cannot be shown"),
        ("Look at broker 1.", "{broker ² leads}.", "line 8: there is no broker ²"),
        ("crash 1", "  ", "line 10: no key has an action named ''"),
        ('"5s"', '"99999m"', "line 11: '99999m' is too long: write at most 600s"),
        ("within 5s", "within 99999m", "line 12: '99999m' is too long"),
        ("racks = 1", 'producers = ["a:invoice:1:keys=999999999"]', "line 6: '999999999' is out of range"),
        (
            "racks = 1",
            'groups = ["a:invoice:1:commit=0"]',
            "line 6: '0' is out of range: write a number from 1",
        ),
        ("racks = 1", 'groups = ["a:invoice:1", "a:invoice:2"]', "line 6: there are two groups named 'a'"),
        ("racks = 1", f'groups = ["{"y" * 90_000}"]', "yyyy…yyyy"),
        ("minutes = 1", f"minutes = {'[' * 5_000}", "is not TOML (it is nested too deeply)"),
        (GOOD[-30:], "", "is not TOML (line 12: something is not closed"),
        (
            "wait =",
            'question = {text = "Q?", answers = ["a", "b"], right = 3, because = "So."}\nwait =',
            "right is not the number of an answer: write 1 to 2",
        ),
        (GOOD[GOOD.index("[[steps]]") :], "", "line 1: steps is missing: add it"),
        (
            GOOD[GOOD.index("[[steps]]") :],
            '[[steps]]\ncaption = "A."\n' * 40,
            "line 7: the number of steps is wrong: write at most 30",
        ),
        (
            "[[steps]]",
            '[[steps]]\ncaption = "A."\ncompare = []\n[[steps]]\ncompare = 5',
            "line 11: Expected `array`, got `int`: correct the value of compare",
        ),
        (
            "[[steps]]",
            '[[steps]]\ncaption = "Look at broker 1."\n[[steps]]\nlok = []',
            "line 10: there is no key named lok: did you mean look?",
        ),
    ],
)
def test_a_wrong_file_says_where(tmp_path: Path, before: str, after: str, said: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    read_lesson(path)
    path.write_text(GOOD.replace(before, after, 1))
    with pytest.raises(BadUse) as raised:
        read_lesson(path)
    assert sentence(raised.value).startswith(str(path))
    assert said in sentence(raised.value)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["incident.toml"], "kview's own demo has the name incident: rename the file"),
        (["01-mine.toml", "02-mine.toml"], "01-mine.toml has the same name, mine: rename one of the files"),
        (["\x1b[2J.toml"], "is not a name for a demo: name the file with letters"),
        ([f"{'x' * 200}.toml"], "is not a name for a demo"),
    ],
)
def test_a_lesson_that_nothing_could_start_says_so(tmp_path: Path, names: list[str], said: str) -> None:
    for name in names:
        (tmp_path / name).write_text(GOOD)
    with pytest.raises(BadUse) as raised:
        read_lesson(tmp_path / names[-1])
    assert said in sentence(raised.value)


def test_a_link_that_leads_to_itself_says_so(tmp_path: Path) -> None:
    (path := tmp_path / "mine.toml").symlink_to(path)
    with pytest.raises(BadUse) as raised:
        read_lesson(path)
    assert "symbolic links" in sentence(raised.value)


def test_keys_that_lessons_press_are_actions_of_the_dashboard() -> None:
    assert {*PRESSES, *LOOKING} <= {action.name for action in ACTIONS}


def test_a_lesson_is_the_same_each_time() -> None:
    assert list(play(lesson_of("hang"))) == list(play(lesson_of("hang")))
