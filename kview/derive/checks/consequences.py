"""What brokers that are down, failed log directories and open transactions explain: the findings that have no
other cause, and what could not be judged."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kview.model.checks import LEVELS, CheckFinding, CheckKind, Key, NotJudged, NotJudgedWhy
from kview.model.snapshot import Flags, IdMatrix, Longs

DOWN_KINDS = (CheckKind.BROKER_SILENT, CheckKind.BROKER_FENCED, CheckKind.BROKER_GONE)

Down = Mapping[int, Key]
"""The brokers that are down, by id, and the findings that say so."""


def down_brokers(findings: Iterable[CheckFinding], or_unreached: bool = False) -> Down:
    """Return the brokers that the cluster has lost, or those that only kview cannot reach as well."""
    return {
        finding.brokers[0]: finding.key
        for finding in findings
        if finding.kind in DOWN_KINDS and (or_unreached or not finding.unreached)
    }


def with_failed_dirs(findings: Iterable[CheckFinding]) -> Down:
    """Return the brokers that are up and have failed log directories."""
    return {
        finding.brokers[0]: finding.key for finding in findings if finding.kind is CheckKind.LOG_DIR_OFFLINE
    }


class Causes(Struct, frozen=True):
    """What may explain findings. Matrices have the shape of `Partitions.replicas`."""

    replicas: IdMatrix
    stranded: Flags
    """The offline replicas of brokers that are up."""
    down: Down
    dirs: Down
    """The brokers with failed log directories, by id, and the findings that say so."""
    transactions: Sequence[tuple[Key, Longs]] = ()
    """The findings about open transactions, each with the partitions that the transaction holds back."""

    def __bool__(self) -> bool:
        """Whether brokers may explain anything."""
        return bool(self.down or self.dirs)

    def of(self, rows: Longs, blamed: Flags) -> tuple[Key, ...]:
        """Return the findings that explain all partitions in `rows`, none if one of them has another cause.

        `blamed` marks the replicas whose brokers are the cause, in these rows.
        """
        if not blamed.any(1).all():
            return ()
        replicas, in_dirs = self.replicas[rows], blamed & self.stranded[rows]
        brokers = np.unique(replicas[blamed & ~in_dirs]).tolist()
        with_dirs = np.unique(replicas[in_dirs]).tolist()
        if not (self.down.keys() >= set(brokers) and self.dirs.keys() >= set(with_dirs)):
            return ()
        return (*(self.down[broker] for broker in brokers), *(self.dirs[broker] for broker in with_dirs))

    def of_waiting(self, rows: Longs) -> tuple[Key, ...]:
        """Return the transactions that hold back the partitions in `rows`, none if one has another cause."""
        holding = [(key, np.isin(rows, held)) for key, held in self.transactions]
        if not np.any([mask for _, mask in holding], axis=0).all():
            return ()
        return tuple(key for key, mask in holding if mask.any())


def with_causes(items: Iterable[NotJudged], down: Down) -> tuple[NotJudged, ...]:
    """Return what could not be judged, with the findings that explain why nobody answered."""
    return tuple(
        replace(item, explained_by=tuple(down[broker] for broker in item.brokers))
        if item.brokers and item.why is NotJudgedWhy.NOT_ANSWERED and down.keys() >= set(item.brokers)
        else item
        for item in items
    )


def causes_first(findings: Sequence[CheckFinding], items: Iterable[NotJudged]) -> tuple[CheckFinding, ...]:
    """Return the findings in order: causes, everything else that is wrong now, and weaknesses.

    Within these the worst come first. A cause is at least as bad as the worst that it explains.
    """
    worst: dict[Key, int] = {key: len(LEVELS) for item in items for key in item.explained_by}
    for finding in findings:
        for key in finding.explained_by:
            worst[key] = min(worst.get(key, len(LEVELS)), LEVELS.index(finding.level))
    kinds = {kind: place for place, kind in enumerate(CheckKind)}
    ranked = []
    for finding in findings:
        level = min(LEVELS.index(finding.level), worst.get(finding.key, len(LEVELS)))
        place = 0 if finding.key in worst else 2 if level == len(LEVELS) - 1 else 1
        raised = finding if finding.level is LEVELS[level] else replace(finding, level=LEVELS[level])
        ranked.append(((place, level, kinds[finding.kind]), raised))
    return tuple(finding for _, finding in sorted(ranked, key=lambda pair: pair[0]))
