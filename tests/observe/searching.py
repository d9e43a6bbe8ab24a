"""Searches to their end, step by step."""

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec.structs import replace

from kview.model.search import SearchAnswer, SearchPlan, SearchPlanRequest, SearchRequest, Span, Tally
from kview.model.where import Candidate, Problem, Where
from kview.observe.observer import Observer
from kview.where.parse import parse
from tests.observe.asking import answered


class Searched(NamedTuple):
    """What a search came to."""

    plan: SearchPlan
    found: list[Candidate]
    spans: tuple[Span, ...]
    tally: Tally
    steps: list[SearchAnswer]

    @property
    def places(self) -> list[tuple[int, int]]:
        """(partition, offset) of what was found."""
        return [(each.partition, each.record.offset) for each in self.found]

    @property
    def values(self) -> list[bytes | None]:
        return [each.record.value.data for each in self.found]


def filtered(text: str) -> Where | None:
    """A filter, None for ''."""
    where = parse(text) if text else None
    assert not isinstance(where, Problem), where
    return where


def searched(
    observer: Observer,
    topic: str,
    where: str = "",
    between: Callable[[SearchPlan], object] = lambda plan: None,
    most_steps: int = 10_000,
    more: dict[str, Any] | None = None,
    **plan_options: Any,
) -> Searched:
    """Search a topic. `between` is called after the plan, and `more` are options of the steps, of which
    `most_bytes` is for all together."""
    wanted = filtered(where)
    plan: SearchPlan = answered(observer, SearchPlanRequest(topic, where=wanted, **plan_options))
    assert not plan.failure, plan.failure
    between(plan)
    spans, tally, found, steps = plan.spans, Tally(), list[Candidate](), list[SearchAnswer]()
    isolation = plan.request.isolation
    while not all(span.is_over for span in spans) and len(steps) < most_steps:
        request = SearchRequest(topic, spans, wanted, isolation, **(more or {}))
        left = max(0, request.most_bytes - tally.bytes)
        step: SearchAnswer = answered(observer, replace(request, most_bytes=left))
        assert not step.failure, step.failure
        spans, tally = step.spans, tally + step.tally
        found += step.found
        steps.append(step)
        if step.is_spent:
            break
    return Searched(plan, found, spans, tally, steps)
