"""A dashboard of a profile with masks: nothing that it draws, copies, saves or records has what is hidden."""

import json
import uuid
from pathlib import Path

import pytest

from kview.language.glyphs import MARK
from kview.model.decoded import SchemaKind
from tests.decode.test_protobuf import TEXTS
from tests.e2e.pseudo_terminal import PseudoTerminal, kview_on_a_terminal
from tests.observe.canaries import (
    AVRO,
    CUSTOMER,
    JSON_SCHEMA,
    MASK,
    PROTOBUF,
    SHOWN,
    clean,
    write,
)
from tests.observe.rest_server import RestServer, http
from tests.observe.test_registry import answered as schema
from tests.served import Served

ESCAPE = "\x1b"


def home(folder: Path, cluster: Served, registry: RestServer, topic: str, masks: list[str]) -> dict[str, str]:
    """Folders of a user whose profile `prod` has these masks for a topic."""
    config = folder / "config" / "kview"
    config.mkdir(parents=True)
    (config / "config.toml").write_text(
        f'[clusters.prod]\nservers = "{cluster.bootstrap}"\nschema-registry-url = "{registry.url}"\n'
        f'mask."{topic[:-2]}*" = {json.dumps(masks)}\n'
    )
    for name in ("state", "home"):
        (folder / name).mkdir()
    return {
        "XDG_CONFIG_HOME": str(folder / "config"),
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_DATA_HOME": str(folder / "home"),
        "HOME": str(folder / "home"),
    }


def walk(terminal: PseudoTerminal, topic: str, again: Served, every: int) -> list[str]:
    """Show, copy and save records in every way, and return the screens. One of `every` so many records is
    opened."""
    screens = []

    def shows(pattern: str) -> None:
        terminal.wait_for_text(pattern)
        screens.append(terminal.text())

    terminal.wait_for_text(r"of 6 answer")
    terminal.press(f":{topic}")
    terminal.wait_for_text(rf"topic\s.*{topic}|{topic}\s.*topic")
    terminal.press("\r")
    terminal.wait_for_text(r"Partitions\s+Groups")
    terminal.press("m")
    terminal.wait_for_text("No record is read until you ask")
    terminal.press("l")
    shows(r"\d+ records, .* fetched")
    for form in ("as text", "as JSON", "as hex"):
        terminal.press("x")
        shows(form)
    terminal.press("\x05")  # ^e exports
    terminal.wait_for_text("export all")
    terminal.press("json\r")
    terminal.wait_for_text(r"\.json")
    terminal.press("x")
    terminal.wait_for_text(r"records, .* fetched")
    terminal.press("\x05")
    terminal.wait_for_text("export all")
    terminal.press("\r")
    terminal.wait_for_text(r"\.csv")
    terminal.press("p")
    terminal.wait_for_text(r"\.svg")
    terminal.press("\x1b[H")  # home
    for row in range(0, 12, every):
        terminal.press("yy")
        terminal.press("\r")
        shows(rf"RECORD {topic}-0 offset {row}\b")
        for form in ("as text", "as JSON", "as hex", ""):
            terminal.press("x")
            shows(form or rf"(?m)offset {row}$")
        terminal.press("p")
        terminal.press(ESCAPE)
        terminal.wait_for_text(rf"RECORDS {topic}-0")
        terminal.press("j" * every)
        terminal.wait_for_text(rf"{MARK}\s+{min(row + every, 11)}\b")
    terminal.press("/not offset = 99\r")
    shows(r"12 found")
    for form in ("as text", "as JSON", "as hex", ""):
        terminal.press("x")
        shows(form or "12 found")
    terminal.press("\x05")
    terminal.wait_for_text(r"\.jsonl")
    terminal.press("/size > 3\r")
    shows("size cannot be looked for: the profile masks it")
    terminal.press("l")
    terminal.wait_for_text(r"\d+ records, .* fetched")
    terminal.press("w")
    terminal.wait_for_text("FOLLOWING")
    terminal.wait_for_text("/s shown")  # an answer has said where the topic ends
    write(again.bootstrap, topic)
    shows(r"key|<masked>[^\n]*<masked>")
    terminal.wait_for_text(r"[1-9][\d.]* of [\d.,]+/s shown")
    screens.append(terminal.text())
    terminal.press("p")
    terminal.press(ESCAPE)
    terminal.wait_for_text("not followed any more")
    return screens


@pytest.mark.slow  # tests/observe/test_doors.py has each answer
@pytest.mark.parametrize("masks", [MASK, ["all"]], ids=["fields", "all"])
def test_no_door_of_the_dashboard_is_open(
    simulated_cluster: Served, tmp_path: Path, masks: list[str]
) -> None:
    topic = f"customers-{uuid.uuid4().hex[:6]}"
    simulated_cluster.create(topic, [[0, 1, 2]])
    line = [{"name": "line.proto", "subject": "line", "version": 1}]
    with RestServer(http(b"{}", "404 Not Found")) as registry:
        registry.by_path |= {
            f"/schemas/ids/{AVRO}": schema(json.dumps(CUSTOMER)),
            f"/schemas/ids/{JSON_SCHEMA}": schema("{}", SchemaKind.JSON),
            f"/schemas/ids/{PROTOBUF}": schema("…", SchemaKind.PROTOBUF, line),
            f"/schemas/ids/{PROTOBUF}?format=serialized": schema(TEXTS[1], SchemaKind.PROTOBUF, line),
            "/subjects/line/versions/1?deleted=true&format=serialized": schema(TEXTS[0], SchemaKind.PROTOBUF),
        }
        write(simulated_cluster.bootstrap, topic)
        environment = home(tmp_path, simulated_cluster, registry, topic, masks)
        with kview_on_a_terminal(
            "connect", "prod", columns=200, rows=50, environment=environment
        ) as terminal:
            screens = walk(terminal, topic, simulated_cluster, 4 if masks == ["all"] else 1)
            terminal.press("q")
            assert terminal.wait_for_end() == 0
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    suffixes = {path.suffix for path in files}
    assert {".svg", ".json", ".jsonl", ".csv", ".txt"} <= suffixes, suffixes
    clean((str(path), path.read_bytes()) for path in files)
    clean([("the terminal", bytes(terminal.raw))])
    clean((screen, screen.encode()) for screen in screens)
    assert any("<masked>" in screen for screen in screens)
    if masks != ["all"]:
        assert any(SHOWN in screen for screen in screens)
