"""Answers what somebody asks on demand: records of a partition, and all settings of a topic or a broker."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from kafka.protocol.admin import DescribeConfigsRequest

from kview.model.failures import NOT_AUTHORIZED, refused
from kview.model.inspection import (
    MOST_RECORDS,
    Cost,
    InspectionFailure,
    RecordsAnswer,
    RecordsRequest,
    Setting,
    SettingsAnswer,
    SettingSource,
    SettingsRequest,
    SettingValue,
)
from kview.model.inspection import InspectionFailureKind as Kind
from kview.model.units import NO_BROKER
from kview.observe.asking import DEADLINE_S, POLL_S, Asking, Cancelled, OutOfTime, Ticket
from kview.observe.causes import LinkError
from kview.observe.configs import BROKER_RESOURCE, TOPIC_RESOURCE
from kview.observe.links import Links
from kview.observe.loop import Loop
from kview.observe.peek import UNKNOWN_TOPIC, Peek
from kview.observe.settings import ObserveSettings
from kview.observe.state import State

_log = logging.getLogger(__name__)

_SOURCES = {
    1: SettingSource.TOPIC,
    2: SettingSource.BROKER,
    3: SettingSource.CLUSTER,
    4: SettingSource.STATIC,
    5: SettingSource.DEFAULT,
}
"""Kafka's numbers of where a setting comes from."""

Question = RecordsRequest | SettingsRequest
Answer = RecordsAnswer | SettingsAnswer


class Inspection:
    """Answers questions one after the other, on connections of its own."""

    def __init__(
        self, loop: Loop, settings: ObserveSettings, state: State, links: Links, with_records: bool
    ) -> None:
        self._loop = loop
        self._state = state
        self._with_records = with_records
        self._asking = Asking(loop, settings, state, links, with_records)
        self._busy = False

    def close(self) -> None:
        """Close the connections."""
        self._asking.close()

    async def answer(self, question: Question, ticket: Ticket) -> Answer:
        """Answer a question. A bug in kview becomes a failure, and a traceback in the log.

        What was read is in no exception's text, so that it does not get into the log.
        """
        ticket.deadline_s = self._loop.monotonic() + DEADLINE_S
        while self._busy:
            if ticket.cancelled or self._loop.monotonic() >= ticket.deadline_s:
                return nothing(question, Kind.TIMEOUT)
            await self._loop.net.sleep(POLL_S)
        self._busy = True
        try:
            work = self._records if isinstance(question, RecordsRequest) else self._settings
            done: Callable[[Any, Ticket], Awaitable[Answer]] = work
            return await done(question, ticket)
        except Cancelled:
            return nothing(question, Kind.TIMEOUT)
        except Exception:
            _log.exception("a question could not be answered")
            return nothing(question, Kind.NO_ANSWER)
        finally:
            self._busy = False
            self._asking.idle()

    async def _records(self, request: RecordsRequest, ticket: Ticket) -> RecordsAnswer:
        if not self._with_records:
            return RecordsAnswer(request, failure=InspectionFailure(Kind.SWITCHED_OFF))
        if not 0 < request.count <= MOST_RECORDS:
            raise ValueError(f"{request.count} records")
        before, asked_ms = self._asking.cost, self._loop.clock_ms()
        peek = Peek(self._asking, request, ticket, self._leader(request))
        failure = await peek.run()
        return peek.answer(failure, _spent(before, self._asking.cost), asked_ms)

    def _leader(self, request: RecordsRequest) -> int:
        """Return the leader as the last observation had it, −1 if it has none."""
        layout = self._state.layout
        start, end = layout.first.get(request.topic, (0, 0))
        for row in range(start, end):
            if layout.partition[row] == request.partition:
                return int(layout.leader[row])
        return NO_BROKER

    async def _settings(self, request: SettingsRequest, ticket: Ticket) -> SettingsAnswer:
        before, asked_ms = self._asking.cost, self._loop.clock_ms()
        settings, failure = await self._described(request, ticket)
        cost = _spent(before, self._asking.cost)
        return SettingsAnswer(request, settings, failure, cost, asked_ms)

    async def _described(
        self, request: SettingsRequest, ticket: Ticket
    ) -> tuple[tuple[Setting, ...], InspectionFailure]:
        able = self._asking.brokers() if request.topic else [request.broker]
        if not able:
            return (), InspectionFailure(Kind.NOT_CONNECTED)
        broker = able[0]
        try:
            answer = await self._asking.ask(broker, lambda _: settings_request(request), ticket)
        except LinkError as error:
            return (), InspectionFailure(Kind.NO_ANSWER, broker, error.cause)
        except OutOfTime:
            return (), InspectionFailure(Kind.TIMEOUT, broker)
        result = answer.results[0]
        if result.error_code in NOT_AUTHORIZED:
            return (), InspectionFailure(Kind.NOT_AUTHORIZED, broker, refused(result.error_code))
        if result.error_code == UNKNOWN_TOPIC:
            return (), InspectionFailure(Kind.UNKNOWN_TOPIC, broker)
        if result.error_code:
            return (), InspectionFailure(Kind.NO_ANSWER, broker, refused(result.error_code))
        return tuple(sorted(map(_setting, result.configs), key=lambda one: one.name)), InspectionFailure()


def nothing(question: Question, kind: Kind) -> Answer:
    """Return the answer that there is none."""
    failure = InspectionFailure(kind)
    if isinstance(question, RecordsRequest):
        return RecordsAnswer(question, failure=failure)
    return SettingsAnswer(question, failure=failure)


def settings_request(request: SettingsRequest) -> Any:
    """Build the request for all settings of a topic or a broker, with the values that they hide."""
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=TOPIC_RESOURCE if request.topic else BROKER_RESOURCE,
        resource_name=request.topic or str(request.broker),
        configuration_keys=None,
    )
    return DescribeConfigsRequest(resources=[resource], include_synonyms=True)


def _setting(row: Any) -> Setting:
    synonyms = tuple(
        SettingValue(one.value, _SOURCES.get(one.source, SettingSource.OTHER), one.name)
        for one in row.synonyms or ()
    )
    return Setting(
        row.name,
        None if row.is_sensitive else row.value,
        _SOURCES.get(row.config_source, SettingSource.OTHER),
        bool(row.is_sensitive),
        bool(row.read_only),
        tuple(SettingValue(None, one.source, one.name) for one in synonyms) if row.is_sensitive else synonyms,
    )


def _spent(before: Cost, after: Cost) -> Cost:
    return Cost(after.requests - before.requests, after.bytes - before.bytes)
