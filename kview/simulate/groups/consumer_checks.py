"""What is wrong with a heartbeat of a consumer group's member, in Kafka's words.

Sources: GroupCoordinatorService and GroupMetadataManager.
"""

from collections.abc import Sequence

from kview.simulate.codes import ErrorCode
from kview.simulate.groups.consumer_group import AWAY_EPOCH, LEFT_EPOCH, ConsumerMember
from kview.simulate.groups.consumer_records import OwnedPartitions, Partitions
from kview.simulate.groups.consumer_results import ConsumerHeartbeat, Refused

TOPICS_MAX = 20_000
"""Limit of the topics that a member names, more than a cluster has. Kafka's limit is the size of a record."""


def check(request: ConsumerHeartbeat, assignors: Sequence[str]) -> None:
    """Check a request by itself. `assignors` are those that there are. Raises Refused."""
    epoch = request.member_epoch
    if request.makes_its_id or epoch > 0 or epoch == LEFT_EPOCH:
        _check_text(request.member_id, "MemberId")
    _check_text(request.group, "GroupId")
    _check_text(request.instance_id, "InstanceId")
    _check_text(request.rack_id, "RackId")
    wrong = None
    if epoch == 0:
        if request.rebalance_timeout_ms == -1:
            wrong = "RebalanceTimeoutMs must be provided in first request."
        elif request.owned is None or request.owned:
            wrong = "TopicPartitions must be empty when (re-)joining."
        elif request.topics is None and request.regex is None:
            wrong = "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    elif epoch == AWAY_EPOCH and request.instance_id is None:
        wrong = "InstanceId can't be null."
    elif epoch < AWAY_EPOCH:
        wrong = "MemberEpoch is invalid."
    if wrong is not None:
        raise Refused(ErrorCode.INVALID_REQUEST, wrong)
    if len(request.topics or ()) > TOPICS_MAX:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, f"A member names more than {TOPICS_MAX} topics.")
    if request.assignor is not None and request.assignor not in assignors:
        message = (
            f"ServerAssignor {request.assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}."
        )
        raise Refused(ErrorCode.UNSUPPORTED_ASSIGNOR, message)


def _check_text(text: str | None, name: str) -> None:
    if text is not None and not text.strip():
        raise Refused(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")


def check_epoch(member: ConsumerMember, request: ConsumerHeartbeat) -> None:
    """Check the epoch with which a member comes. Raises Refused."""
    epoch, known = request.member_epoch, member.current.epoch
    if epoch in (0, known):
        return
    previous = epoch == member.current.previous_epoch
    if epoch < known and previous and _is_part(request.owned, member.current.assigned):
        return  # The answer with the new epoch may have been lost.
    word = "greater" if epoch > known else "smaller"
    message = (
        f"The consumer group member has a {word} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({known}). The member must abandon all its partitions and rejoin."
    )
    raise Refused(ErrorCode.FENCED_MEMBER_EPOCH, message)


def _is_part(owned: Partitions | None, assigned: OwnedPartitions) -> bool:
    if owned is None:
        return False
    return all(
        topic in assigned and assigned[topic].keys() >= partitions for topic, partitions in owned.items()
    )
