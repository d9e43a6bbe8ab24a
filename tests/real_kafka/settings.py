"""What the nodes' configuration files say."""

from collections.abc import Mapping, Sequence
from pathlib import Path

LOOPBACK = "127.0.0.1"

SMALL = {
    "num.network.threads": "1",
    "num.io.threads": "2",
    "num.recovery.threads.per.data.dir": "1",
    "log.cleaner.dedupe.buffer.size": "2097152",  # the default takes 128 MiB of heap
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
"""Fits many brokers on one machine. Nothing here changes when a broker is fenced or leaves an ISR."""

QUICK = {
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "2000",
    "replica.lag.time.max.ms": "2000",
    "group.initial.rebalance.delay.ms": "0",
    "leader.imbalance.check.interval.seconds": "5",
}
"""A failover in 2 s that takes 9 s with Kafka's defaults."""

KAFKA_DEFAULT_TIMES: Mapping[str, str] = {
    "broker.heartbeat.interval.ms": "2000",
    "broker.session.timeout.ms": "9000",
    "replica.lag.time.max.ms": "30000",
}
"""Kafka's own times, to pass as overrides where a test is about them."""

LOGGING = """<Configuration status="warn">
  <Appenders>
    <Console name="out"><PatternLayout pattern="%d{HH:mm:ss.SSS} %p %c{1}: %m%n"/></Console>
  </Appenders>
  <Loggers>
    <Root level="info"><AppenderRef ref="out"/></Root>
    <Logger name="kafka.server.KafkaConfig" level="warn"/>
    <Logger name="org.apache.kafka.common.config" level="warn"/>
  </Loggers>
</Configuration>
"""


def properties(values: Mapping[str, str]) -> str:
    """The values as a Java properties file (none of them needs escaping)."""
    return "".join(f"{key}={value}\n" for key, value in values.items())


def common(folder: Path, node_id: int, controller_ports: Sequence[int]) -> dict[str, str]:
    """What a broker's file and a controller's file share."""
    return {
        "node.id": str(node_id),
        "log.dirs": str(folder / "data"),
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "controller.quorum.bootstrap.servers": ",".join(f"{LOOPBACK}:{port}" for port in controller_ports),
    }


def racks_by_halves(brokers: int) -> list[str]:
    """R1 for the first half of the brokers (the larger one), R2 for the others."""
    return ["R1" if 2 * broker < brokers else "R2" for broker in range(brokers)]
