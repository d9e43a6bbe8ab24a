"""The states of connectors and their tasks, read from Kafka Connect's REST API.

Workers answer with what they have read from the status topic, so any of them knows all connectors. While a
worker starts it answers 404, and a connector that has no status yet is left out.

The API is read on a thread of its own, at most once at a time, and nothing waits for it.
"""

import logging
import ssl
import sys
from collections.abc import Mapping
from functools import partial
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kview.config.connect_rest import ConnectRest
from kview.model.failures import REFUSALS, Cause, FailureKind, Part
from kview.model.snapshot import Connectors
from kview.model.states import GroupType
from kview.model.units import CONNECTOR_TASK, NO_BROKER
from kview.observe.causes import LinkError, Refused
from kview.observe.groups.facts import GroupFacts
from kview.observe.layout import strings
from kview.observe.loop import Loop
from kview.observe.rest import UNAUTHORIZED, Rest, get
from kview.observe.settings import ObserveSettings
from kview.observe.state import State

_log = logging.getLogger(__name__)

MOST_PAUSE = 4
"""How many times as long the longest pause is as the usual one. It doubles with each failure in a row."""
SLACK_S = 1.0
"""How much later than its deadline a request may end before it counts as overdue."""
MOST_BYTES = 8 << 20
"""The longest answer that is read. A task takes 100 bytes, and the trace of a failed one up to 10 kB."""
MOST_ROWS = 20_000
"""The most connectors and tasks. A worker runs some hundred at most."""
MOST_NAME = 1_000
MOST_LINE = 200
"""The most characters of a name and of a line of a trace."""
PATH = "/connectors?expand=status"

_CAUSED_BY = "Caused by: "
"""How Java begins the line of an exception that is the cause of the one before it."""


class _State(Struct):
    state: str
    worker_id: str = ""
    trace: str | None = None


class _Task(_State, kw_only=True):
    id: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]


class _Status(Struct):
    connector: _State
    tasks: list[_Task]
    type: str = ""


class _Entry(Struct):
    status: _Status


def read(rest: ConnectRest, context: ssl.SSLContext | None, within_s: float) -> Connectors:
    """Ask for all states, and wait for the answer. Raises LinkError or Refused, which name no secret."""
    server = Rest(rest.url, MOST_BYTES, rest.user, rest.password, context=context)
    return decoded(get(server, PATH, within_s))


def decoded(body: bytes) -> Connectors:
    """Return the table of an answer's states, without the group. Raises Refused."""
    try:
        entries = msgspec.json.decode(body, type=dict[str, _Entry])
    except (msgspec.MsgspecError, RecursionError):
        raise Refused(Cause(FailureKind.MALFORMED)) from None
    if sum(1 + len(entry.status.tasks) for entry in entries.values()) > MOST_ROWS:
        raise Refused(Cause(FailureKind.TOO_LARGE))
    found_at: dict[tuple[str, int], tuple[str, _State]] = {}
    for name, entry in entries.items():
        status, short = entry.status, sys.intern(name[:MOST_NAME])
        kind = status.type if status.type in ("source", "sink") else ""
        found_at[short, CONNECTOR_TASK] = kind, status.connector
        found_at |= {(short, task.id): (kind, task) for task in status.tasks}
    rows = [(*key, *found_at[key]) for key in sorted(found_at)]
    traces = [_reasons(row[3].trace or "") for row in rows]
    return Connectors(
        group=strings([""] * len(rows)),
        connector=strings([row[0] for row in rows]),
        task=np.array([row[1] for row in rows], np.int32),
        kind=strings([row[2] for row in rows]),
        state=strings([row[3].state[:MOST_NAME] for row in rows]),
        worker=strings([row[3].worker_id[:MOST_NAME] for row in rows]),
        trace=strings([trace for trace, _ in traces]),
        root_cause=strings([cause for _, cause in traces]),
    )


def _reasons(trace: str) -> tuple[str, str]:
    """Return the first line of a Java trace, and its last cause, '' if it names none."""
    lines = [line.strip() for line in trace.splitlines()]
    first = next(filter(None, lines), "")
    causes = (line.removeprefix(_CAUSED_BY) for line in reversed(lines) if line.startswith(_CAUSED_BY))
    return first[:MOST_LINE], next(causes, "")[:MOST_LINE]


def of_group(table: Connectors, groups: Mapping[str, GroupFacts], before: str = "") -> Connectors:
    """Return the table with the group whose workers run these connectors, '' if that is not known.

    The API does not tell its group, and workers of several Connect clusters may use the same Kafka cluster.
    During a rebalance nobody tells what they run, so `before` stays, the group that was found before.
    """
    names = set(table.connector.tolist())
    shared = {
        known.group: sum(name in names for member in known.members for name in member.connectors)
        for known in groups.values()
        if known.type == GroupType.CONNECT
    }
    most = max(shared.values(), default=0)
    candidates = [group for group, count in shared.items() if count == most]
    group = before if before in shared else ""
    if most and len(candidates) == 1:
        group = candidates[0]
    if not len(table) or table.group[0] == group:
        return table
    return replace(table, group=strings([group] * len(table)))


class ConnectorReader(Struct):
    """Reads the states again and again, if the profile names a REST API."""

    loop: Loop
    settings: ObserveSettings
    state: State
    _since_s: float | None = None
    """Since when (monotonic) a request has been in flight, None if none is."""
    _due_s: float = 0.0
    _group: str = ""
    """The group of the workers, as far as it has been found."""
    _failures: int = 0
    """How many requests in a row have failed."""

    @property
    def idle(self) -> bool:
        """Whether no request to Connect's REST API is in flight."""
        return self._since_s is None

    def step(self) -> None:
        """Send a request if it is due. Its answer is used when it arrives."""
        rest, now_s = self.loop.access.security.connect, self.loop.monotonic()
        if rest is None:
            return
        self._take(self.state.connectors)
        if self._since_s is not None:
            # Only a look-up of the name, and several addresses that do not answer, can take longer.
            if now_s - self._since_s > self.settings.connectors_within_s + SLACK_S:
                self.state.failed(Part.CONNECTORS, NO_BROKER, Cause(FailureKind.OVERDUE))
            return
        if now_s < self._due_s:
            return
        if not self._due_s:
            self.state.failed(Part.CONNECTORS, NO_BROKER, Cause(FailureKind.NOT_CONNECTED))
        self._since_s = now_s
        self.loop.spawn(partial(self._read, rest, self.loop.access.rest if rest.has_tls else None))

    async def _read(self, rest: ConnectRest, context: ssl.SSLContext | None) -> None:
        within_s = self.settings.connectors_within_s
        try:
            self._take(await self.loop.in_thread(lambda: read(rest, context, within_s), "connect"))
        except (LinkError, Refused) as error:
            await self._failed(self.loop.access.told(error.cause))
        except Exception:
            _log.warning("the connectors could not be read", exc_info=True)
            await self._failed(Cause(FailureKind.OTHER))
        else:
            self._failures = 0
            self.state.succeeded(Part.CONNECTORS, NO_BROKER, self.loop.clock_ms())
        finally:
            pause = min(MOST_PAUSE, 2 ** max(0, self._failures - 1))
            self._since_s, self._due_s = None, self.loop.monotonic() + pause * self.settings.connectors_s

    def _take(self, table: Connectors) -> None:
        """Store the states, with the group as far as it is known now."""
        self.state.connectors = of_group(table, self.state.groups, self._group)
        if len(table):
            self._group = str(self.state.connectors.group[0])

    async def _failed(self, cause: Cause) -> None:
        """Note the failure. If the login or a certificate is refused, read the settings again."""
        self._failures = min(self._failures + 1, 10)
        self.state.failed(Part.CONNECTORS, NO_BROKER, cause)
        if cause.kind in REFUSALS or cause.code in UNAUTHORIZED:
            await self.loop.renewal.renew(self.loop)
