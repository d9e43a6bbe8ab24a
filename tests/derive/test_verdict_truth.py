"""What is said about a group that falls behind is true of its figures, on the engine."""

import pytest

from kview.derive.view import Reason
from kview.language.verdicts import of_offset
from kview.school.acts import act
from kview.school.checking import Stage, stage_of
from kview.school.files import lesson_of


def unread_s(stage: Stage, row: int) -> tuple[float, bool]:
    """How old a partition's oldest unread record is, in seconds, and whether it may be older."""
    figures = stage.moment.view.offsets
    return figures.behind_ms[row] / 1000, bool(figures.behind_is_bound[row])


@pytest.mark.quick(1)
@pytest.mark.parametrize("watched_s", [10, 60, 75])
def test_a_member_that_dies_makes_nobody_claim_more_than_was_seen(watched_s: int) -> None:
    """The partitions of a member that died have been unread for less than a minute, and were read to the end
    within that minute."""
    stage = stage_of(lesson_of("groups"))
    stage.watch(watched_s * 1_000)
    stage.apply(act("kill-member packing"))
    lags, said = [], set()
    for second in range(1, 45):
        view = stage.on().view
        lags.append(view.offsets.lag)
        for row, reason in enumerate(view.offsets.reason.tolist()):
            words = of_offset(view.offsets, row)
            said.add(reason)
            assert "minute" not in words, (second, words, unread_s(stage, row))
            if reason is Reason.LAG_NOT_FALLING:
                assert lags[-1][row] > lags[0][row], words
    assert {Reason.LAG_NOT_FALLING, Reason.STILL} <= said
