"""`kview twin`: of a cluster, of a recording, and of what is neither."""

import json
from pathlib import Path

import pytest

from kview.cli.twin import _is_recording
from kview.lab import twin_loss
from tests.cli.commands import run_here, run_kview
from tests.served import Served


def test_of_a_cluster_and_of_its_recording(simulated_cluster: Served, tmp_path: Path) -> None:
    bootstrap = simulated_cluster.bootstrap
    simulated_cluster.create("twin-orders", [[0, 1, 2], [3, 4, 5]])
    simulated_cluster.create("twin-once", [[5]])
    out = tmp_path / "world.json"
    done = run_here("twin", bootstrap, "--for", "2s", "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("twin of 127.0.0.1:") and ": 6 brokers, " in done.stdout
    topics = {each["name"]: each["replicas"] for each in json.loads(out.read_text())["topics"]}
    assert topics["twin-orders"] == [[0, 1, 2], [3, 4, 5]]
    lost = run_here("twin", bootstrap, "--for", "2s", "--lose", "5")
    assert lost.returncode == 0, "the forecast is right"
    without = lost.stdout.splitlines()[2].split()
    assert without[:3] == ["without", "a", "leader"] and without[3] == without[4] != "0"
    out.write_text("as it was")
    wrong = run_here("twin", bootstrap, "--for", "2s", "--lose", "zz", "--out", str(out))
    assert wrong.returncode == 2 and "no broker and no rack 'zz'" in wrong.stderr
    assert out.read_text() == "as it was"
    recorded = run_here("connect", bootstrap, "--record", str(tmp_path / "kept"), "--once")
    assert recorded.returncode == 0, recorded.stderr
    again = run_here("twin", str(tmp_path / "kept"), "--out", str(out), "--at", "00:00 2020-01-01")
    assert again.returncode == 2, again.stderr
    again = run_here("twin", str(tmp_path / "kept"), "--out", str(out), "--at", "-1h")
    assert again.returncode == 0 and "recording" in again.stderr, "that moment is not in it"
    assert {each["name"]: each["replicas"] for each in json.loads(out.read_text())["topics"]} == topics
    timed = run_here("twin", str(tmp_path / "kept"), "--for", "3s")
    assert timed.returncode == 2 and "--for is for clusters" in timed.stderr


def test_what_cannot_have_a_twin() -> None:
    for arguments, said in (
        ([], "give a cluster, a profile or a recording"),
        (["nobody"], "nobody"),
        (["127.0.0.1:1", "--at", "14:05"], "--at is for recordings"),
        (["127.0.0.1:1", "--for", "soon"], "'soon' is not a valid duration"),
    ):
        done = run_here("twin", *arguments)
        assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr
    unreachable = run_kview("twin", "127.0.0.1:1")
    begins = [line.split()[0] for line in unreachable.stderr.splitlines()]
    assert (unreachable.returncode, begins) == (3, ["observing", "kview:"]), "warnings go to the log file"
    both = run_here("serve", "--world", __file__, "--brokers", "3")
    assert both.returncode == 2 and "give --brokers or --world" in both.stderr
    wrong = run_here("serve", "--world", __file__)
    assert wrong.returncode == 2 and "does not describe a cluster" in wrong.stderr


def test_a_profile_comes_before_a_folder_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("prod", "old", "kview"):
        (tmp_path / folder).mkdir()
    (tmp_path / "kview" / "config.toml").write_text('[clusters.prod]\nservers = "127.0.0.1:1"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert not _is_recording("prod") and _is_recording("old") and _is_recording("kept")
    assert not _is_recording("127.0.0.1:1") and not _is_recording(300 * "x" + ":1")


def test_a_forecast_that_is_wrong_has_an_exit_code_of_its_own(
    simulated_cluster: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = twin_loss.Outage(frozenset(), frozenset({("no", 0)}))
    monkeypatch.setattr(twin_loss, "forecast", lambda *_: nothing)
    done = run_here("twin", simulated_cluster.bootstrap, "--for", "2s", "--lose", "5")
    assert done.returncode == 4 and "only kview check: no-0" in done.stdout
