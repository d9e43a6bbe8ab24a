"""Runs a real cluster by hand: `python -m tests.real_kafka --brokers 6 --release 2.8.2`.

Prints `bootstrap.servers=…` and `pids=…`, then executes lines on standard input (`kill 2`, `stop 2`, `pause
2`, `resume 2`, `restart 2`, `heal`, `topic NAME 0,1,2 1,2,0`, `partitions NAME`) until the input ends or a
line is `quit`.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.real_kafka.cluster import RealKafka
from tests.real_kafka.jars import KAFKA_2, KAFKA_3, KAFKA_4, fetch_jars, find_java
from tests.real_kafka.nodes import ClusterFailed
from tests.real_kafka.settings import KAFKA_DEFAULT_TIMES

RELEASES = {release.version: release for release in (KAFKA_2, KAFKA_3, KAFKA_4)}


def obey(cluster: RealKafka, line: str) -> str:
    """Execute one line. Raises ValueError if the command is unknown."""
    verbs = "kill|stop|pause|resume|restart NODE, heal, topic NAME 0,1 …, partitions NAME, quit"
    match line.split():
        case [("kill" | "stop" | "pause" | "resume" | "restart") as verb, node]:
            getattr(cluster, verb)(int(node))
        case ["heal"]:
            cluster.heal()
        case ["topic", name, *replicas] if replicas:
            cluster.create_topic(name, [[int(broker) for broker in one.split(",")] for one in replicas])
        case ["partitions", name]:
            return "\n".join(f"{number}: {seen}" for number, seen in sorted(cluster.partitions(name).items()))
        case _:
            raise ValueError(f"say {verbs}")
    return "done"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.real_kafka", description=__doc__)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--controllers", type=int, default=1)
    parser.add_argument("--default-times", action="store_true", help="Kafka's own session and lag times")
    parser.add_argument("--release", choices=RELEASES, default=KAFKA_4.version)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings")
    options = parser.parse_args()
    overrides = dict(KAFKA_DEFAULT_TIMES) if options.default_times else {}
    overrides.update(setting.split("=", 1) for setting in options.settings)
    java, release = find_java(), RELEASES[options.release]
    with (
        tempfile.TemporaryDirectory(prefix="kview-kafka-") as folder,
        RealKafka(
            Path(folder),
            java,
            fetch_jars(java, release),
            brokers=options.brokers,
            controllers=options.controllers,
            overrides=overrides,
            zookeeper=release.zookeeper,
        ) as cluster,
    ):
        print(f"bootstrap.servers={cluster.bootstrap_servers}", flush=True)
        pids = [str(node.process.pid) for node in cluster.nodes.values() if node.process]
        print(f"pids={','.join(pids)}", flush=True)
        for line in sys.stdin:
            if line.strip() == "quit":
                break
            try:
                print(obey(cluster, line), flush=True)
            except (ClusterFailed, KeyError, OSError, ValueError) as error:
                print(f"error: {error}", flush=True)


if __name__ == "__main__":
    main()
