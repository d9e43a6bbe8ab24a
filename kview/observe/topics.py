"""Whether Metadata (3) may leave out topics that kview is not authorized to see.

Asked for a topic that does not exist, Kafka answers with error 3, or with 29 if the client may not see every
topic.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from kafka.protocol.metadata import MetadataRequest

from kview.model.failures import Part, refused
from kview.model.units import NO_BROKER
from kview.observe.access import Access
from kview.observe.apis import METADATA, Versions
from kview.observe.state import State

NO_SUCH_TOPIC = "kview.no-such-topic"
REFUSED = 29
"""Kafka's error number TOPIC_AUTHORIZATION_FAILED."""
MOST_NAMES = 100
"""Limit of the names in a request. One of them that is refused is enough."""
_VERSION = 4
"""The first version that does not create the topic, which brokers of any age support."""


def can_ask(versions: Versions) -> bool:
    """Return whether a broker can be asked for a topic without creating it."""
    low, high = versions.get(METADATA, (0, -1))
    return low <= _VERSION <= high


def request(names: Sequence[str] = (NO_SUCH_TOPIC,)) -> Any:
    """Build a request for topics that do not exist, or may no longer exist."""
    topic = MetadataRequest.MetadataRequestTopic
    return MetadataRequest(
        version=_VERSION,
        topics=[topic(version=_VERSION, name=name) for name in names],
        allow_auto_topic_creation=False,
    )


def is_refused(answer: Any) -> bool:
    """Return whether the broker refuses to let kview see one of the topics."""
    return any(topic.error_code == REFUSED for topic in answer.topics)


def may_be_hidden(state: State, access: Access) -> bool:
    """Return whether the cluster may have rules about what kview may see.

    It has none if brokers do not know kview by a name and let it list all groups.
    """
    return access.has_principal or state.lists_all_groups is False


def to_ask_again(before: AbstractSet[str], now: AbstractSet[str], is_failing: bool) -> Sequence[str]:
    """Return the names to ask for after the list of topics changed, to learn whether it lacks some now.

    `is_failing` says whether it lacked some before.
    """
    if gone := sorted(before - now):
        return gone[:MOST_NAMES]
    return (NO_SUCH_TOPIC,) if is_failing and now - before else ()


def take(state: State, answer: Any, names: Sequence[str], before_ms: int, at_ms: int) -> None:
    """Store what an answer about the names of `to_ask_again` says about the list of topics.

    At `before_ms`, the list had not changed yet.
    """
    key = (Part.TOPICS, NO_BROKER)
    if is_refused(answer):
        if key not in state.failures:
            state.succeeded(*key, before_ms)
        state.failed(*key, refused(REFUSED))
    elif NO_SUCH_TOPIC in names:
        state.succeeded(*key, at_ms)
