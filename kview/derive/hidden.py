"""What kview is not authorized to see, and Kafka therefore leaves out of its answers without an error."""

from collections.abc import Iterable, Iterator

from kview.model.events import Severity
from kview.model.failures import NOT_AUTHORIZED, FailureKind, Part, refused
from kview.model.findings import Finding, FindingKind
from kview.model.snapshot import Failure, Observation
from kview.model.units import UNKNOWN


def lacks_topics(observation: Observation) -> bool:
    """Return whether there may be topics that kview is not authorized to see."""
    return _denied(_of_topics(observation)) is not None


def hidden(observation: Observation, unheard: Iterable[Failure]) -> Iterator[Finding]:
    """Yield that there may be topics, and groups, that kview is not authorized to see.

    `unheard` are the failures of brokers that have never listed their groups.
    """
    topics, groups = _denied(_of_topics(observation)), _denied(unheard)
    if topics is not None:
        yield _finding(topics.code, topics.shown_since_ms)
    if groups is not None:
        yield _finding(groups.code)


def _of_topics(observation: Observation) -> Iterator[Failure]:
    return (failure for failure in observation.failures if failure.part == Part.TOPICS)


def _denied(failures: Iterable[Failure]) -> Failure | None:
    """Return the first failure of which Kafka says that kview is not authorized."""
    refusals = (failure for failure in failures if failure.kind == FailureKind.KAFKA_ERROR)
    return next((failure for failure in refusals if failure.code in NOT_AUTHORIZED), None)


def _finding(code: int, since_ms: int = UNKNOWN) -> Finding:
    return Finding(FindingKind.NOT_AUTHORIZED, Severity.WARN, since_ms=since_ms, cause=refused(code))
