"""Several clusters in one command, without a terminal: text, documents, recordings, checks and metrics."""

import json
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as Xml

import click
import pytest

from kview.cli.connect import Others, connect
from kview.cli.targets import folder_name
from kview.errors import BadUse
from kview.recording.reader import Recording
from tests.cli.commands import run_here
from tests.observe.fake_broker import FakeBroker
from tests.real_kafka.nodes import free_ports

QUICK = ("--once", "--interval", "100ms")


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment with three profiles: two clusters, and one at whose port nobody listens."""
    config = tmp_path / "kview" / "config.toml"
    config.parent.mkdir()
    with FakeBroker(0) as one, FakeBroker(0) as other:
        servers = {"eu": one.address, "us": other.address, "gone": f"127.0.0.1:{free_ports(1)[0]}"}
        config.write_text("".join(f'[clusters.{name}]\nservers = "{at}"\n' for name, at in servers.items()))
        yield {"XDG_CONFIG_HOME": str(tmp_path)}


def test_once_prints_a_block_of_each(clusters: dict[str, str]) -> None:
    done = run_here("connect", "eu", "us", *QUICK, environment=clusters)
    assert (done.returncode, done.stderr) == (0, "")
    heads = [line.split() for line in done.stdout.splitlines() if line.startswith("kview ")]
    assert sorted(head[2] for head in heads) == ["eu", "us"]


def test_documents_name_their_cluster_if_there_are_several(clusters: dict[str, str]) -> None:
    done = run_here("connect", "eu", "us", *QUICK, "--format", "json", environment=clusters)
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted(document["cluster"] for document in documents) == ["eu", "us"]
    done = run_here("connect", "eu", *QUICK, "--format", "json", environment=clusters)
    assert "cluster" not in json.loads(done.stdout)


def test_one_that_cannot_be_reached_is_named_and_the_others_are_printed(clusters: dict[str, str]) -> None:
    done = run_here("connect", "--all", *QUICK, "--format", "json", environment=clusters)
    assert done.returncode == 3
    assert sorted(json.loads(line)["cluster"] for line in done.stdout.splitlines()) == ["eu", "us"]
    assert done.stderr.startswith("kview: gone: nothing is listening on 127.0.0.1:")


def test_each_is_recorded_to_a_folder_with_its_name(clusters: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    done = run_here("connect", "eu", "us", *QUICK, "--record", str(folder), environment=clusters)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["eu", "us"]
    assert all(len(Recording.open(path).moments()) == 2 for path in folder.iterdir())


def test_a_profile_that_is_wrong_is_named_before_anything_is_shown(
    clusters: dict[str, str], tmp_path: Path
) -> None:
    with (tmp_path / "kview" / "config.toml").open("a") as config:
        config.write('[clusters.wrong]\nservers = "a:1"\ncommand-config = "/nowhere"\n')
    for command in ("connect", "check"):
        done = run_here(command, "eu", "wrong", environment=clusters)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("kview: wrong: /nowhere cannot be read")


def test_two_recordings_of_one_cluster_do_not_mix(clusters: dict[str, str], tmp_path: Path) -> None:
    for code in (0, 2):
        done = run_here("connect", "eu", "us", *QUICK, "--record", str(tmp_path / "r"), environment=clusters)
        assert done.returncode == code
    assert done.stderr.startswith(f"kview: eu: {tmp_path / 'r' / 'eu'} ")


def test_folders_of_two_clusters_are_two(clusters: dict[str, str], tmp_path: Path) -> None:
    assert [*map(folder_name, ("a:1", "a_1", "北京", "..", "a/b", "a%3A1"))] == [
        "a%3A1",
        "a_1",
        "北京",
        "%2E.",
        "a%2Fb",
        "a%253A1",
    ]
    with (tmp_path / "kview" / "config.toml").open("a") as config:
        config.write('[clusters.EU]\nservers = "a:1"\n')
    done = run_here("connect", "eu", "EU", *QUICK, "--record", str(tmp_path / "r"), environment=clusters)
    assert done.returncode == 2 and "eu and EU cannot be recorded together" in done.stderr
    assert not (tmp_path / "r").exists()


def test_a_wrong_value_of_a_profile_names_it(clusters: dict[str, str], tmp_path: Path) -> None:
    with (tmp_path / "kview" / "config.toml").open("a") as config:
        config.write('[clusters.wrong]\nservers = "a:1"\ninterval = "nonsense"\n')
    done = run_here("connect", "eu", "wrong", "--once", environment=clusters)
    assert done.returncode == 2 and "wrong: " in done.stderr and "nonsense" in done.stderr


def test_quiet_needs_one_cluster_that_calls(clusters: dict[str, str], tmp_path: Path) -> None:
    done = run_here("connect", "eu", "us", "--quiet", environment=clusters)
    assert done.returncode == 2 and "--quiet needs" in done.stderr
    with (tmp_path / "kview" / "config.toml").open("a") as config:
        config.write('[clusters.calls]\nservers = "a:1"\non-finding = "true"\ncommand-config = "/nowhere"\n')
    done = run_here("connect", "eu", "calls", "--quiet", environment=clusters)
    assert "--quiet" not in done.stderr


def test_wrong_settings_of_a_cluster_that_is_gone_to_are_said_on_the_screen(
    clusters: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    ctx = click.Context(connect)
    with ctx:
        connect.parse_args(ctx, ["eu"])
        others = Others(ctx, ctx.params)
        assert others.shown("us").name == "us"
        for settings in ('[display]\ninterval = "1ms"\n[clusters.us]', '[clusters.us]\ninterval = "1ms"'):
            (tmp_path / "kview" / "config.toml").write_text(f'{settings}\nservers = "a:1"\n')
            with pytest.raises(BadUse):
                others.shown("us")


@pytest.mark.quick(6)
def test_a_check_has_a_section_for_each_and_the_highest_exit_code(
    clusters: dict[str, str], tmp_path: Path
) -> None:
    report = tmp_path / "report.xml"
    options = ("--for", "1s", "--allow-not-judged", "--junit", str(report))
    done = run_here("check", "--all", *options, "--format", "json", environment=clusters)
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    assert [document["cluster"] for document in documents] == ["eu", "us"]
    assert done.returncode == 3 and done.stderr.startswith("kview: gone: nothing is listening")
    suites = Xml.parse(report).getroot()
    assert [suite.get("name") for suite in suites] == [f"kview check {name}" for name in ("eu", "gone", "us")]
    assert [suite.get("errors") for suite in suites][1] == "1"
    text = run_here("check", "eu", "us", "--for", "1s", environment=clusters).stdout
    assert [line.split()[3] for line in text.splitlines() if line.startswith("kview check ")] == ["eu", "us"]
