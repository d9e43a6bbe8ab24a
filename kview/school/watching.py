"""Follows the expectations of a step from observation to observation, live as without a screen."""

from kview.model.units import UNKNOWN
from kview.school.expectations import Expectation, duration_ms, expectation
from kview.school.figures import Figure
from kview.school.lesson import Step
from kview.school.moment import Moment, Value

PATIENCE_MS = 20_000
"""How long a step waits for its expectations if it does not say."""


class Watch:
    """The expectations of a step that began at `began_ms`, when the figures were those of `moment`.

    `pending` have not come true yet, `held` are true throughout so far, and `unmet` are those that were not
    true in time. A step with a wait lasts as long as that if it expects nothing, or something throughout.
    `grace_ms` is how much later everything may come true, because a cluster that runs in real time is
    observed with a delay.
    """

    def __init__(self, step: Step, moment: Moment, began_ms: int, grace_ms: int = 0) -> None:
        expected = [expectation(text) for text in step.expect]
        wait_ms = duration_ms(step.wait) if step.wait else None
        patience_ms = PATIENCE_MS if expected else 0
        self.began_ms = began_ms
        self.grace_ms = grace_ms
        self.lasts_ms = max(
            [patience_ms if wait_ms is None else wait_ms, *(one.within_ms for one in expected)]
        )
        self.pending = [one for one in expected if not one.throughout]
        self.held = [one for one in expected if one.throughout]
        self.unmet: list[Expectation] = []
        self._then: dict[Figure, Value] = {one.figure: one.figure.value(moment) for one in expected}
        self._lasts_whole = bool(self.held) or (wait_ms is not None and not expected)
        self._passed_ms = 0

    @property
    def is_over(self) -> bool:
        """Whether nothing more can come of the step: it is done, or something was not met."""
        if self.unmet or self._passed_ms >= self.lasts_ms + (self.grace_ms if self.pending else 0):
            return True
        return not self.pending and not self._lasts_whole

    def see(self, moment: Moment, at_ms: int) -> None:
        """Judge an observation made at `at_ms`."""
        self._passed_ms = at_ms - self.began_ms
        for one in list(self.pending):
            limit_ms = self.lasts_ms if one.within_ms == UNKNOWN else one.within_ms
            if one.holds(self._then[one.figure], one.figure.value(moment)):
                self.pending.remove(one)
            elif self._passed_ms >= limit_ms + self.grace_ms:
                self.pending.remove(one)
                self.unmet.append(one)
        for one in list(self.held):
            if not one.holds(self._then[one.figure], one.figure.value(moment)):
                self.held.remove(one)
                self.unmet.append(one)
