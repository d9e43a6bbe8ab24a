"""The outcome of a check: what it found and when, and whether it passes by the user's rules."""

from collections.abc import Mapping
from dataclasses import dataclass

from kview.derive.brokers.silence import answering
from kview.derive.view import View
from kview.model.checks import LEVELS, WEAKNESSES, CheckFinding, Judgement, Level, NotJudged


@dataclass(frozen=True, slots=True)
class Rules:
    """What makes a check fail."""

    fail_on: Level = Level.WARN
    """The lowest level that makes it fail."""
    allow_not_judged: bool = False
    """Whether it passes if something could not be judged."""

    def fails(self, finding: CheckFinding) -> bool:
        """Return whether the finding makes the check fail."""
        return LEVELS.index(finding.level) <= LEVELS.index(self.fail_on)

    def fails_unjudged(self, item: NotJudged) -> bool:
        """Return whether it makes the check fail that `item` could not be judged: something may be wrong now,
        or weaknesses count."""
        if self.allow_not_judged:
            return False
        return self.fail_on is Level.WEAKNESS or not WEAKNESSES.issuperset(item.kinds)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a check found in a cluster. The counts include internal topics."""

    at_ms: int
    watched_ms: int
    """The time from the beginning of the first observation to the end of the last one."""
    cluster_id: str
    brokers: int
    answering: int
    topics: int
    partitions: int
    groups: int
    judgement: Judgement
    rules: Rules

    @property
    def healthy(self) -> bool:
        """Whether the check passes."""
        judged, rules = self.judgement, self.rules
        return not (
            any(map(rules.fails, judged.findings)) or any(map(rules.fails_unjudged, judged.not_judged))
        )

    @property
    def counts(self) -> Mapping[Level, int]:
        """The number of findings by level, the worst first."""
        levels = [finding.level for finding in self.judgement.findings]
        return {level: levels.count(level) for level in LEVELS}


def outcome_of(view: View, judgement: Judgement, watched_ms: int, rules: Rules) -> Outcome:
    """Return the outcome of a check that ends with `view`."""
    snapshot, brokers = view.snapshot, answering(view)
    return Outcome(
        at_ms=snapshot.observation.ended_ms,
        watched_ms=watched_ms,
        cluster_id=snapshot.observation.cluster_id,
        brokers=brokers.all,
        answering=brokers.answer,
        topics=len(view.topics.topic),
        partitions=len(snapshot.partitions),
        groups=len(snapshot.groups),
        judgement=judgement,
        rules=rules,
    )
