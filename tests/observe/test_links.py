"""Links: which brokers are tried again at once when another one answers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import pytest

from kview.model.address import Address
from kview.observe.link import Link
from kview.observe.links import Links
from kview.observe.loop import Loop
from kview.observe.settings import ObserveSettings
from kview.observe.state import State
from kview.wire.metadata import BrokerAddress


@dataclass
class StillLink:
    """A link to a broker that answers or fails to, and counts the calls to retry soon."""

    address: Address
    failing: bool
    expected: list[float] = field(default_factory=list)
    on_up: Callable[[], None] = lambda: None

    def open(self) -> None:
        """Stay as it is."""

    def expect(self, within_s: float) -> None:
        """Note that the broker is coming back."""
        self.expected.append(within_s)


@pytest.mark.parametrize(
    ("failing", "retried"), [((True, True), [1, 2]), ((True, False), []), ((False, False), [])]
)
def test_when_one_broker_answers_after_none_did_all_are_tried_again(
    failing: tuple[bool, ...], retried: list[int]
) -> None:
    """Otherwise, each would wait for the end of its own pause."""
    lanes = [
        {id: StillLink(Address("127.0.0.1", 9092 + id), fails) for id, fails in enumerate((False, *failing))}
        for _ in range(2)
    ]
    fast, slow = lanes
    state = State(listed=tuple(BrokerAddress(id, *fast[id].address, "") for id in fast))
    links = Links(cast(Loop, None), ObserveSettings(), state, cast(dict[int, Link], slow))
    links.fast = cast(dict[int, Link], fast)
    links.open()
    fast[0].on_up()
    for lane in lanes:
        assert [broker for broker, link in lane.items() if link.expected] == retried
