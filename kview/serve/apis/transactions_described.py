"""DescribeTransactions (65) 0 and ListTransactions (66) 0–2: the transactions that this broker coordinates.

ListTransactions: v1 adds a filter by duration, v2 by a pattern of the transactional id.
"""

import re
from collections.abc import Mapping
from typing import Any

from kafka.protocol.admin.transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)

from kview.serve.apis.gather import by_topic
from kview.serve.call import Api, Call, Steps
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.codes import ErrorCode
from kview.simulate.transactions.records import TransactionState
from kview.simulate.transactions.results import DescribedTransaction

PATTERN_CHARACTERS, MATCHED_CHARACTERS = 255, 1_000
_SLOW = re.compile(r"\)[*+?{]|\\[1-9]|\(\?")
"""A repeated group, a reference to one, or anything else that is not plain."""
_REPEATS = re.compile(r"[*+]|\{\d*,\}")

NOTHING_KNOWN: Mapping[str, Any] = {
    "transaction_state": "",
    "transaction_timeout_ms": 0,
    "transaction_start_time_ms": 0,
    "producer_id": 0,
    "producer_epoch": 0,
    "topics": [],
}
"""The fields of a transactional id that is not known."""

STATES = frozenset(state.called for state in TransactionState)


def describe_transactions(call: Call) -> Steps:
    """Describe each of the transactional ids."""
    states = []
    for name in call.request.transactional_ids:
        states.append(_described(call, _known(call, name)))
        yield
    call.answer(DescribeTransactionsResponse(version=call.version, transaction_states=states))


def _known(call: Call, name: str) -> DescribedTransaction:
    if call.may(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, name):
        return call.cluster.transactions(call.broker).describe(name)
    return DescribedTransaction(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, name)


def _described(call: Call, known: DescribedTransaction) -> Any:
    version = call.version
    state = DescribeTransactionsResponse.TransactionState
    if known.error_code:
        name = known.transactional_id
        return state(version=version, error_code=known.error_code, transactional_id=name, **NOTHING_KNOWN)
    return state(
        version=version,
        error_code=known.error_code,
        transactional_id=known.transactional_id,
        transaction_state=known.state,
        transaction_timeout_ms=known.timeout_ms,
        transaction_start_time_ms=known.began_ms,
        producer_id=known.producer_id,
        producer_epoch=known.producer_epoch,
        topics=[
            state.TopicData(version=version, topic=topic, partitions=partitions)
            for topic, partitions in by_topic(known.partitions).items()
            if call.may(AclOperation.DESCRIBE, ResourceType.TOPIC, topic)
        ],
    )


def list_transactions(call: Call) -> None:
    """List the transactional ids that pass the filters."""
    request, version = call.request, call.version
    now_ms = call.cluster.kernel.now_us // 1000
    wanted, producers = set(request.state_filters), set(request.producer_id_filters)
    least_ms = request.duration_filter if version >= 1 else -1
    pattern = (request.transactional_id_pattern if version >= 2 else None) or ""
    code, listed = call.cluster.transactions(call.broker).listed()
    matches = None
    try:
        if pattern:
            matches = _compiled(pattern).fullmatch
    except (re.error, RecursionError, OverflowError):
        code, listed = ErrorCode.INVALID_REGULAR_EXPRESSION, ()
    rows = [
        each
        for each in listed
        if call.may(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, each.transactional_id)
        and (not wanted or each.state in wanted)
        and (not producers or each.producer_id in producers)
        and (least_ms < 0 or now_ms - each.began_ms > least_ms)
        and (matches is None or matches(each.transactional_id[:MATCHED_CHARACTERS]))
    ]
    call.answer(
        ListTransactionsResponse(
            version=version,
            error_code=code,
            unknown_state_filters=list(dict.fromkeys(s for s in request.state_filters if s not in STATES)),
            transaction_states=[
                ListTransactionsResponse.TransactionState(
                    version=version,
                    transactional_id=each.transactional_id,
                    producer_id=each.producer_id,
                    transaction_state=each.state,
                )
                for each in rows
            ],
        )
    )


def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern that takes little time to match, whatever the text. Raises re.error for any other.

    Kafka's engine is linear, Python's is not.
    """
    if len(pattern) > PATTERN_CHARACTERS or _SLOW.search(pattern) or len(_REPEATS.findall(pattern)) > 2:
        raise re.error("a pattern that may take long")
    return re.compile(pattern)


APIS = (
    Api(65, DescribeTransactionsRequest, (0, 0), describe_transactions),
    Api(66, ListTransactionsRequest, (0, 2), list_transactions),
)
