"""Which rows of a view pass a filter, as one flag for each row of its tables.

Names are looked at once for each topic and group, never for each partition. A term that cannot apply to a
kind of row, such as `topic:` to brokers, leaves these rows alone.
"""

from collections.abc import Collection, Sequence
from enum import Enum
from functools import cached_property

import numpy as np

from kview.derive.align import runs
from kview.derive.filters import TROUBLE, Field, Filter, Term, names, plain
from kview.derive.statuses import STATUSES, PartitionStatus, Verdict
from kview.derive.view import View
from kview.model.events import Severity
from kview.model.expressions import matching
from kview.model.snapshot import Flags, Longs, Strings
from kview.model.states import BrokerState, GroupState
from kview.model.units import UNKNOWN

SLOW = "slow"
_PARTITION_STATES = frozenset(map(plain, PartitionStatus))
_GROUP_STATES = frozenset(map(plain, (*Verdict, *GroupState)))
_BROKER_STATES = frozenset((*map(plain, BrokerState), SLOW))


class Listed(Enum):
    """What a list is of, with the states that a term can name there. Topics are filtered as partitions."""

    PARTITIONS = _PARTITION_STATES
    GROUPS = _GROUP_STATES | _PARTITION_STATES
    BROKERS = _BROKER_STATES
    EVENTS = frozenset[str]()


def concerns(wanted: Filter, listed: Listed) -> bool:
    """Return whether a filter has a term that can hide rows of a list."""
    return any(_concerns(term, listed) for term in wanted.terms)


def _concerns(term: Term, listed: Listed) -> bool:
    if term.field is Field.STATE:
        return _names_one_of(term, listed.value)
    if listed is Listed.BROKERS:
        return term.field in (Field.BROKER, Field.RACK)
    return listed is not Listed.EVENTS or term.field is not Field.RACK


def _names_one_of(term: Term, states: frozenset[str]) -> bool:
    """Return whether a term names one of some states, or trouble in a list that has any."""
    return bool(states) and any(names(text, (*states, TROUBLE)) for text in term.texts)


class Passing:
    """Which rows of `view` pass the filter `wanted`."""

    def __init__(self, view: View, wanted: Filter) -> None:
        self._view = view
        self._terms = wanted.terms
        self._topics: Strings = view.topics.topic
        self._rows_of_topic = view.topics.partitions

    @cached_property
    def partitions(self) -> Flags:
        """Which rows of `snapshot.partitions` pass."""
        passing = np.ones(len(self._view.snapshot.partitions), bool)
        for term in self._terms:
            passing &= self._of_partitions(term) ^ term.negated
        return passing

    @cached_property
    def topics(self) -> Flags:
        """Which rows of `view.topics` pass: those with a partition for which every term holds, and with none
        for which a negated term's condition does."""
        together = np.ones(len(self._view.snapshot.partitions), bool)
        without = np.zeros(len(self._topics), bool)
        for term in self._terms:
            if term.negated:
                without |= self._any(self._of_partitions(term))
            else:
                together &= self._of_partitions(term)
        return self._any(together) & ~without

    @cached_property
    def groups(self) -> Flags:
        """Which rows of `snapshot.groups` pass. Groups that read what passes do."""
        passing = np.ones(len(self._view.snapshot.groups), bool)
        for term in self._terms:
            if _concerns(term, Listed.GROUPS):
                passing &= self._of_groups(term) ^ term.negated
        return passing

    @cached_property
    def brokers(self) -> Flags:
        """Which rows of `snapshot.brokers` pass. Names of topics and groups leave them alone."""
        passing = np.ones(len(self._view.snapshot.brokers), bool)
        for term in self._terms:
            if _concerns(term, Listed.BROKERS):
                passing &= self._of_brokers(term) ^ term.negated
        return passing

    def offsets(self, group: str) -> Flags:
        """Return which rows of `snapshot.offsets` are of a group and pass. A word that is part of the group's
        name leaves its rows alone."""
        table = self._view.snapshot.offsets
        passing: Flags = np.asarray(table.group == group, bool)
        rows = self._view.offsets.partition_row
        for term in self._terms:
            of_group = term.field in (Field.ANY, Field.GROUP) and not term.negated
            if of_group and bool(_names(term, np.array([group], object))[0]):
                continue
            at = self._of_partitions(term)
            holds = at[np.maximum(rows, 0)] & (rows >= 0) if len(at) else np.zeros(len(rows), bool)
            passing &= holds ^ term.negated
        return passing

    def _any(self, partitions: Flags) -> Flags:
        """Return which topics have a partition with the flag."""
        has_rows = self._rows_of_topic > 0
        of_topic = np.zeros(len(self._topics), bool)
        if len(partitions) and has_rows.any():
            of_topic[has_rows] = np.logical_or.reduceat(partitions, self._view.topics.first_row[has_rows])
        return of_topic

    def _of_partitions(self, term: Term) -> Flags:
        """Return for which partitions a term's condition holds."""
        table = self._view.snapshot.partitions
        match term.field:
            case Field.ANY | Field.TOPIC:
                return np.repeat(_names(term, self._topics), self._rows_of_topic)
            case Field.GROUP:
                read = np.zeros(len(table) + 1, bool)  # the last place is for partitions that are not known
                chosen = _names(term, self._view.snapshot.groups.group)
                begins, ends = self._offsets_of_groups()
                for begin, end in zip(begins[chosen].tolist(), ends[chosen].tolist(), strict=True):
                    read[self._view.offsets.partition_row[begin:end]] = True
                return read[:-1]
            case Field.BROKER | Field.RACK:
                ids = self._view.snapshot.brokers.id[self._broker_rows(term)]
                wanted = ids if term.field is Field.RACK else np.array([int(t) for t in term.texts])
                return np.asarray(np.isin(table.replicas, wanted).any(1), bool)
            case Field.STATE:
                if not _concerns(term, Listed.PARTITIONS):
                    return np.full(len(table), not term.negated)
                return self._in_states(term)

    def _in_states(self, term: Term) -> Flags:
        """Return which partitions have a status that a term names, or are in trouble if it names that."""
        chosen = [any(names(text, [plain(status)]) for text in term.texts) for status in STATUSES]
        found: Flags = np.array(chosen)[self._view.partitions.rank]
        if any(names(text, [TROUBLE]) for text in term.texts):
            found |= self._view.partitions.alarming
        return found

    def _of_groups(self, term: Term) -> Flags:
        """Return for which groups the condition of a term that concerns them holds."""
        table, figures = self._view.snapshot.groups, self._view.groups
        match term.field:
            case Field.GROUP:
                return _names(term, table.group)
            case Field.ANY if term.negated:
                return _names(term, table.group)
            case Field.ANY:
                return _names(term, table.group) | self._reading(self._of_partitions(term))
            case Field.TOPIC:
                return self._reading(self._of_partitions(term))
            case Field.BROKER | Field.RACK:
                ids = self._view.snapshot.brokers.id[self._broker_rows(term)]
                led = np.isin(self._view.snapshot.partitions.leader, ids)
                return np.isin(table.coordinator, ids) | self._reading(led)
            case Field.STATE:
                if not _names_one_of(term, _GROUP_STATES):
                    return self._reading(self._of_partitions(term))
                own = _states(term, figures.verdict) | _states(term, table.state)
                return own | _trouble(term, figures.severity)

    def _of_brokers(self, term: Term) -> Flags:
        """Return for which brokers the condition of a term that concerns them holds."""
        if term.field is not Field.STATE:
            return self._broker_rows(term)
        figures = self._view.brokers
        slow = (figures.slow_since_ms != UNKNOWN) & any(names(text, [SLOW]) for text in term.texts)
        own = _states(term, self._view.snapshot.brokers.state) | slow
        return np.asarray(own | _trouble(term, figures.severity), bool)

    def _broker_rows(self, term: Term) -> Flags:
        table = self._view.snapshot.brokers
        if term.field is Field.BROKER:
            return np.isin(table.id, [int(text) for text in term.texts])
        return np.array([str(rack).casefold() in term.texts for rack in table.rack], bool)

    def _offsets_of_groups(self) -> tuple[Longs, Longs]:
        """Return the first row of each group in `snapshot.offsets`, and the row after its last one."""
        groups, column = self._view.snapshot.groups.group, self._view.snapshot.offsets.group
        begins, ends = runs(column)
        places = {str(name): place for place, name in enumerate(column[begins])}
        at = np.array([places.get(str(name), -1) for name in groups], np.int64)
        begins, ends = np.append(begins, 0), np.append(ends, 0)
        return begins[at], ends[at]

    def _reading(self, partitions: Flags) -> Flags:
        """Return which groups have an offset in, or a member that owns, a partition with the flag."""
        rows = self._view.offsets.partition_row
        flags = np.append(partitions, False)[np.where(rows >= 0, rows, len(partitions))]
        before = np.append(0, np.cumsum(flags))
        begins, ends = self._offsets_of_groups()
        found: Flags = before[ends] > before[begins]
        return found


def passing_texts(texts: Sequence[str], brokers: Sequence[Collection[int]], wanted: Filter) -> Flags:
    """Return which of some texts pass, each with the ids of the brokers that it is about.

    Words, and names of topics and groups, are parts of the text. Racks and states leave texts alone.
    """
    listed = np.array([*texts, None], object)[:-1]
    passing = np.ones(len(texts), bool)
    for term in wanted.terms:
        if term.field is Field.BROKER:
            ids = {int(text) for text in term.texts}
            holds = np.array([not ids.isdisjoint(each) for each in brokers], bool)
        elif not _concerns(term, Listed.EVENTS):
            continue
        else:
            holds = _names(term, listed)
        passing &= holds ^ term.negated
    return passing


def _names(term: Term, names: Strings) -> Flags:
    """Return which names a term matches."""
    if term.is_pattern:
        return matching(term.texts[0], names.tolist(), ignore_case=True) if len(names) else np.zeros(0, bool)
    wanted = term.texts[0]
    return np.array([wanted in name.casefold() for name in names.tolist()], bool)


def _states(term: Term, column: Strings) -> Flags:
    """Return where a column has one of the states that a term names."""
    known = {str(state) for state in set(column.tolist())}
    passing = [state for state in known if any(names(text, [plain(state)]) for text in term.texts)]
    has_state = np.zeros(len(column), bool)
    for state in passing:
        has_state |= np.asarray(column == state, bool)
    return has_state


def _trouble(term: Term, severity: Strings) -> Flags:
    if not any(names(text, [TROUBLE]) for text in term.texts):
        return np.zeros(len(severity), bool)
    return np.asarray((severity == Severity.RISK) | (severity == Severity.WARN), bool)
