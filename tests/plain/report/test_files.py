"""A report as JSON, CSV, Parquet and page: the same figures everywhere, and names that do no harm."""

import csv
import html.parser
import json
from datetime import UTC
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from kview.model.events import Severity
from kview.model.report import Note, NoteKind, Report
from kview.model.report_tables import TABLES, TableName, table_of
from kview.plain.report.cards import bars, cards
from kview.plain.report.documents import all_tables, csv_file, json_document, write_folder, write_parquet
from kview.plain.report.page import page
from kview.plain.report.plots import incident_spans, plots
from tests.plain.report.sample import START_MS, compared, empty, fleet, sample
from tests.plain.report.test_text import with_table


def document(report: Report) -> dict[str, Any]:
    """Return the JSON document, with each table's rows alone."""
    loaded: dict[str, Any] = json.loads(json_document(report))
    for period in (loaded, loaded.get("against", {"tables": {}})):
        period["tables"] = {name: table["rows"] for name, table in period["tables"].items()}
    if "comparison" in loaded:
        loaded["comparison"] = loaded["comparison"]["rows"]
    return loaded


def test_json_has_every_row_and_null_for_what_is_unknown() -> None:
    tables = document(sample())["tables"]
    assert set(tables) == {name.value for name in TABLES}
    assert tables["topics"][2]["skew"] is None and tables["topics"][2]["offline_s"] == 61
    assert tables["incidents"][1]["ended_ms"] is None


def test_csv_and_parquet_say_what_json_says(tmp_path: Path) -> None:
    report = compared()
    write_folder(report, tmp_path, "csv", csv_file)
    write_folder(report, tmp_path, "parquet", write_parquet)
    loaded = document(report)
    expected = {**loaded["tables"], "comparison": loaded["comparison"]}
    expected |= {f"against_{name}": rows for name, rows in loaded["against"]["tables"].items()}
    assert set(all_tables(report)) == set(expected)
    for name, rows in expected.items():
        assert pq.read_table(tmp_path / f"{name}.parquet").to_pylist() == rows
        with (tmp_path / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            texts = list(csv.DictReader(file))
        assert texts == [
            {key: "" if value is None else str(value) for key, value in row.items()} for row in rows
        ]


class Cells(html.parser.HTMLParser):
    """Collects the cells of a page's tables: table → rows → field → value."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[str, list[dict[str, str]]] = {}
        self.tags: list[str] = []
        self._rows: list[dict[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        if "data-table" in given:
            self._rows = self.tables.setdefault(given["data-table"], [])
        if tag == "tr":
            self._rows.append({})
        if tag == "td" and "data-field" in given:
            self._rows[-1][given["data-field"]] = given.get("data-value", "None")


def assert_figures_of_json(made: str, report: Report) -> None:
    """Each cell of a page is a figure of the JSON document, and each row of the document is there."""
    cells, loaded = Cells(), document(report)
    cells.feed(made)
    rows_of = {**loaded["tables"], "availability": loaded["tables"]["topics"]}
    if "comparison" in loaded:
        rows_of["comparison"] = loaded["comparison"]
    seen = 0
    for name, rows in cells.tables.items():
        for row in filter(None, rows):
            matching = [one for one in rows_of[name] if all(str(one[key]) == row[key] for key in row)]
            assert matching, (name, row)
            seen += len(row)
    assert seen > 120
    elsewhere = {"throughput"} | ({"clusters"} if len(rows_of["clusters"]) == 1 else set())
    assert set(cells.tables) == set(rows_of) - elsewhere
    for name in set(rows_of) - elsewhere - {"availability"}:
        assert len(list(filter(None, cells.tables[name]))) == len(rows_of[name]), name


@pytest.mark.parametrize("report", [compared(), fleet(3)], ids=["compared", "fleet"])
def test_the_page_has_the_figures_of_the_json(report: Report) -> None:
    assert_figures_of_json(page(report, UTC), report)


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", '"><img src=x>', "$x^2$", "_hidden", "a\nb", "\ud800"]
)
def test_names_do_no_harm_on_the_page(name: str) -> None:
    cells = Cells()
    report = with_table(TableName.TOPICS, topic=[name, "b", "c"])
    throughput = report[TableName.THROUGHPUT]
    throughput["topic"][throughput["topic"] == "invoice"] = name
    made = page(report, UTC)
    made.encode()
    cells.feed(made)
    assert not {"script", "img", "link", "iframe"} & set(cells.tags)
    assert "http:" not in made.replace("http://www.w3.org", "") and "https:" not in made
    json_document(report)


def test_a_report_about_nothing_has_a_page() -> None:
    assert "<h1>0 clusters</h1>" in page(empty(), UTC)


def test_four_figures_come_first_and_what_is_not_known_is_not_none() -> None:
    worst, lag, records, incidents = cards(sample())
    assert (worst.figure, worst.note, worst.severity) == ("99.51 %", "audit-log", Severity.RISK)
    assert (lag.figure, lag.note, lag.severity) == ("≈7 m 40 s", "audit-export", Severity.WARN)
    assert (records.figure, records.note) == ("28 M", "7,900 per second on average")
    assert (incidents.figure, incidents.note) == ("2", "the longest: ≥10 m")
    assert [card.figure for card in cards(empty())] == ["–"] * 4
    nothing = table_of(TableName.INCIDENTS, {})
    calm = replace(sample().period, tables={**sample().period.tables, TableName.INCIDENTS: nothing})
    assert cards(sample(period=calm))[3].figure == "0"
    partial = replace(calm, notes=(Note(NoteKind.FACTS_INCOMPLETE, {"recording": "r"}),))
    assert cards(sample(period=partial))[3].figure == "–", "some facts are missing"


def test_a_topics_bar_has_the_shares_of_its_time() -> None:
    shown, more = bars(sample())
    assert shown[0].topic == "audit-log" and more == 0
    for bar in shown:
        assert bar.answering + bar.silent + bar.offline == pytest.approx(1)
    table = sample()[TableName.TOPICS]
    assert shown[0].offline == pytest.approx(1 - float(table["available"][2]))
    many = with_table(
        TableName.TOPICS,
        topic=[f"t{n}" for n in range(3)],
        available=[1.0, 0.5, float("nan")],
        answering=[1.0, 0.25, float("nan")],
    )
    shown, _ = bars(many)
    assert [(bar.topic, bar.offline, bar.silent) for bar in shown] == [("t1", 0.5, 0.25), ("t0", 0.0, 0.0)]


def test_incidents_are_bands_in_the_plots_of_the_page() -> None:
    assert incident_spans(sample(), "") == [
        (START_MS + 1_200_300, START_MS + 1_221_400),
        (START_MS + 3_000_000, sample().period.until_ms),
    ]
    assert incident_spans(sample(), "another") == [], "of another cluster"
    with_bands = page(sample(), UTC).count("fill: var(--risk)")
    assert with_bands == 2 * len(plots(sample()))


def test_nothing_is_called_well_that_was_not_seen() -> None:
    whole = {"available": [1.0] * 3, "answering": [1.0] * 3}
    assert cards(with_table(TableName.TOPICS, **whole))[0].note == "every topic, all the time"
    unknown = {"available": [1.0, 1.0, float("nan")], "answering": [1.0, 1.0, float("nan")]}
    assert cards(with_table(TableName.TOPICS, **unknown))[0].note == ""
    silent = {"available": [1.0] * 3, "answering": [1.0, 0.5, 1.0]}
    card = cards(with_table(TableName.TOPICS, **silent))[0]
    assert (card.figure, card.note, card.severity) == ("50 %", "payment", Severity.RISK)
    calm = {**sample().period.tables, TableName.INCIDENTS: table_of(TableName.INCIDENTS, {})}
    gaps = (Note(NoteKind.GAP, {"recording": "r", "seconds": 9, "gaps": ""}),)
    card = cards(sample(period=replace(sample().period, tables=calm, notes=gaps)))[3]
    assert (card.figure, card.severity) == ("0", Severity.CALM)
    never = {"available": [0.0, 1.0, 1.0], "answering": [0.0, 1.0, 1.0]}
    made = page(with_table(TableName.TOPICS, **never), UTC)
    assert 'aria-label="invoice: 0 %"><i class="offline" style="flex: 1.0"></i>' in made, "nothing green"
