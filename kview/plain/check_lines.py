"""The outcome of a check as lines of text: one for each finding, and one for all that others explain."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo

from kview.derive.checks.outcome import Outcome
from kview.derive.groups.alike import worst_findings
from kview.language import checks, glyphs, words
from kview.model.checks import GROUP_KINDS, CheckFinding, CheckKind, Key

MOST_OF_A_KIND = 50
"""The most findings of one kind that are listed. A JSON document has all of them."""

MOST_GROUPS_LISTED = 40
"""The most findings about groups of which each has a line, even if they are alike."""

_GAP = "  "


def lines(outcome: Outcome, name: str, zone: tzinfo | None = None) -> str:
    """Return the outcome of checking the cluster called `name` as text of printable characters.

    Times of day are in `zone`; None is the machine's own.
    """
    parts = (_head(outcome, name, zone), *_findings(outcome), *_not_judged(outcome), _result(outcome))
    return "".join(f"{glyphs.printable(line)}\n" for line in parts)


def _head(outcome: Outcome, name: str, zone: tzinfo | None) -> str:
    return _GAP.join(
        (
            f"kview check {words.clock(outcome.at_ms, zone, tenths=False)}",
            name,
            words.answering(outcome.answering, outcome.brokers),
            words.plural(outcome.topics, "topic"),
            words.plural(outcome.partitions, "partition"),
            words.plural(outcome.groups, "group"),
            f"observed for {words.duration(outcome.watched_ms)}",
        )
    )


def _findings(outcome: Outcome) -> Iterator[str]:
    judgement = outcome.judgement
    causes = judgement.causes
    yield from _listed(outcome, causes)
    if causes:
        explained = [finding for finding in judgement.findings if finding.explained_by]
        not_judged_count = sum(bool(item.explained_by) for item in judgement.not_judged)
        yield f"{_GAP}{checks.explains(causes, explained, not_judged_count)} (--format json lists them)"
    cause_keys = {cause.key for cause in causes}
    rest = [item for item in judgement.findings if not item.explained_by and item.key not in cause_keys]
    yield from _listed(outcome, rest)


def _listed(outcome: Outcome, findings: Sequence[CheckFinding]) -> Iterator[str]:
    findings, alike = _folded(findings)
    listed: Counter[CheckKind] = Counter()
    total = Counter(finding.kind for finding in findings)
    for finding in findings:
        listed[finding.kind] += 1
        if listed[finding.kind] <= MOST_OF_A_KIND:
            sign = glyphs.SIGNS[finding.level]
            said = checks.sentence(finding, outcome.at_ms)
            label = checks.label(finding.key) + checks.and_alike(alike.get(finding.key, ()))
            yield f"{sign} {finding.level}{_GAP}{label}{_GAP}{said}"
        elif listed[finding.kind] == total[finding.kind]:
            rest = total[finding.kind] - MOST_OF_A_KIND
            yield f"  + {rest:,} more {finding.kind}: {checks.ALL_IN_JSON}"


def _folded(
    findings: Sequence[CheckFinding],
) -> tuple[list[CheckFinding], Mapping[Key, Sequence[CheckFinding]]]:
    """Return findings of which those about groups that do the same are one, that of the worst of them, and
    all those for which it stands, by its key.

    Nothing is folded where a person can read all.
    """
    of_groups = [finding for finding in findings if finding.kind in GROUP_KINDS]
    if len(of_groups) <= MOST_GROUPS_LISTED:
        return list(findings), {}
    alike = {same[0].key: same for same in worst_findings(of_groups)}
    left_out = {finding.key for same in alike.values() for finding in same[1:]}
    return [finding for finding in findings if finding.key not in left_out], alike


def _not_judged(outcome: Outcome) -> Iterator[str]:
    for item in outcome.judgement.not_judged:
        if item.explained_by:
            continue
        label, why = checks.not_judged_label(item), checks.not_judged(item)
        yield f"{words.UNSEEN} not judged{_GAP}{label}{_GAP}{why}"


def _result(outcome: Outcome) -> str:
    judgement = outcome.judgement
    return checks.result(outcome.healthy, outcome.counts, len(judgement.not_judged), judgement.ignored)
