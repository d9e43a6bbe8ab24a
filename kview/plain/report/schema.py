"""The JSON Schema of a report's document, made of the same columns as the document itself."""

from collections.abc import Mapping
from typing import Any

from kview.language import report_names
from kview.model.report import REPORT_VERSION, NoteKind
from kview.model.report_tables import COMPARISON, TABLES, Column, Unit

DOCUMENT = "ReportDocument"
"""The name of the document among the definitions."""

_UNITS: dict[Unit, str] = {
    Unit.TIME: "milliseconds since 1970-01-01T00:00:00Z",
    **{unit: unit.value.replace("_", " ") for unit in Unit if unit not in (Unit.TIME, Unit.NAME, Unit.ID)},
}
_MOMENT = {"type": ["integer", "null"], "unit": _UNITS[Unit.TIME]}


def report_schema() -> dict[str, Any]:
    """Return the definitions of a report's document, by their names."""
    names = {name.value: f"ReportTable_{name.value}" for name in TABLES}
    definitions = {
        names[name.value]: _table(report_names.TITLES[name], spec) for name, spec in TABLES.items()
    }
    definitions["ReportTable_comparison"] = _table(report_names.TITLES["comparison"], COMPARISON)
    tables = _object("The tables of the period.", {name: _ref(each) for name, each in names.items()})
    period = {
        "since_ms": {**_MOMENT, "description": "Where the period begins; null if nothing is known."},
        "until_ms": {**_MOMENT, "description": "Where it ends."},
        "notes": {
            "type": "array",
            "items": _ref("ReportNote"),
            "description": "What the figures rest on, and what is missing.",
        },
        "tables": tables,
    }
    names_of = {"type": "array", "items": {"type": "string"}}
    definitions["ReportNote"] = {
        "title": "ReportNote",
        "description": "Something that a reader has to know about the figures, with its values by name.",
        "type": "object",
        "properties": {"kind": {"enum": sorted(NoteKind), "description": "What it is about."}},
        "required": ["kind"],
    }
    definitions["ReportPeriod"] = _object(
        "A period that the report is compared with.", period, "ReportPeriod"
    )
    document = {
        "kview_report": {"const": REPORT_VERSION, "description": "The version of this format."},
        "step_s": {
            "type": "integer",
            "unit": "seconds",
            "description": "The length of a step of the table throughput.",
        },
        "threshold_ms": {
            "type": "integer",
            "unit": "milliseconds",
            "description": "The lag in time above which above_ms counts in the table groups.",
        },
        "price_per_gb": {
            "type": ["number", "null"],
            "description": "The price of 10⁹ bytes between racks, null if none was given.",
        },
        "topics": {**names_of, "description": "Patterns of the topics it is about; none for all of them."},
        "groups": {**names_of, "description": "Patterns of the groups it is about; none for all of them."},
        **period,
    }
    optional = {
        "against": {**_ref("ReportPeriod"), "description": "The other period, only with `--against`."},
        "comparison": {
            **_ref("ReportTable_comparison"),
            "description": "The figures of both periods, only with `--against`.",
        },
    }
    whole = _object(
        "What `kview report --format json` prints. An unknown value is null, never 0.", document, DOCUMENT
    )
    definitions[DOCUMENT] = {**whole, "properties": document | optional}
    return definitions


def _table(title: str, spec: tuple[Column, ...]) -> dict[str, Any]:
    rows = _object("A row.", {column.name: _value(column) for column in spec})
    columns = _object(
        "What a column means.",
        {
            "name": {"enum": [column.name for column in spec]},
            "unit": {"enum": sorted(Unit)},
            "meaning": {"type": "string"},
            "is_estimate": {"type": "boolean", "description": "Whether the figures are estimates."},
        },
    )
    return _object(
        f"{title}.",
        {
            "columns": {"type": "array", "items": columns, "description": "What the columns mean, in order."},
            "rows": {"type": "array", "items": rows, "description": "The rows, by the columns' names."},
        },
    )


def _value(column: Column) -> dict[str, Any]:
    kind: Any = "string" if column.is_text else ["number" if column.is_fraction else "integer", "null"]
    unit = _UNITS.get(column.unit)
    return {"type": kind, "description": column.meaning, **({"unit": unit} if unit else {})}


def _object(description: str, properties: Mapping[str, Any], title: str = "") -> dict[str, Any]:
    named = {"title": title} if title else {}
    return {
        **named,
        "description": description,
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
    }


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}
