"""`kview twin`: of a cluster, of a recording, and of what is neither."""

import json
from pathlib import Path

from tests.cli.commands import run_here
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
    recorded = run_here("connect", bootstrap, "--record", str(tmp_path / "kept"), "--once")
    assert recorded.returncode == 0, recorded.stderr
    again = run_here("twin", str(tmp_path / "kept"), "--out", str(tmp_path / "again.json"))
    assert again.returncode == 0, again.stderr
    assert (
        json.loads((tmp_path / "again.json").read_text())["topics"] == json.loads(out.read_text())["topics"]
    )


def test_what_cannot_have_a_twin() -> None:
    for arguments, said in (
        ([], "give a cluster, a profile or a recording"),
        (["nobody"], "nobody"),
        (["127.0.0.1:1", "--at", "14:05"], "--at is for recordings"),
        (["127.0.0.1:1", "--for", "soon"], "'soon' is not a valid duration"),
    ):
        done = run_here("twin", *arguments)
        assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr
    assert run_here("twin", "127.0.0.1:1").returncode == 3
    wrong = run_here("serve", "--world", __file__)
    assert wrong.returncode == 2 and "does not describe a cluster" in wrong.stderr
