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
        all_expected = [expectation(text) for text in step.expect]
        wait_ms = duration_ms(step.wait) if step.wait else None
        patience_ms = PATIENCE_MS if all_expected else 0
        self.began_ms = began_ms
        self.grace_ms = grace_ms
        self.lasts_ms = max(
            [patience_ms if wait_ms is None else wait_ms, *(expected.within_ms for expected in all_expected)]
        )
        self.pending = [expected for expected in all_expected if not expected.throughout]
        self.held = [expected for expected in all_expected if expected.throughout]
        self.unmet: list[Expectation] = []
        figures = [expected.figure for expected in all_expected]
        self._then: dict[Figure, Value] = {figure: figure.value(moment) for figure in figures}
        self._lasts_whole = bool(self.held) or (wait_ms is not None and not all_expected)
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
        for awaited in list(self.pending):
            limit_ms = self.lasts_ms if awaited.within_ms == UNKNOWN else awaited.within_ms
            if awaited.holds(self._then[awaited.figure], awaited.figure.value(moment)):
                self.pending.remove(awaited)
            elif self._passed_ms >= limit_ms + self.grace_ms:
                self.pending.remove(awaited)
                self.unmet.append(awaited)
        for held in list(self.held):
            if not held.holds(self._then[held.figure], held.figure.value(moment)):
                self.held.remove(held)
                self.unmet.append(held)
