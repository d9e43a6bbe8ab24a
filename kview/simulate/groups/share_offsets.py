"""Where share groups start in partitions: described, altered and deleted. Source: GroupCoordinatorService.

A group keeps which partitions it reads, and the share coordinators keep where it starts in them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from kview.simulate.codes import MESSAGES, ErrorCode
from kview.simulate.coordination.share_states import (
    UNINITIALIZED,
    UNKNOWN_COUNT,
    SharePartition,
    ShareStates,
    Summary,
)
from kview.simulate.groups.shard import GroupShard
from kview.simulate.groups.share_group import ShareGroup
from kview.simulate.groups.share_membership import ShareMembership, joined, without
from kview.simulate.groups.share_records import NamedPartitions, ShareStatesKey, StatePartitions
from kview.simulate.metadata import TopicImage

Ends = Callable[[str, int], int | None]
"""(topic, partition) → its high watermark, None if nobody leads it."""
Code = tuple[ErrorCode, str | None]

_FINE: Code = (ErrorCode.NONE, None)
_UNKNOWN: Code = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    MESSAGES[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
)
_NOTHING: Code = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "There is no offset information to delete.")
NO_ID = bytes(16)


class StartOffset(NamedTuple):
    """Where a group starts in a partition, −1 if nobody has read it yet. The lag is −1 if it is not known."""

    partition: int
    offset: int
    leader_epoch: int
    lag: int
    code: Code = _FINE


class TopicRows(NamedTuple):
    """A topic, with its id (zeros if it does not exist), and what is said of its partitions."""

    topic: str
    topic_id: bytes
    rows: tuple[StartOffset | tuple[int, Code], ...]


class TopicCode(NamedTuple):
    """What became of the deletion of a topic's offsets."""

    topic: str
    topic_id: bytes
    code: Code


class ShareOffsets:
    """The offsets of one shard's share groups."""

    def __init__(
        self, shard: GroupShard, membership: ShareMembership, states: ShareStates, ends: Ends
    ) -> None:
        self._shard = shard
        self._membership = membership
        self._states = states
        self._ends = ends

    @property
    def _topics(self) -> Mapping[str, TopicImage]:
        return self._shard.host.metadata().topics

    # --- describing

    def describe(
        self,
        name: str,
        asked: Sequence[tuple[str, Sequence[int]]] | None,
        done: Callable[[list[TopicRows]], None],
    ) -> None:
        """Answer with where a group starts in these partitions, or in all that it reads."""
        if asked is None:
            group = self._shard.groups.get(name)
            known = group.states.initialized if isinstance(group, ShareGroup) else {}
            asked = [(named.topic, sorted(named.partitions)) for named in known.values()]
        topics = asked
        keys = [(topic, number) for topic, numbers in asked for number in numbers]
        found: dict[int, StartOffset] = {}

        def summarized(at: int, summary: Summary) -> None:
            found[at] = self._start_offset(keys[at], summary)
            if len(found) == len(keys):
                done(self._by_topic(topics, iter([found[at] for at in range(len(keys))])))

        if not keys:
            done(self._by_topic(asked, iter(())))
        for at, (topic, number) in enumerate(keys):
            image = self._topics.get(topic)
            if image is None or not 0 <= number < len(image.partitions):
                summarized(at, Summary(ErrorCode.NONE, start_offset=UNINITIALIZED))
            else:
                key = SharePartition(name, image.topic_id, number)
                self._states.summarize(key, partial(summarized, at))

    def _start_offset(self, key: tuple[str, int], summary: Summary) -> StartOffset:
        topic, number = key
        if summary.error_code is not ErrorCode.NONE:
            return StartOffset(number, 0, 0, -1, (summary.error_code, summary.message))
        lag, start, complete = -1, summary.start_offset, summary.complete
        end = self._ends(topic, number)
        if start != UNINITIALIZED and complete != UNKNOWN_COUNT and end is not None:
            lag = end - start - complete
        return StartOffset(number, start, summary.leader_epoch, lag)

    def _by_topic(
        self, asked: Sequence[tuple[str, Sequence[int]]], rows: Iterator[StartOffset]
    ) -> list[TopicRows]:
        return [
            TopicRows(topic, self._id_of(topic), tuple(next(rows) for _ in numbers))
            for topic, numbers in asked
        ]

    def _id_of(self, topic: str) -> bytes:
        image = self._topics.get(topic)
        return NO_ID if image is None else image.topic_id

    # --- altering

    def alter(
        self,
        name: str,
        asked: Sequence[tuple[str, Sequence[tuple[int, int]]]],
        done: Callable[[list[TopicRows]], None],
    ) -> None:
        """Let a group without members start elsewhere, and answer for each partition (number, offset). A
        group that does not exist is created."""
        known = self._shard.groups.get(name)
        group = known if isinstance(known, ShareGroup) else ShareGroup(name)
        codes: dict[tuple[str, int], Code] = {}
        wanted: dict[bytes, NamedPartitions] = {}
        offsets: dict[SharePartition, tuple[str, int]] = {}
        for topic, partitions in asked:
            image = self._topics.get(topic)
            for number, offset in partitions:
                if image is None or not 0 <= number < len(image.partitions):
                    codes[topic, number] = _UNKNOWN
                    continue
                before = wanted.get(image.topic_id, NamedPartitions(topic, frozenset()))
                wanted[image.topic_id] = before._replace(partitions=before.partitions | {number})
                offsets[SharePartition(name, image.topic_id, number)] = (topic, offset)

        def answer() -> None:
            done(
                [
                    TopicRows(
                        topic,
                        self._id_of(topic),
                        tuple((number, codes.get((topic, number), _FINE)) for number, _ in partitions),
                    )
                    for topic, partitions in asked
                ]
            )

        def initialized(results: Mapping[SharePartition, Code]) -> None:
            begun: dict[bytes, NamedPartitions] = {}
            for key, code in results.items():
                topic, _ = offsets[key]
                codes[topic, key.partition] = code
                if code == _FINE:
                    before = begun.get(key.topic_id, NamedPartitions(topic, frozenset()))
                    begun[key.topic_id] = before._replace(partitions=before.partitions | {key.partition})
            self._membership.note_initialized(group, wanted, begun, lambda code: answer())

        def written(code: ErrorCode) -> None:
            if code is not ErrorCode.NONE:
                codes.update({(topic, key.partition): (code, None) for key, (topic, _) in offsets.items()})
                answer()
                return
            _gather(
                list(offsets),
                lambda key, then: self._states.initialize(key, group.epoch, offsets[key][1], then),
                initialized,
            )

        if not offsets:
            answer()
            return
        states = group.states._replace(initializing=joined(group.states.initializing, wanted))
        self._shard.change_group(group, [(ShareStatesKey(name), states)], written)

    # --- deleting

    def delete(
        self, group: ShareGroup, topics: Sequence[str], done: Callable[[list[TopicCode]], None]
    ) -> None:
        """Forget where a group without members starts in topics, and answer for each."""
        initialized = group.states.initialized
        gone: dict[bytes, NamedPartitions] = {}
        refused: list[TopicCode] = []
        for topic in dict.fromkeys(topics):
            topic_id = self._id_of(topic)
            if topic_id == NO_ID:
                refused.append(TopicCode(topic, NO_ID, _UNKNOWN))
            elif topic_id not in initialized:
                refused.append(TopicCode(topic, NO_ID, _NOTHING))
            else:
                gone[topic_id] = initialized[topic_id]

        def deleted(codes: Mapping[bytes, Code]) -> None:
            rows = [TopicCode(named.topic, topic_id, codes[topic_id]) for topic_id, named in gone.items()]
            done(rows + refused)

        if gone:
            self._delete(group, gone, deleted)
        else:
            done(refused)

    def delete_all(self, group: ShareGroup, done: Callable[[ErrorCode], None]) -> None:
        """Forget where a group without members starts, so that the group itself can be deleted."""
        gone = group.states.initialized
        if not gone:
            done(ErrorCode.NONE)
            return

        def deleted(codes: Mapping[bytes, Code]) -> None:
            done(next((code for code, _ in codes.values() if code is not ErrorCode.NONE), ErrorCode.NONE))

        self._delete(group, gone, deleted)

    def _delete(
        self, group: ShareGroup, gone: StatePartitions, done: Callable[[Mapping[bytes, Code]], None]
    ) -> None:
        """Ask the share coordinators to forget partitions, and write that before and afterwards."""

        def failed(code: ErrorCode) -> None:
            done({topic_id: (code, None) for topic_id in gone})

        def deleted(results: Mapping[SharePartition, Code]) -> None:
            codes = dict.fromkeys(gone, _FINE)
            for key, code in results.items():
                if code != _FINE:
                    codes[key.topic_id] = code
            left = {topic: name for topic, name in group.states.deleting.items() if topic not in gone}
            states = group.states._replace(deleting=left)
            self._shard.change_group(
                group,
                [(ShareStatesKey(group.name), states)],
                lambda code: done(codes) if code is ErrorCode.NONE else failed(code),
            )

        def written(code: ErrorCode) -> None:
            if code is not ErrorCode.NONE:
                failed(code)
                return
            keys = [
                SharePartition(group.name, topic_id, number)
                for topic_id, named in gone.items()
                for number in sorted(named.partitions)
            ]
            _gather(keys, self._states.delete, deleted)

        states = group.states._replace(
            initialized=without(group.states.initialized, gone),
            deleting={**group.states.deleting, **{topic_id: named.topic for topic_id, named in gone.items()}},
        )
        self._shard.change_group(group, [(ShareStatesKey(group.name), states)], written)


def _gather(
    keys: Sequence[SharePartition],
    ask: Callable[[SharePartition, Callable[[ErrorCode, str | None], None]], None],
    done: Callable[[Mapping[SharePartition, Code]], None],
) -> None:
    """Ask about each of these partitions, of which there is at least one, and go on when all have been
    answered."""
    results: dict[SharePartition, Code] = {}

    def answered(key: SharePartition, code: ErrorCode, message: str | None) -> None:
        results[key] = (code, message)
        if len(results) == len(keys):
            done(results)

    for key in keys:
        ask(key, partial(answered, key))
