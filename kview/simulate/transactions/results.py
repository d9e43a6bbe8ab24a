"""A transaction coordinator's answers."""

from collections.abc import Callable
from typing import NamedTuple

from kview.simulate.codes import ErrorCode
from kview.simulate.results import ProducerIdResult


class EndResult(NamedTuple):
    """The answer to EndTxn, with the id and epoch that the producer has from now on, −1 if they stay."""

    error_code: ErrorCode
    producer_id: int = -1
    producer_epoch: int = -1


class DescribedTransaction(NamedTuple):
    """A transactional id, as DescribeTransactions and ListTransactions return it. Times are in ms, −1 without
    a transaction."""

    error_code: ErrorCode
    transactional_id: str
    state: str = ""
    timeout_ms: int = 0
    began_ms: int = -1
    producer_id: int = -1
    producer_epoch: int = -1
    partitions: tuple[tuple[str, int], ...] = ()


InitDone = Callable[[ProducerIdResult], None]
EndDone = Callable[[EndResult], None]
CodeDone = Callable[[ErrorCode], None]
