"""`kview records` with a profile's masks: no format prints what is hidden, and no filter looks at it."""

import json
import uuid
from pathlib import Path

import pytest

from tests.cli.commands import run_here
from tests.observe.canaries import CANARY, MASK, clean, is_masked, write
from tests.served import Served


@pytest.fixture
def topic(simulated_cluster: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A topic with canaries, which the profile `prod` masks."""
    name = f"customers-{uuid.uuid4().hex[:8]}"
    simulated_cluster.create(name, [[0, 1, 2]])
    write(simulated_cluster.bootstrap, name)
    (tmp_path / "kview").mkdir()
    mask = f'mask."customers-*" = {json.dumps(MASK)}\n'
    profile = f'[clusters.prod]\nservers = "{simulated_cluster.bootstrap}"\n{mask}'
    (tmp_path / "kview" / "config.toml").write_text(profile)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return name


@pytest.mark.parametrize("format", ["text", "json", "hex"])
def test_no_format_prints_what_is_masked(topic: str, format: str) -> None:
    for more in (
        ["--last", "100"],
        ["--where", "headers.trace exists"],
        ["--where", "not headers.trace ~ /^C/"],
    ):
        done = run_here("records", "prod", topic, "--format", format, *more)
        shown = f"{done.stdout}{done.stderr}".encode()
        clean([(str(more), shown)])
        assert len(done.stdout.splitlines()) == 12 and (is_masked(shown) or format == "hex"), done.stderr
    if format == "json":
        documents = [json.loads(line) for line in done.stdout.splitlines()]
        assert all(each["key"] == documents[0]["key"] and each["size_bytes"] is None for each in documents)
        assert documents[0]["key"] == {
            "kind": "text", "data": "<masked>", "size_bytes": None, "cut": False, "masked": True,
        }  # fmt: skip
        assert (
            documents[0]["value"]["data"]["email"] == "<masked>" and documents[0]["value"]["kind"] == "json"
        )


@pytest.mark.parametrize("field", ["value.email", "value.card.number", "headers.token", "key", "size"])
def test_a_filter_about_what_is_masked_is_bad_use(topic: str, field: str) -> None:
    for condition in (f"{field} = 3", f"offset > 1 and not {field} != 4"):
        done = run_here("records", "prod", topic, "--where", condition)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"{field} cannot be looked for: the profile masks it in {topic}" in done.stderr
        assert "leave out this condition" in done.stderr


def test_a_text_is_looked_for_only_in_what_is_shown(topic: str) -> None:
    done = run_here("records", "prod", topic, "--where", CANARY)
    assert done.stdout == ""


def test_what_is_hidden_whole_is_not_judged(topic: str) -> None:
    done = run_here("records", "prod", topic, "--where", "value.note = shown-5c1e")
    assert done.returncode == 1 and len(done.stdout.splitlines()) == 2
    assert "could not be decoded, so the filter may have missed them" in done.stderr


def test_a_mistake_in_a_mask_prints_nothing(topic: str, tmp_path: Path) -> None:
    config = tmp_path / "kview" / "config.toml"
    config.write_text(config.read_text().replace("value.email", "vaule.email"))
    done = run_here("records", "prod", topic)
    assert (done.returncode, done.stdout) == (2, "")
    assert "has no mask.customers-* that can be used: give it a table by topic" in done.stderr
