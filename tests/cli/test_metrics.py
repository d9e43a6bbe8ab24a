"""`--metrics` and `--quiet`: a run that only serves what it sees."""

import json
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from contextlib import closing

import pytest

from kview.derive.groups.retained import NEAR_RETENTION
from kview.plain.alert_rules import rules
from kview.plain.grafana import dashboard
from tests.cli.commands import KVIEW, ROOT, run_here
from tests.observe.fake_broker import FakeBroker
from tests.plain.promql import labels_of, of_dashboard, of_rules
from tests.plain.scraped import Series, problems, read, value
from tests.serve.questions import SET, TOPIC, delete_records, incremental_alter
from tests.served import Served
from tests.waiting import PATIENCE_S, wait_until

START_S = 120


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as bound:
        port: int = bound.getsockname()[1]
        return port


def page(port: int, path: str) -> str:
    """A page, '' until it is there."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE_S) as answer:
            read: str = answer.read().decode()
            return read
    except (urllib.error.URLError, ConnectionError):
        return ""


def test_a_headless_exporter(simulated_cluster: Served) -> None:
    port = free_port()
    command = [*KVIEW, "connect", simulated_cluster.bootstrap, "--metrics", f":{port}", "--quiet"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_until(lambda: page(port, "/healthz").startswith("ok: "), "it is healthy", START_S)

        def counted() -> Series:
            series = read(page(port, "/metrics"))
            return series if (value(series, "kview_observations_total") or 0) >= 3 else {}

        series = wait_until(counted, "three observations", START_S)
        assert problems(page(port, "/metrics")) == []
        assert value(series, "kview_brokers") == 6
        assert (value(series, "kview_requests_total") or 0) > 10
        assert (value(series, "kview_broker_latency_seconds", broker="0") or 9) < 5
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, err) == (-signal.SIGTERM, b"", b"")


def test_a_headless_exporter_waits_for_its_cluster() -> None:
    port, cluster = free_port(), free_port()
    command = [*KVIEW, "connect", f"127.0.0.1:{cluster}", "--metrics", f":{port}", "--quiet"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        said = process.stderr.readline().decode()
        assert f"nothing is listening on 127.0.0.1:{cluster}" in said and said.endswith("; retrying in 1 s\n")
        assert page(port, "/healthz") == ""
        waiting = page(port, "/metrics")
        assert "process_cpu_seconds_total" in waiting and "kview_brokers" not in waiting
        with FakeBroker(0, port=cluster):
            wait_until(lambda: page(port, "/healthz").startswith("ok: "), "it is healthy", START_S)
            assert value(read(page(port, "/metrics")), "kview_brokers") == 1
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--quiet"], "--quiet needs --metrics, --record or a"),
        (["--metrics-include", "topic:a"], "--metrics-include needs --metrics"),
        (
            ["--metrics", "1", "--metrics-exclude", "orders-*"],
            "'--metrics-exclude': 'orders-*' does not say of what: write 'topic:PATTERN' or",
        ),
        (["--metrics", "soon"], "'soon' in '127.0.0.1:soon' is not a valid port"),
        (["--metrics", "0"], "is not a valid port: give a number from 1 to 65535"),
        (["--metrics", "0.0.0.0:99999"], "'99999' in '0.0.0.0:99999' is not a valid port"),
    ],
)
def test_bad_use(flags: list[str], sentence: str) -> None:
    done = run_here("connect", "a:1", *flags)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr and "Traceback" not in done.stderr


def test_a_port_in_use() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        done = run_here("connect", "a:1", "--metrics", str(port))
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        f"127.0.0.1:{port} is in use, so metrics cannot be served there: choose another port" in done.stderr
    )


@pytest.mark.slow
def test_rules_and_dashboard_name_what_a_cluster_has_healthy_and_in_a_crash() -> None:
    port = free_port()
    with Served() as cluster:
        limit = ("retention.bytes", SET, "1000000000")
        assert incremental_alter(cluster.addresses[0], TOPIC, "audit-log", [limit]) == 0
        command = [*KVIEW, "connect", cluster.bootstrap, "--metrics", f":{port}", "--quiet"]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            seen: list[Series] = []

            def shows(name: str, **labels: str) -> bool:
                series = read(page(port, "/metrics"))
                seen.append(series)
                return (value(series, name, **labels) or 0) > 0

            wait_until(
                lambda: shows("kview_group_read_records_per_second", group="billing"), "rates", START_S
            )
            at = {"group": "audit-export", "topic": "audit-log", "partition": "0"}
            committed = int(value(seen[-1], "kview_group_partition_committed_offset", **at) or 0)
            leader = cluster.partition("audit-log").leader_id
            assert delete_records(cluster.addresses[leader], "audit-log", 0, committed - 100)[0] == 0
            wait_until(
                lambda: shows("kview_group_partition_lag_log_ratio", **at), "the log begins later", START_S
            )
            lag = value(seen[-1], "kview_group_partition_lag_records", **at) or 0
            ratio = value(seen[-1], "kview_group_partition_lag_log_ratio", **at)
            assert ratio == pytest.approx(lag / (lag + 100)) and (ratio or 0) > NEAR_RETENTION
            assert value(seen[-1], "kview_group_lag_log_ratio", group="audit-export") == ratio
            cluster.do("crash 4")
            wait_until(lambda: shows("kview_broker_state", broker="4", state="silent"), "silence", START_S)
            wait_until(lambda: shows("kview_offline_partitions"), "the controller fences it", START_S)
            active = "kview_active_controllers"
            assert value(seen[-1], active) == 1
            for controller in (101, 102, 103):
                cluster.do(f"crash {controller}")
            wait_until(
                lambda: shows("kview_findings", kind="quorum_silent", severity="risk"), "nobody acts", START_S
            )
            assert value(seen[-1], active) is None
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE_S)
    labels = labels_of(*seen)
    assert {name for each in (*of_rules(), *of_dashboard()) for name in each.names - labels.keys()} == {
        "kview_connector_state",
        "kview_connector_task_state",
        "kview_log_dir_full_timestamp_seconds",
        "kview_log_dir_total_bytes",
        "kview_log_dir_usable_bytes",
        "kview_partition_last_stable_held_seconds",
        "kview_partition_reassigning_records_left",
        "kview_rest_groups_max_lag_min_seconds",
    }, "what is only there with Kafka Connect, a transaction and so on"


def test_rules_and_dashboard_are_printed() -> None:
    done = run_here("metrics", "--rules")
    assert (done.returncode, done.stdout) == (0, rules())
    done = run_here("metrics", "--dashboard")
    assert (done.returncode, json.loads(done.stdout)) == (0, dashboard())
    for flags in ((), ("--rules", "--dashboard")):
        done = run_here("metrics", *flags)
        assert (done.returncode, done.stdout) == (2, "") and "choose either --rules or" in done.stderr
