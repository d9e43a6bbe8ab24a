"""Exported tables: the values behind the figures, with their marks, in every table that can be exported."""

import csv
import importlib
import inspect
import io
import json
import math
import pkgutil
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kview.school.shows
import kview.tui.rows
import kview.tui.screens
import kview.tui.widgets
from kview.derive.brokers.controllers import Controller, ControllerState
from kview.derive.following import Following
from kview.derive.groups.readers import topic_readers
from kview.derive.view import View
from kview.language.lists import GroupList
from kview.language.payloads import Form
from kview.model.inspection import (
    Isolation,
    ProducersAnswer,
    ProducersRequest,
    QuotasAnswer,
    QuotasRequest,
    RecordsAnswer,
    RecordsRequest,
    SettingsAnswer,
    SettingsRequest,
)
from kview.model.lab import GroupSetting, LabSettings, LinkSetting, ProducerSetting, TopicSetting
from kview.model.tail import TailAnswer, TailRequest
from kview.model.units import NEVER, UNKNOWN
from kview.model.where import Candidate
from kview.school.demos import Listed
from kview.school.shows.answer_list import ChoiceRows
from kview.school.shows.demo_list import DemoRows
from kview.tui.export import Format, Writer, titles, values
from kview.tui.options import Options
from kview.tui.rows import group as group_rows
from kview.tui.rows.broker_details import BrokerDetails, SetRows
from kview.tui.rows.broker_replicas import BrokerReplicaRows
from kview.tui.rows.brokers import BrokerRows
from kview.tui.rows.connectors import ConnectorRows
from kview.tui.rows.figures import Figure
from kview.tui.rows.found import Found, FoundRows
from kview.tui.rows.groups import GroupRows
from kview.tui.rows.incidents import EventRows, HitRows, IncidentRows
from kview.tui.rows.lab import LabRows
from kview.tui.rows.matrix import MatrixRows
from kview.tui.rows.partitions import PartitionRows
from kview.tui.rows.placed import PlacedRows
from kview.tui.rows.placement import PlaceRows
from kview.tui.rows.producers import ProducerRows
from kview.tui.rows.quotas import QuotaRows
from kview.tui.rows.records import DetailRows, RecordRows
from kview.tui.rows.report import ReportRows
from kview.tui.rows.row import Rows
from kview.tui.rows.settings import SettingRows
from kview.tui.rows.tail import TailRows
from kview.tui.rows.throughput import ThroughputRows
from kview.tui.rows.topic_groups import TopicGroupRows
from kview.tui.rows.topic_list import TopicListRows
from kview.tui.rows.topics import ALL, TopicRows
from kview.tui.rows.wrong import WrongRows
from kview.tui.screens.commands import CommandRows
from kview.tui.screens.help import HelpRows
from kview.tui.screens.preferences import PreferenceRows
from kview.tui.screens.themes import ThemeRows
from kview.tui.text import content
from kview.tui.widgets.fleet import FleetRows
from kview.tui.widgets.header import Member, SourceInfo
from tests.tui.harness import BACK, CRASH, FENCED, HEALTHY, state
from tests.tui.inspecting import DAMAGE, FIRST, NOW_MS, PRODUCERS, QUOTAS, RECORDS, SETTINGS
from tests.tui.throughput_states import OFF, RUNNING, throughput_state
from tests.worlds import default_world, views, wide_snapshots
from tests.worlds.connect import with_connectors
from tests.worlds.kinds import CONNECT, CONSUMER, SHARE, of_every_kind

MARKS = {"", ">=", "~", "<=", "never"}
LISTED = Options(groups=GroupList.ALL, internal=True)
LATER_MS = 10_000
"""By then what was observed is old."""


LAB = LabSettings(
    (ProducerSetting("invoices", "invoice", 4_400.0, 4_400.0, False, 220, -1, 0, 0.0),),
    (GroupSetting("billing", ("invoice",), 3, 4, True, 0.0, 5_000),),
    (LinkSetting(4, 125_000_000, 125_000_000, 500),),
    (TopicSetting("invoice", 2, 2, 3),),
)
VOTERS = (
    Controller(100, ControllerState.ACTIVE, False, True, 0, UNKNOWN, UNKNOWN),
    Controller(101, ControllerState.LOST, False, True, 1_200, 65_000, UNKNOWN),
)


@cache
def world(name: str) -> View:
    """One of the views that tables are made of."""
    match name:
        case "every kind":
            (made,) = views([with_connectors(of_every_kind(default_world().tick()))])
            return made
        case "wide":
            return list(views(wide_snapshots(2_000, 3)))[-1]
        case "spark":
            return throughput_state(RUNNING)
        case "direct":
            return throughput_state(OFF)
    return state(name)


WORLDS = (HEALTHY, CRASH, FENCED, BACK, "every kind", "wide", "spark", "direct")


def of_view(view: View) -> Iterator[tuple[str, Rows]]:
    """Every table that is made of a view."""
    quotas = QuotasAnswer(QuotasRequest(), QUOTAS, asked_ms=NOW_MS)
    yield "brokers", BrokerRows(view, LISTED, VOTERS)
    yield "partitions", PartitionRows(view, LISTED)
    yield "groups", GroupRows(view, LISTED)
    yield "topic list", TopicListRows(view, LISTED)
    yield "topics", TopicRows(view, LISTED)
    for listed in ("topics", "brokers", "groups"):
        yield f"throughput of {listed}", ThroughputRows(view, LISTED, listed)
    for topic in (ALL, str(view.topics.topic[0])):
        yield "placement", MatrixRows(view, LISTED, topic, 118)
        yield "places", PlaceRows(view, LISTED, topic)
        yield "placed", PlacedRows(view, LISTED, topic, int(view.snapshot.brokers.id[0]))
    for broker in view.snapshot.brokers.id.tolist():
        yield "replicas", BrokerReplicaRows(view, broker, LISTED)
    for name in view.snapshot.groups.group.tolist():
        yield "offsets", group_rows.OffsetRows(view, name, LISTED)
        yield "members", group_rows.MemberRows(view, name, LISTED, quotas)
    for topic in view.topics.topic[:8].tolist():
        yield "topic groups", TopicGroupRows(view, topic, LISTED)
    yield "share", group_rows.ShareRows(view, SHARE)
    yield "connectors", ConnectorRows(view, CONNECT)
    yield "incidents", IncidentRows(view, LISTED, None)
    for incident in view.incidents:
        yield "hit", HitRows(incident, LISTED)
    yield "events", EventRows(view, LISTED, None)
    yield "lab", LabRows(LAB, view, LISTED, 0, False)
    at_ms = view.snapshot.observation.ended_ms
    yield "clusters", FleetRows([Member(SourceInfo("a"), at_ms, view, None)], LISTED, at_ms)


def of_answers() -> Iterator[tuple[str, Rows]]:
    """Every table that is made of an answer."""
    wanted = RecordsRequest("invoice", 0)
    answer = RecordsAnswer(wanted, RECORDS, DAMAGE, asked_ms=NOW_MS)
    yield "records", RecordRows(wanted, answer, Form.AUTO, None)
    candidates = tuple(Candidate(3, record) for record in RECORDS)
    found_records = Found("key = k", "invoice", Isolation.READ_COMMITTED, candidates=candidates)
    yield "records", FoundRows(found_records, Form.AUTO, None)
    followed = Following("invoice", Isolation.READ_COMMITTED)
    followed.take(TailAnswer(TailRequest("invoice"), candidates, ((3, 99),)))
    followed.pause()
    followed.go_on()
    followed.take(TailAnswer(TailRequest("invoice"), (), ((3, 199),)))  # leaves a gap
    yield "records", TailRows(followed, False, Form.AUTO, None)
    asked = ProducersRequest("invoice")
    yield "producers", ProducerRows(asked, ProducersAnswer(asked, PRODUCERS), None, None)
    yield "quotas", QuotaRows(QuotasAnswer(QuotasRequest(), QUOTAS), None)
    of_topic = SettingsRequest("invoice")
    found = SettingsAnswer(of_topic, SETTINGS)
    yield "settings", SettingRows(of_topic, found, "", None)
    yield "set", SetRows(BrokerDetails(settings=found))
    yield (
        "demos",
        DemoRows([Listed("crash", "A crash", 3, "what happens", ""), Listed("bad", "", 0, "", "no file")]),
    )


def written(rows: Rows, format: Format, now_ms: int) -> str:
    """A table as it is written to a file."""
    writer = Writer(format, rows.columns)
    made = [writer.row(values(rows, at, now_ms)) for at in range(len(rows))]
    return "".join([writer.begin(), *made, writer.end()])


def exported(rows: Rows, now_ms: int) -> list[dict[str, Any]]:
    """The rows that a reader of the JSON gets."""
    made: list[dict[str, Any]] = json.loads(written(rows, Format.JSON, now_ms))
    return made


FIGURE_TEXT = re.compile(
    r"[≥≤≈~+−-]? ?\d[\d,.]*( ?([kMGTPE]?B|ms|min|[smhd%])(/s)?)*( \d+ [smhd])?( [▲▼])?|.*\d,\d{3}.*"
)
SPARKS = re.compile("[▁▂▃▄▅▆▇█⡀-⣿]")
SENTENCES = {
    *("why", "note", "reason", "verdict", "details", "what", "health", "state", "value", "default", "isr")
}
"""Columns of words, which may name a figure: sentences, settings as Kafka has them, lists of brokers."""

OF_LINES = {DetailRows, ReportRows, HelpRows, ChoiceRows, CommandRows, PreferenceRows, ThemeRows, WrongRows}
"""Rows without any figures: lines of text, and what a window offers."""


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    ("name", "later_ms"), [*((name, LATER_MS) for name in WORLDS), (HEALTHY, 0), (CRASH, 0)]
)
def test_every_table_of_a_view_has_values_in_place_of_figures(name: str, later_ms: int) -> None:
    view = world(name)
    for table, rows in of_view(view):
        check(table, rows, view.snapshot.observation.ended_ms + later_ms)


def test_every_table_of_an_answer_has_values_in_place_of_figures() -> None:
    for table, rows in of_answers():
        assert len(rows), table
        check(table, rows, NOW_MS)


def test_no_kind_of_rows_is_left_out() -> None:
    checked = {type(rows) for name in WORLDS for _, rows in of_view(world(name))}
    checked |= {type(rows) for _, rows in of_answers()}
    there = set()
    for package in (kview.tui.rows, kview.tui.screens, kview.tui.widgets, kview.school.shows):
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(found.name)
            there |= {kind for _, kind in inspect.getmembers(module, inspect.isclass) if _is_rows(kind)}
    assert there == checked | OF_LINES


def _is_rows(kind: type) -> bool:
    """Return whether a class makes rows of something."""
    return issubclass(kind, Rows) and kind.row is not Rows.row


def check(table: str, rows: Rows, now_ms: int) -> None:
    """Assert that all cells of a table are exported as values that agree with what is drawn."""
    names = titles(rows.columns)
    assert len(set(names)) == len(names), f"{table}: {names}"
    for at in range(len(rows)):
        row = values(rows, at, now_ms)
        assert len(row) == len(names), table
        for cell, column in zip(rows.row(at, now_ms).cells, rows.columns, strict=True):
            drawn, where = content(cell).strip(), (table, column.key, content(cell))
            count = 1 if column.exported is None else len(column.exported)
            if isinstance(cell, Figure):
                assert set(cell.values[count:]) <= {"", None}, f"{where}: a value has no column"
                if column.right:
                    agrees(drawn, cell.values, where)
            elif count:
                assert not SPARKS.search(drawn), where
                is_words = column.key in SENTENCES or column.name
                assert is_words or not FIGURE_TEXT.fullmatch(drawn), where
                assert not (column.right and drawn), f"{where}: drawn as a figure, without a value"
        for title, value in zip(names, row, strict=True):
            if title.endswith(" bound"):
                assert value in MARKS | {None}, (table, title, value)
    as_csv = list(csv.DictReader(io.StringIO(written(rows, Format.CSV, now_ms), newline="")))
    for flat, typed in zip(as_csv, exported(rows, now_ms), strict=True):
        for title, value in typed.items():
            is_number = isinstance(value, int | float)
            assert (float(flat[title]) == value) if is_number else (flat[title] == (value or "")), (
                table,
                title,
            )


def agrees(drawn: str, found: Sequence[Any], where: object) -> None:
    """Assert that a figure has a value if it is drawn as known, and the mark that is drawn."""
    value, mark = found[0], found[1] if len(found) > 1 else ""
    words = ("", "–", "…", "≥…", "never", "not set", "forever", "compacted")
    assert value is None or isinstance(value, int | float), where
    assert (value is None) <= (drawn in words), f"{where}: a figure without a value"
    assert value is None or drawn not in ("–", "…", "never", "not set"), f"{where}: a value of nothing"
    for sign, meant in (("≥", ">="), ("≤", "<="), ("≈", "~")):
        if drawn.startswith(sign) and value is not None:
            assert mark == meant, where
    if value is not None and drawn[:1].isdigit() and "," in drawn:
        assert re.sub(r"[^\d].*", "", drawn.replace(",", "")) == f"{round(value)}", where


def numbers(of: NDArray[Any], scale: float = 1.0) -> list[float | None]:
    """The view's own values, None for what is not known."""
    nothing = (UNKNOWN,)
    return [
        None if not math.isfinite(each) or each in nothing or each >= NEVER else each / scale
        for each in of.tolist()
    ]


def by_key(rows: Rows, title: str, now_ms: int) -> dict[Any, Any]:
    """An exported column by the rows' keys."""
    return {rows.key(at): row[title] for at, row in enumerate(exported(rows, now_ms))}


@pytest.mark.parametrize("name", WORLDS)
def test_values_are_those_of_the_view(name: str) -> None:
    view = world(name)
    now_ms = view.snapshot.observation.ended_ms
    seen, topics, readers = view.snapshot, view.topics, topic_readers(view)
    offsets, mine = seen.offsets, view.offsets
    listed: list[tuple[Rows, list[Any], dict[str, list[float | None]]]] = [
        (
            GroupRows(view, LISTED),
            seen.groups.group.tolist(),
            {
                "lag": numbers(view.groups.lag),
                "behind s": numbers(view.groups.behind_ms, 1_000),
                "read/s": numbers(view.groups.read_rate),
                "write/s": numbers(view.groups.write_rate),
            },
        ),
        (
            BrokerRows(view, LISTED),
            seen.brokers.id.tolist(),
            {
                "in rec/s": numbers(view.brokers.in_rate),
                "out rec/s": numbers(view.brokers.out_rate),
                "disk bytes": numbers(seen.brokers.disk_bytes),
            },
        ),
        (
            PartitionRows(view, LISTED),
            list(zip(seen.partitions.topic.tolist(), seen.partitions.partition.tolist(), strict=True)),
            {
                "watermark": numbers(seen.partitions.high_watermark),
                "log end": numbers(seen.partitions.log_end),
                "in rec/s": numbers(view.partitions.in_rate),
                "isr": numbers(view.partitions.isr_count),
                "leader": numbers(np.where(seen.partitions.leader < -1, np.nan, seen.partitions.leader)),
            },
        ),
        (
            TopicListRows(view, LISTED),
            topics.topic.tolist(),
            {
                "in rec/s": numbers(topics.in_rate),
                "out rec/s": numbers(readers.out_rate),
                "size bytes": numbers(topics.size_bytes),
                "worst lag": numbers(readers.lag),
            },
        ),
    ]
    for group in seen.groups.group.tolist():
        rows = np.flatnonzero(offsets.group == group)
        keys = list(zip(offsets.topic[rows].tolist(), offsets.partition[rows].tolist(), strict=True))
        columns = {
            "LAG": numbers(mine.lag[rows]),
            "behind s": numbers(mine.behind_ms[rows], 1_000),
            "read/s": numbers(mine.read_rate[rows]),
            "caught up in s": numbers(mine.catch_up_ms[rows], 1_000),
        }
        listed.append((group_rows.OffsetRows(view, group, LISTED), keys, columns))
    for table, keys, columns in listed:
        for title, own in columns.items():
            assert by_key(table, title, now_ms) == dict(zip(keys, own, strict=True)), title


def test_rates_are_not_rounded() -> None:
    view = world(HEALTHY)
    found = by_key(TopicListRows(view, LISTED), "in rec/s", view.snapshot.observation.ended_ms)
    assert any(rate % 0.1 for rate in found.values() if rate), "a rate has more digits than are drawn"


def test_marks_are_those_of_the_view() -> None:
    view = world(CRASH)
    now_ms = view.snapshot.observation.ended_ms
    marks = by_key(GroupRows(view, LISTED), "lag bound", now_ms)
    is_bound = dict(zip(view.snapshot.groups.group.tolist(), view.groups.lag_is_bound.tolist(), strict=True))
    known = by_key(GroupRows(view, LISTED), "lag", now_ms)
    assert {name for name, mark in marks.items() if mark == ">="} == {
        name for name, bound in is_bound.items() if bound and known[name] is not None
    }
    assert ">=" in marks.values()
    steady = world(HEALTHY)
    assert "" in by_key(GroupRows(steady, LISTED), "lag bound", steady.snapshot.observation.ended_ms).values()


def test_a_value_of_an_old_answer_is_an_estimate() -> None:
    view = world(CRASH)
    now_ms = view.snapshot.observation.ended_ms
    rows = PartitionRows(view, LISTED)
    before, after = (by_key(rows, "watermark bound", at) for at in (now_ms, now_ms + LATER_MS))
    known = by_key(rows, "watermark", now_ms)
    assert "" in before.values(), "some leaders answered just now"
    assert {after[key] for key, value in known.items() if value is not None} == {"~"}


def test_ages_are_seconds_at_the_time_of_the_key() -> None:
    view = world(CRASH)
    now_ms = view.snapshot.observation.ended_ms + 250
    table = view.snapshot.brokers
    rows = exported(BrokerRows(view, LISTED), now_ms)
    silent = next(row for row in rows if row["state"] == "silent")
    (at,) = np.flatnonzero(table.id == silent["id"])
    assert silent["state s"] == (now_ms - int(table.since_ms[at])) / 1_000


def test_moments_are_those_of_a_calendar_in_utc() -> None:
    view = world(BACK)
    now_ms = view.snapshot.observation.ended_ms
    rows = EventRows(view, LISTED, None)
    times = [datetime.fromisoformat(row["at"]) for row in exported(rows, now_ms)]
    assert [round(at.timestamp() * 1_000) for at in times] == [event.at_ms for event in rows.events]
    assert all(row["at"].endswith("Z") and "." in row["at"] for row in exported(rows, now_ms))
    made = exported(dict(of_answers())["records"], NOW_MS)
    first = next(row for row in made if row["offset"] == FIRST)
    assert first["time"] == "2025-10-09T08:54:09.123Z"


def test_answers_have_their_own_figures() -> None:
    tables = {name: exported(rows, NOW_MS) for name, rows in of_answers()}
    limits = tables["quotas"]
    assert limits[0]["consume bytes/s"] == 1_000_000.0 and limits[0]["requests %"] == 50.0
    assert limits[0]["produce bytes/s"] is None and limits[3]["mutate/s"] == 2.5
    sizes = {one.offset: one.key.size + one.value.size for one in RECORDS}
    shown = {row["offset"]: row["size bytes"] for row in tables["records"] if row["offset"] in sizes}
    assert shown == sizes
    assert [row["open from offset"] for row in tables["producers"]] == [32, None, None]
    assert [row["last record"] is None for row in tables["producers"]] == [False, False, True]


def test_a_lab_says_what_is_set_as_numbers() -> None:
    rows = exported(LabRows(LAB, world(HEALTHY), LISTED, 0, False), NOW_MS)
    assert [(row["set to"], row["unit"], row["paused"], row["at first"]) for row in rows] == [
        (4_400.0, "records/s", "", 4_400.0),
        (3, "members", "paused", 4),
        (2, "min.insync.replicas", "", 2),
        (125_000_000, "bytes/s", "", 125_000_000),
    ]
    lag = numbers(world(HEALTHY).groups.lag)[world(HEALTHY).snapshot.groups.group.tolist().index("billing")]
    assert rows[1]["lag"] == lag


def test_members_and_the_partitions_they_are_to_have() -> None:
    view = world("every kind")
    rows = exported(group_rows.MemberRows(view, CONSUMER, LISTED), NOW_MS)
    titles = ("consumer id", "owns", "is to own", "to give back", "to get")
    assert [tuple(row[title] for title in titles) for row in rows] == [("m1", 3, 2, 1, 0), ("m2", 1, 2, 0, 1)]


def test_an_incident_has_bounds_where_its_titles_have_them() -> None:
    view = world(BACK)
    (one,) = view.incidents
    (row,) = exported(IncidentRows(view, LISTED, None), view.snapshot.observation.ended_ms)
    assert (row["waited s"], row["waited bound"]) == (one.waited_ms / 1_000, "<=")
    assert row["hit"] == one.partitions and row["moved"] == one.moved
    assert row["gone"] == (None if one.gone == UNKNOWN else one.gone)


def test_placement_counts_replicas() -> None:
    view = world("wide")
    rows = PlaceRows(view, LISTED, ALL)
    own = view.snapshot.partitions.replicas[:, 0]
    found = by_key(rows, "1ST (preferred) replicas", NOW_MS)
    assert found == {broker: int((own == broker).sum()) for broker in found} and max(found.values()) > 300
