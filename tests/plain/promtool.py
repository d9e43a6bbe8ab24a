"""Prometheus' own promtool, which parses and evaluates rules."""

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kview.plain.alert_rules import rules
from tests.conftest import missing
from tests.plain.scraped import Series

SCRAPE_S = 15
ALERTS = 'group by (alertname) (ALERTS{alertstate="firing"})'
TARGET = {"instance": "kview:9309", "job": "kview"}


@pytest.fixture(scope="session")
def promtool() -> str:
    """The program, from Debian's package prometheus."""
    found = shutil.which("promtool")
    if found is None:
        missing("promtool is not installed")
    assert found is not None
    return found


def run(promtool: str, *arguments: str) -> None:
    """Run it; fails with what it says if it finds fault."""
    done = subprocess.run([promtool, *arguments], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def lasting(page: Series, seconds: int) -> list[Series]:
    """The scrapes of a page that stays as it is."""
    return [page] * (seconds // SCRAPE_S + 1)


def scenario(name: str, scrapes: Sequence[Series], firing: Mapping[int, set[str]]) -> dict[str, Any]:
    """A test of promtool: scrapes 15 s apart, and the alerts that fire after so many seconds."""
    return {
        **_scraped(name, scrapes, rules()),
        "promql_expr_test": [
            {
                "expr": ALERTS,
                "eval_time": f"{at_s}s",
                "exp_samples": [
                    {"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in sorted(alerts)
                ],
            }
            for at_s, alerts in firing.items()
        ],
    }


def numbers(name: str, page: Series, found: Mapping[str, float]) -> dict[str, Any]:
    """A test of promtool: expressions without labels, and what they are after a minute of the same page."""
    return {
        **_scraped(name, lasting(page, 60), " ".join(found)),
        "promql_expr_test": [
            {"expr": expr, "eval_time": "60s", "exp_samples": [{"labels": "{}", "value": value}]}
            for expr, value in found.items()
        ],
    }


def _scraped(name: str, scrapes: Sequence[Series], text: str) -> dict[str, Any]:
    """Return the scrapes of a test, with only those metrics that are in `text`."""
    keys = {key for page in scrapes for key in page if key[0] in text}
    return {
        "name": name,
        "interval": f"{SCRAPE_S}s",
        "input_series": [
            {"series": _series(*key), "values": " ".join(_value(page.get(key)) for page in scrapes)}
            for key in sorted(keys)
        ],
    }


def _series(name: str, labels: Sequence[tuple[str, str]]) -> str:
    pairs = {**dict(labels), **TARGET}
    return f"{name}{{{', '.join(f'{key}={json.dumps(value)}' for key, value in pairs.items())}}}"


def _value(value: float | None) -> str:
    return "stale" if value is None else repr(value)


def check(promtool: str, folder: Path, scenarios: Sequence[dict[str, Any]]) -> None:
    """Evaluate the rules over scenarios. Fails with what promtool says if other alerts fire."""
    (folder / "rules.yml").write_text(rules(), encoding="utf-8")
    tests = {"rule_files": ["rules.yml"], "evaluation_interval": f"{SCRAPE_S}s", "tests": scenarios}
    (folder / "tests.yml").write_text(json.dumps(tests), encoding="utf-8")  # JSON is YAML
    run(promtool, "test", "rules", str(folder / "tests.yml"))
