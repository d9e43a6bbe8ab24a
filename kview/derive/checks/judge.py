"""Judges a view: what is wrong, what could go wrong, since when, and what could not be judged.

`step` is a fold like that of views: it remembers when each finding began.
"""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from kview.derive.brokers.log_dirs import stranded
from kview.derive.checks.cluster import (
    Limits,
    broker_findings,
    brokers_not_judged,
    controller_findings,
    controllers_not_judged,
    log_dir_findings,
    log_dirs_not_judged,
    loss_findings,
    nobody_answers,
    skew_findings,
    throttle_findings,
    throttles_not_judged,
    transaction_findings,
    vanished_findings,
)
from kview.derive.checks.connectors import connector_findings
from kview.derive.checks.consequences import Causes, causes_first, down_brokers, with_causes, with_failed_dirs
from kview.derive.checks.failed_parts import failed_not_judged
from kview.derive.checks.groups import group_findings, groups_not_judged
from kview.derive.checks.partitions import partition_findings, partitions_not_judged
from kview.derive.view import View
from kview.model.checks import (
    GROUP_KINDS,
    CheckFinding,
    CheckKind,
    Judgement,
    Key,
    NotJudged,
    NotJudgedWhy,
)
from kview.model.snapshot import Flags
from kview.model.units import UNKNOWN

MOST_NAMES = 100_000
"""The most pairs of kind and name that are remembered as ignored or not: more than a cluster has."""


class Ignore(Struct, frozen=True):
    """Findings that the user ignores: those whose kind and whose name match shell patterns."""

    kind: str
    name: str = "*"


@lru_cache(maxsize=MOST_NAMES)
def is_ignored(kind: CheckKind, name: str, rules: tuple[Ignore, ...]) -> bool:
    """Return whether findings of that kind about that name are ignored."""
    return any(fnmatchcase(kind, rule.kind) and fnmatchcase(name, rule.name) for rule in rules)


class Watch(Struct, frozen=True):
    """What a check remembers from one observation to the next."""

    limits: Limits = field(default_factory=Limits)
    ignore: tuple[Ignore, ...] = ()
    began_ms: int = UNKNOWN
    """When the first observation of the check ended, UNKNOWN before that."""
    since_ms: Mapping[Key, int] = field(default_factory=dict)
    """When each finding of the last observation began, UNKNOWN if it was there from the start."""


def step(watch: Watch, view: View) -> tuple[Watch, Judgement]:
    """Return what is found at the moment of `view`, and what to remember."""
    now_ms = view.snapshot.observation.ended_ms
    is_first = watch.began_ms == UNKNOWN or now_ms < watch.began_ms  # the clock was set back
    began_ms = now_ms if is_first else watch.began_ms
    findings = list(_findings(view, watch))
    kept = [finding for finding in findings if not is_ignored(*finding.key, watch.ignore)]
    new_ms = UNKNOWN if is_first else now_ms
    before = {} if is_first else watch.since_ms
    since = {finding.key: before.get(finding.key, new_ms) for finding in findings}
    dated = [
        finding
        if finding.since_ms != UNKNOWN or finding.kind in GROUP_KINDS
        else replace(finding, since_ms=since[finding.key])
        for finding in kept
    ]
    heeded = _heeded(_not_judged(view, now_ms - began_ms, findings), watch.ignore)
    not_judged = with_causes(heeded, down_brokers(kept, or_unreached=True))
    judgement = Judgement(causes_first(dated, not_judged), not_judged, len(findings) - len(kept))
    return replace(watch, began_ms=began_ms, since_ms=since), judgement


def more_tells(judgement: Judgement) -> bool:
    """Return whether further observations may judge what could not be judged yet."""
    return any(_is_open(judgement, item) for item in judgement.not_judged)


def is_deciding(judgement: Judgement) -> bool:
    """Return whether a broker owes an answer, so that the next seconds tell whether it is silent."""
    return any(
        CheckKind.BROKER_SILENT in item.kinds and _is_open(judgement, item) for item in judgement.not_judged
    )


def _is_open(judgement: Judgement, item: NotJudged) -> bool:
    """Return whether `item` only needs time. That a slow broker owes an answer does not count."""
    slow = {finding.name for finding in judgement.findings if finding.kind is CheckKind.BROKER_SLOW}
    owing = item.kinds == (CheckKind.BROKER_SILENT,)
    needs_time = item.why in (NotJudgedWhy.NO_HISTORY, NotJudgedWhy.FEW_COMMITS)
    return needs_time and not (owing and slow.issuperset(item.names))


def _findings(view: View, watch: Watch) -> Iterator[CheckFinding]:
    if nobody_answers(view):
        yield from broker_findings(view)
        return
    of_brokers = [*broker_findings(view), *vanished_findings(view)]
    of_dirs = list(log_dir_findings(view))
    of_transactions = list(transaction_findings(view))
    heeded = [finding for finding in (*of_brokers, *of_dirs) if not is_ignored(*finding.key, watch.ignore)]
    may_explain = Causes(
        view.snapshot.partitions.replicas,
        stranded(view.snapshot),
        down_brokers(heeded),
        with_failed_dirs(heeded),
        [(item.key, rows) for item, rows in of_transactions if not is_ignored(*item.key, watch.ignore)],
    )
    yield from of_brokers
    yield from of_dirs
    yield from partition_findings(view, may_explain)
    yield from controller_findings(view, may_explain.down)
    yield from skew_findings(view, watch.limits)
    yield from loss_findings(view, _accepted(view, watch.ignore), may_explain)
    yield from (finding for finding, _ in of_transactions)
    yield from throttle_findings(view)
    yield from group_findings(view, may_explain)
    yield from connector_findings(view)


def _accepted(view: View, ignore: tuple[Ignore, ...]) -> Flags:
    """Return the partitions with one replica that are ignored: their loss with a broker is accepted."""
    topics = view.topics
    single = [
        replicas == 1 and is_ignored(CheckKind.REPLICATION_FACTOR_1, str(topic), ignore)
        for topic, replicas in zip(topics.topic.tolist(), topics.replication.tolist(), strict=True)
    ]
    return np.repeat(np.array(single, np.bool_), topics.partitions)


def _not_judged(view: View, watched_ms: int, found: Sequence[CheckFinding]) -> Iterator[NotJudged]:
    if nobody_answers(view):
        rest = tuple(kind for kind in CheckKind if kind is not CheckKind.BROKER_SILENT)
        yield NotJudged(rest, NotJudgedWhy.NOT_ANSWERED)
        return
    yield from failed_not_judged(view)
    yield from partitions_not_judged(view)
    yield from brokers_not_judged(view, watched_ms)
    yield from log_dirs_not_judged(view, found)
    yield from controllers_not_judged(view, found)
    yield from throttles_not_judged(view)
    yield from groups_not_judged(view, watched_ms)


def _heeded(items: Iterator[NotJudged], ignore: tuple[Ignore, ...]) -> Iterator[NotJudged]:
    """Yield what could not be judged, without what the user ignores."""
    for item in items:
        if not item.names:
            kinds = tuple(kind for kind in item.kinds if not is_ignored(kind, "", ignore))
            if kinds:
                yield replace(item, kinds=kinds)
            continue
        by_kinds: dict[tuple[CheckKind, ...], list[str]] = {}
        for name in item.names:
            kinds = tuple(kind for kind in item.kinds if not is_ignored(kind, name, ignore))
            by_kinds.setdefault(kinds, []).append(name)
        for kinds, names in by_kinds.items():
            if kinds:
                yield replace(item, kinds=kinds, names=tuple(names))
