"""The schema describes a report's document, field by field."""

import json
from typing import Any

import jsonschema
import pytest

from kview.plain.report.documents import json_document
from kview.plain.report.schema import DOCUMENT
from kview.plain.schema import json_schema
from tests.plain.report.sample import compared, empty, sample


def validator() -> jsonschema.Draft202012Validator:
    schema = dict(json_schema())
    return jsonschema.Draft202012Validator({"$defs": schema["$defs"], "$ref": f"#/$defs/{DOCUMENT}"})


@pytest.mark.parametrize("report", [sample(), compared(), empty(), sample(topics=("pay*",))])
def test_a_report_is_as_the_schema_says(report: Any) -> None:
    document = json.loads(json_document(report))
    validator().validate(document)
    jsonschema.Draft202012Validator(dict(json_schema())).validate(document)


def test_another_document_is_not() -> None:
    document = json.loads(json_document(compared()))

    def wrong(change: Any) -> bool:
        changed = json.loads(json.dumps(document))
        change(changed)
        return not validator().is_valid(changed)

    assert wrong(lambda it: it.pop("notes"))
    assert wrong(lambda it: it["tables"].pop("growth"))
    assert wrong(lambda it: it["tables"]["topics"]["rows"][0].pop("records_in"))
    assert wrong(lambda it: it["tables"]["topics"]["rows"][0].update(records_in="12"))
    assert wrong(lambda it: it["comparison"]["rows"][0].update(figure=3))
    assert wrong(lambda it: it.update(kview_report=99))


def test_every_column_has_its_unit_and_meaning() -> None:
    defs = json_schema()["$defs"]
    topics = defs["ReportTable_topics"]["properties"]["rows"]["items"]["properties"]
    assert topics["in_most_ms"]["unit"] == "milliseconds since 1970-01-01T00:00:00Z"
    assert topics["in_rate"] == {
        "type": ["number", "null"],
        "description": "Records in per known second.",
        "unit": "records per second",
    }
