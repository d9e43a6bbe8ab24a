"""Where a step is shown, and how its caption makes room for what has to be read. Without a screen."""

from types import SimpleNamespace
from typing import cast

import pytest

from kview.school.expectations import expectation
from kview.school.files import lesson_files, lesson_of
from kview.school.look import mark
from kview.school.shows.captions import dial, sentences
from kview.school.shows.places import Place, Subjects, first_subjects, place
from kview.school.watching import Watch
from kview.school.words.demo import waiting
from kview.tui.text import content
from kview.tui.widgets.caption import Caption, Paragraph, caption_lines, caption_rows

ABOUT = Subjects("invoice-0", "billing")


@pytest.mark.parametrize(
    ("look", "width", "shown"),
    [
        (["partition invoice-0 rate"], 80, Place("partitions")),
        (
            ["panel partitions", "partition invoice-0 rate", "partition invoice-5 rate"],
            80,
            Place("partitions"),
        ),
        (["group billing lag"], 200, Place("groups")),
        (["panel groups", "group billing"], 80, Place("groups")),
        (["group billing", "position billing invoice-0 committed"], 80, Place("overview", "", "billing")),
        (["panel members", "member billing-0 assigned"], 80, Place("overview", "", "billing")),
        (["panel placement", "partition invoice-6"], 80, Place("placement")),
        (["panel header"], 80, None),
    ],
)
def test_a_step_is_shown_where_there_is_room_for_what_it_names(
    look: list[str], width: int, shown: Place | None
) -> None:
    assert place([mark(text) for text in look], False, ABOUT, width) == shown


def test_a_first_step_knows_the_group_that_a_later_one_names() -> None:
    steps = [["panel members"], ["group billing"], ["group other", "partition invoice-3"]]
    assert first_subjects([[mark(text) for text in step] for step in steps]) == ("invoice-3", "billing")


@pytest.mark.parametrize(("cells", "height"), [(60, 15), (80, 24), (120, 40)])
def test_every_question_can_be_read_whole(cells: int, height: int) -> None:
    for name in lesson_files():
        for step in lesson_of(name).steps:
            if (question := step.question) is None:
                continue
            asked = [
                Paragraph(question.text, sign="?"),
                *(Paragraph(text, sign=" 1") for text in question.answers),
            ]
            caption = Caption("DEMO", "", (Paragraph(step.caption), *asked))
            rows = caption_rows(caption, cells, height)
            told = " ".join(content(each).strip() for each in caption_lines(caption, cells, rows, False))
            assert question.answers[-1] in told, (name, told)
            assert rows <= height * 6 // 10


def test_a_caption_has_short_lines_on_a_wide_screen_and_whole_names() -> None:
    caption = Caption("DEMO", "", (Paragraph("the producer invoice-service " * 20),))
    for cells, most in ((200, 114), (80, 80)):
        lines = [content(each).rstrip() for each in caption_lines(caption, cells, 30, False)[1:]]
        assert max(map(len, lines)) <= most
        assert not any(line.endswith("invoice-") for line in lines)


def test_a_long_caption_gives_way_to_the_key_below_it() -> None:
    caption = Caption("DEMO", "", (Paragraph("word " * 200), Paragraph("press K to crash broker 4")))
    rows = caption_rows(caption, 80, 24)
    lines = [content(each) for each in caption_lines(caption, 80, rows, False)]
    assert "press K to crash broker 4" in lines[-1]
    assert lines[-2].rstrip().endswith("…")


def test_bounds_of_one_figure_make_one_sentence() -> None:
    texts = [
        "partition a-0 rate >= 60",
        "partition a-0 rate <= 140",
        "topic a rate >= 9000",
        "incident elected <= 11s",
    ]
    assert sentences([expectation(text) for text in texts]) == [
        "the rate of a-0 is between 60 and 140 records/s",
        "the rate of a-0 is between 60 and 140 records/s",
        "the rate of a is at least 9,000 records/s",
        "other brokers led its partitions within 11 s",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cluster no-leader is 0", "every partition has a leader"),
        ("topic a partitions is 3", "a has 3 partitions"),
        ("topic a frozen is 0", "no watermarks of a stand still"),
        ("topic a frozen >= 1", "some watermarks of a stand still"),
        ("topic a silent-leader is 1", "1 partition of a is led by a silent broker"),
        ("partition a-0 behind@2 >= 1000", "broker 2 has at least 1,000 records of a-0 still to copy"),
        ("partition a-0 replicas is 0 3 1", "the copies of a-0 are on brokers 0, 3, 1"),
        ("partition a-0 leader is none", "a-0 has no leader"),
        ("producer p waiting <= 500", "at most 500 records of the producer p wait for an acknowledgement"),
        ("broker 2 error is silent", "broker 2 accepts connections but does not answer"),
        ("group b verdict is-not blocked", "b is not blocked"),
        ("partition a-0 rate is-not unknown", "the rate of a-0 is known"),
        (
            "cluster findings has quorum_silent",
            "the headline says that there is no word from the controllers",
        ),
        ("cluster controller is-not 101", "the active controller is not 101 any more"),
    ],
)
def test_what_has_come_true_is_said_in_plain_words(text: str, said: str) -> None:
    assert sentences([expectation(text)]) == [said]


def test_a_condition_has_a_dial_that_fills_as_its_time_passes() -> None:
    watch = cast(Watch, SimpleNamespace(began_ms=1_000))
    passed = (0, 2_999, 3_000, 8_999, 20_000)
    signs = [dial(watch, 1_000 + passed_ms, 9_000 - passed_ms) for passed_ms in passed]
    assert signs == ["◔", "◔", "◑", "◕", "◕"]
    awaited = [("A is so", 6_000), ("B is so", 6_000), ("C is so", -1)]
    assert waiting(awaited) == "6 s until A is so and B is so · until C is so"
