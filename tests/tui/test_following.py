"""A topic that is followed on the screen: what is new, how much of it, and what is in its way."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest
from msgspec.structs import replace

from kview.derive.following import (
    A_NODE,
    BYTES_PER_SECOND,
    MOST_KEPT,
    MOST_KEPT_BYTES,
    POLL_S,
    Following,
    Gap,
)
from kview.language import tail as words
from kview.model.decoded import Decoded, DecodedRecord, Items, Node, SchemaId
from kview.model.failures import Cause, FailureKind
from kview.model.inspection import (
    A,
    Cost,
    Damage,
    DamageKind,
    InspectionFailure,
    InspectionFailureKind,
    Isolation,
    Payload,
    Question,
)
from kview.model.tail import Held, TailAnswer, TailRequest
from kview.model.units import UNKNOWN
from kview.model.where import Candidate
from kview.where.parse import parse
from tests.tui.harness import HEALTHY, FakeFeed, dashboard, drawn_text, press, running, state, text, until
from tests.tui.inspecting import COUNT, FIRST, NOW_MS, FakeInspector, record
from tests.tui.test_screens import agrees

STEP_MS = 500


def candidates(first: int, count: int, value: bytes = b'{"n": 1}') -> tuple[Candidate, ...]:
    """Records of one partition."""
    return tuple(Candidate(3, record(FIRST + n, b"k-%d" % n, value)) for n in range(first, first + count))


def answer(request: TailRequest, number: int, **more: Any) -> TailAnswer:
    """The answer of a number, half a second after the one before."""
    fields: dict[str, Any] = {"positions": ((3, FIRST + 2_200 * number),), "cost": Cost(6, 60_000)}
    fields["asked_ms"] = NOW_MS + STEP_MS * number
    return TailAnswer(request, **(fields | more))


class Tails(FakeInspector):
    """Answers what `make` says, at most so often."""

    def __init__(
        self, make: Callable[[TailRequest, int], TailAnswer], most: int = 1_000, **more: Any
    ) -> None:
        super().__init__(**more)
        self._make = make
        self._most = most
        self._tails = 0

    async def ask(self, question: Question[A]) -> A:
        """Return the next answer."""
        if not isinstance(question, TailRequest):
            return await super().ask(question)
        if self._tails >= self._most:
            await asyncio.Event().wait()
        self.asked.append(question)
        self._tails += 1
        return cast(A, self._make(question, self._tails - 1))


def busy(request: TailRequest, number: int) -> TailAnswer:
    """2,200 records in half a second, of which 100 are shown."""
    return answer(
        request, number, records=candidates(100 * number, 100 if number else 0), passed=2_200 if number else 0
    )


@running
async def test_the_newest_records_and_how_many_they_are_of() -> None:
    inspector = Tails(busy)
    async with dashboard(state(HEALTHY), inspector=inspector, size=(120, 40)) as (app, pilot):
        app.go.records("invoice", 3)
        await press(pilot, ["w"])
        await until(
            pilot,
            lambda: "RECORDS invoice FOLLOWING · 200 of 4,400/s shown · 120 kB/s fetched" in text(app),
            "rates",
        )
        last = FIRST + 100 * len(inspector.asked) - 1
        assert f"{last:,}" in text(app).splitlines()[-4]  # the newest is the last, and selected
        assert all(isinstance(each, TailRequest) and each.topic == "invoice" for each in inspector.asked)
        assert inspector.asked[1].positions == ((3, FIRST),)  # type: ignore[attr-defined]
        await press(pilot, ["up", "enter"])
        await until(pilot, lambda: "RECORD invoice-3 offset" in text(app), "the record")
        await press(pilot, ["escape", "escape"])
        await until(
            pilot, lambda: "not followed any more" in text(app) and "FOLLOWED" in text(app), "the end"
        )
        asked = len(inspector.asked)
        await press(pilot, ["x"])
        assert len(inspector.asked) == asked and "as text" in text(app)


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
def test_screens_of_a_topic_that_is_followed(size: tuple[int, int], request: pytest.FixtureRequest) -> None:
    hidden = Payload(b'{"id": 1, "email": "<masked>"}', 30, masked=True)

    def make(request: TailRequest, number: int) -> TailAnswer:
        shown = [
            each._replace(record=replace(each.record, value=hidden)) for each in candidates(3 * number, 3)
        ]
        held = (Held(5, FIRST, FIRST + 96),)
        return answer(request, number, records=tuple(shown), passed=2_000, skipped=200, held=held)

    async def run() -> None:
        async with dashboard(state(HEALTHY), inspector=Tails(make, most=3), size=size) as (app, pilot):
            app.go.records("invoice", 3)
            await press(pilot, ["w"])
            await until(pilot, lambda: f"{FIRST + 8:,}" in text(app), "three answers")
            name = f"following-{size[0]}x{size[1]}"
            agrees(name, drawn_text(app), bool(request.config.getoption("--update-golden")))

    running(run)()


@running
async def test_paused_it_asks_for_nothing_and_says_what_passed() -> None:
    def make(request: TailRequest, number: int) -> TailAnswer:
        return answer(request, number, records=candidates(3 * number, 3 if number < 3 else 0))

    inspector = Tails(make)
    async with dashboard(state(HEALTHY), inspector=inspector, size=(120, 40)) as (app, pilot):
        app.go.records("invoice", 3)
        await press(pilot, ["w"])
        await until(pilot, lambda: len(inspector.asked) > 1, "an answer")
        await press(pilot, ["space"])
        await until(
            pilot, lambda: "PAUSED" in text(app) and "paused, nothing is read" in text(app), "the pause"
        )
        assert "space go on" in text(app)
        asked = len(inspector.asked)
        await pilot.pause(2 * POLL_S)
        assert len(inspector.asked) == asked
        await press(pilot, ["space"])
        await until(pilot, lambda: "records passed while it was paused" in text(app), "the gap")
        again = inspector.asked[asked]
        assert isinstance(again, TailRequest) and again.positions == ((3, UNKNOWN),)
        assert "FOLLOWING" in text(app)


@running
async def test_behind_another_tab_nothing_is_asked_for() -> None:
    inspector = Tails(busy)
    async with dashboard(state(HEALTHY), inspector=inspector, size=(120, 40)) as (app, pilot):
        app.go.topic("invoice", 3)
        await pilot.pause()
        await press(pilot, ["m", "w"])
        await until(pilot, lambda: len(inspector.asked) > 1, "an answer")
        await press(pilot, ["right"])
        await until(pilot, lambda: "SETTINGS invoice" in text(app), "the settings")
        await pilot.pause(POLL_S)
        asked = sum(isinstance(each, TailRequest) for each in inspector.asked)
        await pilot.pause(2 * POLL_S)
        assert sum(isinstance(each, TailRequest) for each in inspector.asked) == asked


@running
async def test_the_filter_of_a_search_holds_for_what_is_followed() -> None:
    inspector = Tails(busy)
    async with dashboard(state(HEALTHY), inspector=inspector, size=(120, 40)) as (app, pilot):
        app.go.records("invoice", 3)
        await press(pilot, ["slash", *"value.n=1|key.a", "enter"])
        await until(pilot, lambda: "value.n=1|key.a" in text(app) and len(inspector.asked) > 1, "the search")
        before = len(inspector.asked)
        await press(pilot, ["w"])
        await until(pilot, lambda: words.NO_COLUMNS in text(app), "that there are no columns")
        await until(pilot, lambda: "RECORDS invoice FOLLOWING · value.n=1 ·" in text(app), "the filter")
        await until(pilot, lambda: len(inspector.asked) > before, "a question")
        request = inspector.asked[before]
        assert isinstance(request, TailRequest) and request.where == parse("value.n=1")
        await press(pilot, ["u"])
        await until(pilot, lambda: "read_uncommitted" in text(app), "the isolation")
        await until(pilot, lambda: last(inspector).isolation is Isolation.READ_UNCOMMITTED, "asked with it")
        await press(pilot, ["l"])
        await until(pilot, lambda: f"{FIRST + COUNT - 1:,}" in text(app), "the last records")


def last(inspector: Tails) -> TailRequest:
    """The last question about the end of the topic."""
    return next(each for each in reversed(inspector.asked) if isinstance(each, TailRequest))


@running
async def test_trouble_is_said_and_passes() -> None:
    lost = InspectionFailure(InspectionFailureKind.NO_ANSWER, 4, Cause(FailureKind.REFUSED))

    def make(request: TailRequest, number: int) -> TailAnswer:
        match number:
            case 0:
                return answer(request, number, failure=InspectionFailure(InspectionFailureKind.UNKNOWN_TOPIC))
            case 1:
                return answer(request, number, unread=((0, lost), (5, lost)), held=(Held(3, 1_204, 1_300),))
        return answer(request, number)

    async with dashboard(state(HEALTHY), inspector=Tails(make), size=(120, 40)) as (app, pilot):
        app.go.records("invoice", 3)
        await press(pilot, ["w"])
        await until(
            pilot, lambda: "the cluster no longer has invoice; kview asks again" in text(app), "the end of it"
        )
        await until(
            pilot,
            lambda: "partition 3: an open transaction holds back 96 offsets" in text(app),
            "what holds it",
        )
        assert "partitions 0, 5 cannot be read now: broker 4 cannot be asked: connection refused" in text(app)
        await until(
            pilot, lambda: "nothing new yet" in text(app) and "cannot be" not in text(app), "the end of it"
        )


@running
async def test_without_leave_nothing_is_followed() -> None:
    async with dashboard(state(HEALTHY), inspector=FakeInspector(reads_records=False)) as (app, pilot):
        app.go.records("invoice", 3)
        await press(pilot, ["w"])
        await until(pilot, lambda: "w does nothing here" in text(app), "that the key does nothing")
    async with dashboard(state(HEALTHY)) as (app, pilot):
        app.go.records("invoice", 3)
        await press(pilot, ["w"])
        await until(pilot, lambda: "w does nothing here" in text(app), "that the key does nothing")


def following(*answers: TailAnswer) -> Following:
    """A topic after these answers."""
    followed = Following("invoice", Isolation.READ_COMMITTED)
    for each in answers:
        followed.take(each)
    return followed


REQUEST = TailRequest("invoice")


def test_what_is_kept_has_limits() -> None:
    followed = following(*(answer(REQUEST, n, records=candidates(100 * n, 100)) for n in range(15)))
    assert len(followed.items) == MOST_KEPT and followed.shown == 1_500
    last = followed.items[-1][1]
    assert isinstance(last, Candidate) and last.record.offset == FIRST + 1_499
    large = following(*(answer(REQUEST, n, records=candidates(n, 1, b"x" * (1 << 20))) for n in range(100)))
    assert len(large.items) * (1 << 20) <= MOST_KEPT_BYTES
    tree = Decoded(SchemaId(7), tree=Items(list[Node](range(10_000))), has_tree=True)  # of a masked value
    decoded = [each._replace(decoded=DecodedRecord(value=tree)) for each in candidates(0, 1, b"<masked>")]
    trees = following(*(answer(REQUEST, n, records=tuple(decoded)) for n in range(100)))
    assert len(trees.items) * 10_000 * A_NODE <= MOST_KEPT_BYTES


def test_rates_are_of_the_last_seconds_and_estimates_are_marked() -> None:
    assert following(answer(REQUEST, 0)).rates() is None
    answers = [answer(REQUEST, n, passed=50, records=candidates(n, 1)) for n in range(40)]
    rates = following(*answers).rates()
    assert rates is not None and (rates.shown, rates.passing, rates.is_estimate) == (2.0, 100.0, False)
    rates = following(*answers, answer(REQUEST, 40, passed=50, skipped=1_000)).rates()
    assert rates is not None and rates.is_estimate and 100 < rates.passing < 400
    assert words.rates(2, 315.4, True) == "2 of ≈315/s shown"


def test_more_bytes_take_longer() -> None:
    assert following(answer(REQUEST, 0)).wait_s() == POLL_S
    assert following(answer(REQUEST, 0, cost=Cost(6, 3 * BYTES_PER_SECOND))).wait_s() == 3.0


def test_what_passed_during_a_pause_is_counted_once() -> None:
    followed = following(answer(REQUEST, 0), answer(REQUEST, 1))
    followed.pause()
    assert followed.passed_by({3: FIRST + 2_300}) == 100 and followed.passed_by({}) == UNKNOWN
    followed.go_on()
    followed.pause()  # before anything came
    followed.go_on()
    followed.take(answer(REQUEST, 3))
    followed.take(answer(REQUEST, 4))
    assert [item for _, item in followed.items] == [Gap(4_400)] and followed.skipped == 4_400


def test_of_a_partition_that_is_not_read_after_a_pause_the_gap_comes_later() -> None:
    followed = following(answer(REQUEST, 0, positions=((3, 100), (4, 100))))
    followed.pause()
    followed.go_on()
    followed.take(answer(REQUEST, 1, positions=((3, 130), (4, UNKNOWN))))
    followed.pause()
    followed.go_on()
    followed.take(answer(REQUEST, 2, positions=((3, UNKNOWN), (4, UNKNOWN))))
    followed.take(answer(REQUEST, 3, positions=((3, 135), (4, 107))))
    assert [item for _, item in followed.items] == [Gap(30), Gap(12)] and followed.skipped == 42


@running
async def test_an_answer_to_a_question_before_a_pause_counts_for_nothing() -> None:
    held = asyncio.Event()

    class Slow(Tails):
        async def ask(self, question: Question[A]) -> A:
            made = await super().ask(question)
            if self._tails == 2:
                await held.wait()
            return made

    inspector = Slow(lambda request, n: answer(request, n, records=candidates(7 * n, 1) if n < 2 else ()))
    async with dashboard(state(HEALTHY), inspector=inspector, size=(120, 40)) as (app, pilot):
        app.go.records("invoice", 3)
        await press(pilot, ["w"])
        await until(pilot, lambda: len(inspector.asked) == 2, "a question on its way")
        await press(pilot, ["space", "space"])
        held.set()
        await until(pilot, lambda: "4,400 records passed while it was paused" in text(app), "the gap")
        assert last(inspector).positions != ((3, FIRST),) and "k-7" not in text(app)


@running
async def test_what_has_passed_since_a_pause_counts_at_the_end() -> None:
    inspector = Tails(lambda request, n: answer(request, n, positions=((3, FIRST - 1_000_000),)))
    async with dashboard(state(HEALTHY), inspector=inspector, size=(120, 40)) as (app, pilot):
        app.go.records("invoice", 3)
        await press(pilot, ["w"])
        await until(pilot, lambda: len(inspector.asked) > 1, "an answer")
        await press(pilot, ["space"])
        assert isinstance(app.session.feed, FakeFeed)
        app.session.feed.show(state(HEALTHY))
        await until(pilot, lambda: "passed so far" in text(app), "what passes")
        so_far = text(app).split(" records passed so far")[0].split()[-1]
        assert so_far.startswith("≈") and so_far != "≈0"
        await press(pilot, ["escape"])
        await until(pilot, lambda: f"not followed any more: {so_far} records passed" in text(app), "the end")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, []),
        (
            {"held": (Held(0, 5, 6), Held(1, 1, 3))},
            ["partitions 0, 1: an open transaction holds back 3 offsets"],
        ),
        (
            {"restarted": (1, 2, 3, 4, 5)},
            ["partitions 1, 2, 3 + 2 more: its log no longer has the next offset; it goes on at the end"],
        ),
        (
            {"damage": ((0, Damage(5, DamageKind.CORRUPT, 2_000)),)},
            ["partition 0: a batch of 2.0 kB cannot be shown: its checksum is wrong"],
        ),
        (
            {"unknown": 3},
            [
                "of 3 records it is not known whether the filter describes them: they do not decode, or only"
                " their beginning is kept"
            ],
        ),
    ],
)
def test_notes(more: dict[str, Any], said: list[str]) -> None:
    assert words.notes(answer(REQUEST, 0, **more)) == said
