"""The contents of the nodes' configuration files."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from kview.simulate.settings import RACK_AWARE_SELECTOR

LOOPBACK = "127.0.0.1"

SMALL = {
    "num.network.threads": "1",
    "num.io.threads": "2",
    "num.recovery.threads.per.data.dir": "1",
    "log.cleaner.dedupe.buffer.size": "2097152",  # the default takes 128 MiB of heap
    "replica.selector.class": RACK_AWARE_SELECTOR,  # for clients that say their rack
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "3",  # what a test leaves must not be without copies
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "1",
}
"""Settings with which many brokers fit on one machine. None of them changes when a broker is fenced or leaves
an ISR."""

QUICK = {
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "2000",
    "zookeeper.session.timeout.ms": "2000",
    "replica.lag.time.max.ms": "2000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "leader.imbalance.check.interval.seconds": "5",
    "log.cleaner.backoff.ms": "200",
    "group.share.min.session.timeout.ms": "10000",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.session.timeout.ms": "10000",  # a member that did not reach its coordinator to say it leaves
}
"""Settings with which a failover takes 2 s instead of 9 s."""

KAFKA_DEFAULT_TIMES: Mapping[str, str] = {
    "broker.heartbeat.interval.ms": "2000",
    "broker.session.timeout.ms": "9000",
    "replica.lag.time.max.ms": "30000",
}
"""Kafka's default times, to be passed as overrides by tests that depend on them."""

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


LOGGING_BEFORE_KAFKA_4 = """log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{HH:mm:ss.SSS} %p %c{1}: %m%n
log4j.logger.kafka.server.KafkaConfig=WARN
log4j.logger.org.apache.kafka.common.config=WARN
"""


def properties(values: Mapping[str, str]) -> str:
    """Format the values as a Java properties file. None of them needs escaping."""
    return "".join(f"{key}={value}\n" for key, value in values.items())


def common(folder: Path, node_id: int, controller_ports: Sequence[int]) -> dict[str, str]:
    """Return the settings that brokers and controllers have in common."""
    return {
        "node.id": str(node_id),
        "log.dirs": str(folder / "data"),
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "controller.quorum.bootstrap.servers": ",".join(f"{LOOPBACK}:{port}" for port in controller_ports),
    }


def with_zookeeper(folder: Path, broker: int, zookeeper_port: int) -> dict[str, str]:
    """Return the settings that all brokers in ZooKeeper mode have in common."""
    return {
        "broker.id": str(broker),
        "log.dirs": str(folder / "data"),
        "zookeeper.connect": f"{LOOPBACK}:{zookeeper_port}",
    }


def zookeeper(folder: Path, port: int) -> dict[str, str]:
    """Return the settings of a ZooKeeper, which checks sessions every half second."""
    return {
        "dataDir": str(folder / "data"),
        "clientPortAddress": LOOPBACK,
        "clientPort": str(port),
        "tickTime": "500",
        "maxSessionTimeout": "60000",
        "admin.enableServer": "false",
        "maxClientCnxns": "0",
    }


def second_listener(port: int, watched_port: int, advertised_port: int) -> dict[str, str]:
    """A broker's listeners where a watcher has one of its own, WATCHED, advertised at another port."""

    def both(second: int) -> str:
        return f"PLAINTEXT://{LOOPBACK}:{port},WATCHED://{LOOPBACK}:{second}"

    return {
        "listeners": both(watched_port),
        "advertised.listeners": both(advertised_port),
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,WATCHED:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
    }


def racks_by_halves(brokers: int) -> list[str]:
    """Return R1 for the first half of the brokers (the larger half if they are odd in number), R2 for the
    others."""
    return ["R1" if 2 * broker < brokers else "R2" for broker in range(brokers)]
