"""Broker and topic configurations, with Kafka's keys and defaults."""

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache

from msgspec.structs import replace

from kview.errors import BadUse, ErrorKind
from kview.simulate.features import ELR_VERSION
from kview.simulate.releases import ASSIGNORS, CLASSIC, KAFKA_4_3, REBALANCE_PROTOCOLS, Release
from kview.simulate.setting import INT_MAX, LONG_MAX, ConfigType, Key, boolean, checked, items, number
from kview.simulate.tokens import SECRET_KEY

FOLLOWER_THROTTLE = "follower.replication.throttled.rate"
LEADER_THROTTLE = "leader.replication.throttled.rate"
AUTHORIZER, STANDARD_AUTHORIZER = (
    "authorizer.class.name",
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
)
SUPER_USERS, ALLOW_EVERYONE = "super.users", "allow.everyone.if.no.acl.found"
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

BROKER_KEYS: Mapping[str, Key] = {
    "auto.create.topics.enable": boolean(True),
    "auto.leader.rebalance.enable": boolean(True),
    ALLOW_EVERYONE: boolean(False),
    AUTHORIZER: Key("", choices=("", STANDARD_AUTHORIZER)),
    "broker.heartbeat.interval.ms": number(2000, 1),
    "broker.session.timeout.ms": number(9000, 1),
    "connection.failed.authentication.delay.ms": number(100),
    "connections.max.reauth.ms": number(0, 0, LONG_MAX),
    "controller.quorum.election.timeout.ms": number(1000, 1),
    "controller.quorum.fetch.timeout.ms": number(2000, 1),
    "default.replication.factor": number(1, 1, 32767),
    "delegation.token.expiry.check.interval.ms": number(3600000, 1, LONG_MAX),
    "delegation.token.expiry.time.ms": number(86400000, 1, LONG_MAX),
    "delegation.token.max.lifetime.ms": number(604800000, 1, LONG_MAX),
    SECRET_KEY: Key("", type=ConfigType.PASSWORD),
    ELR_VERSION: number(1, 0, 1),
    FOLLOWER_THROTTLE: number(LONG_MAX, 0, LONG_MAX),
    "group.consumer.assignment.interval.ms": number(1000, 0),
    ASSIGNORS: Key("uniform,range", choices=("uniform", "range"), type=ConfigType.LIST),
    "group.consumer.heartbeat.interval.ms": number(5000, 1),
    "group.consumer.max.assignment.interval.ms": number(15000, 0),
    "group.consumer.max.heartbeat.interval.ms": number(15000, 1),
    "group.consumer.max.session.timeout.ms": number(60000, 1),
    "group.consumer.max.size": number(INT_MAX, 1),
    "group.consumer.migration.policy": Key(
        "bidirectional", choices=("bidirectional", "upgrade", "downgrade", "disabled")
    ),
    "group.consumer.min.assignment.interval.ms": number(0, 0),
    "group.consumer.min.heartbeat.interval.ms": number(5000, 1),
    "group.consumer.min.session.timeout.ms": number(45000, 1),
    "group.consumer.regex.refresh.interval.ms": number(600000, 10000),
    "group.consumer.session.timeout.ms": number(45000, 1),
    "group.initial.rebalance.delay.ms": number(3000),
    "group.max.session.timeout.ms": number(1800000, 1),
    "group.max.size": number(INT_MAX, 1),
    "group.min.session.timeout.ms": number(6000, 1),
    "group.share.assignment.interval.ms": number(1000, 0),
    "group.share.delivery.count.limit": number(5, 2, 10),
    "group.share.heartbeat.interval.ms": number(5000, 1),
    "group.share.max.assignment.interval.ms": number(15000, 0),
    "group.share.max.delivery.count.limit": number(10, 5, 25),
    "group.share.max.heartbeat.interval.ms": number(15000, 1),
    "group.share.max.partition.max.record.locks": number(4000, 2000, 10000),
    "group.share.max.record.lock.duration.ms": number(60000, 30000, 3600000),
    "group.share.max.session.timeout.ms": number(60000, 1),
    "group.share.max.share.sessions": number(2000, 1),
    "group.share.max.size": number(200, 1, 1000),
    "group.share.min.assignment.interval.ms": number(0, 0),
    "group.share.min.delivery.count.limit": number(2, 2, 5),
    "group.share.min.heartbeat.interval.ms": number(5000, 1),
    "group.share.min.partition.max.record.locks": number(100, 100, 2000),
    "group.share.min.record.lock.duration.ms": number(15000, 1000, 30000),
    "group.share.min.session.timeout.ms": number(45000, 1),
    "group.share.partition.max.record.locks": number(2000, 100, 10000),
    "group.share.record.lock.duration.ms": number(30000, 1000, 3600000),
    "group.share.session.timeout.ms": number(45000, 1),
    "group.streams.assignment.interval.ms": number(1000, 0),
    "group.streams.heartbeat.interval.ms": number(5000, 1),
    "group.streams.initial.rebalance.delay.ms": number(3000),
    "group.streams.max.assignment.interval.ms": number(15000, 0),
    "group.streams.max.heartbeat.interval.ms": number(15000, 1),
    "group.streams.max.session.timeout.ms": number(60000, 1),
    "group.streams.max.size": number(INT_MAX, 1),
    "group.streams.max.standby.replicas": number(2, 0),
    "group.streams.min.assignment.interval.ms": number(0, 0),
    "group.streams.min.heartbeat.interval.ms": number(5000, 1),
    "group.streams.min.session.timeout.ms": number(45000, 1),
    "group.streams.num.standby.replicas": number(0, 0),
    "group.streams.session.timeout.ms": number(45000, 1),
    "leader.imbalance.check.interval.seconds": number(300, 1),
    LEADER_THROTTLE: number(LONG_MAX, 0, LONG_MAX),
    "log.cleaner.backoff.ms": number(15000, 0, LONG_MAX),
    "log.cleaner.delete.retention.ms": number(86400000, 0, LONG_MAX),
    "log.cleaner.enable": boolean(True),
    "log.cleaner.max.compaction.lag.ms": number(LONG_MAX, 1, LONG_MAX),
    "log.cleaner.min.cleanable.ratio": Key("0.5", 0, 1, type=ConfigType.DOUBLE),
    "log.cleaner.min.compaction.lag.ms": number(0, 0, LONG_MAX),
    "log.cleanup.policy": Key("delete", type=ConfigType.LIST, choices=("compact", "delete")),
    "log.dir.failure.timeout.ms": number(30000, 1, LONG_MAX),
    "log.dirs": Key("", type=ConfigType.LIST),
    "log.retention.bytes": number(-1, -1, LONG_MAX),
    "log.retention.check.interval.ms": number(300000, 1),
    "log.retention.ms": number(604800000, -1, LONG_MAX),
    "log.segment.bytes": number(1073741824, 1048576),
    "max.incremental.fetch.session.cache.slots": number(1000),
    "message.max.bytes": number(1048588),
    "metadata.max.idle.interval.ms": number(500, 1),
    "min.insync.replicas": number(1, 1),
    "num.partitions": number(1, 1),
    "offset.metadata.max.bytes": number(4096),
    "offsets.commit.timeout.ms": number(5000, 1),
    "offsets.retention.check.interval.ms": number(600000, 1),
    "offsets.retention.minutes": number(10080, 1),
    "offsets.topic.num.partitions": number(50, 1, 10000),
    "offsets.topic.replication.factor": number(3, 1, 32767),
    "replica.fetch.wait.max.ms": number(500, 1),
    "replica.lag.time.max.ms": number(30000, 1, LONG_MAX),
    "replica.selector.class": Key("", choices=("", RACK_AWARE_SELECTOR)),
    "share.coordinator.snapshot.update.records.per.snapshot": number(500, 0, 500),
    "share.coordinator.state.topic.min.isr": number(2, 1),
    "share.coordinator.state.topic.num.partitions": number(50, 1, 10000),
    "share.coordinator.state.topic.replication.factor": number(3, 1, 32767),
    "share.coordinator.write.timeout.ms": number(5000, 1),
    SUPER_USERS: Key(""),
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": number(10000, 1),
    "transaction.max.timeout.ms": number(900000, 1),
    "transaction.remove.expired.transaction.cleanup.interval.ms": number(3600000, 1),
    "transaction.state.log.min.isr": number(2, 1),
    "transaction.state.log.num.partitions": number(50, 1, 10000),
    "transaction.state.log.replication.factor": number(3, 1, 32767),
    "transactional.id.expiration.ms": number(604800000, 1),
    "unclean.leader.election.enable": boolean(False),
    "unclean.leader.election.interval.ms": number(300000, 1, LONG_MAX),
}

AUTO_OFFSET_RESET = "share.auto.offset.reset"
ISOLATION_LEVEL = "share.isolation.level"
RENEW_ENABLED = "share.renew.acknowledge.enable"

GROUP_KEYS: Mapping[str, str] = {
    name: f"group.{name}"
    for name in (
        "consumer.assignment.interval.ms",
        "consumer.heartbeat.interval.ms",
        "consumer.session.timeout.ms",
        "share.assignment.interval.ms",
        "share.delivery.count.limit",
        "share.heartbeat.interval.ms",
        "share.partition.max.record.locks",
        "share.record.lock.duration.ms",
        "share.session.timeout.ms",
        "streams.assignment.interval.ms",
        "streams.heartbeat.interval.ms",
        "streams.initial.rebalance.delay.ms",
        "streams.num.standby.replicas",
        "streams.session.timeout.ms",
    )
}
"""The configurations of a group → the brokers' setting that counts if it is not set."""

GROUP_ONLY_KEYS: Mapping[str, Key] = {
    AUTO_OFFSET_RESET: Key("latest", choices=("earliest", "latest"), duration=True),
    ISOLATION_LEVEL: Key("read_uncommitted", choices=("read_committed", "read_uncommitted")),
    RENEW_ENABLED: boolean(True),
}
"""The configurations of a group for which brokers have no setting."""


@cache
def broker_keys(release: Release) -> Mapping[str, Key]:
    """Return the settings with which brokers of a release can be started."""
    newest, configs = KAFKA_4_3.broker_configs, release.broker_configs
    lacks = (newest.keys() - configs.keys()) | (KAFKA_4_3.features.keys() - release.features.keys())
    keys = {name: key for name, key in BROKER_KEYS.items() if name not in lacks}
    for name in keys.keys() & configs.keys():
        own, other = configs[name], newest[name]
        differs = (own.default, own.key.low, own.key.high) != (other.default, other.key.low, other.key.high)
        if own.default is not None and differs:
            # A time that Kafka 3.9 does not limit would be negative: no simulated election can be so early.
            low = keys[name].low if (own.key.low or 0) < 0 else own.key.low
            keys[name] = replace(keys[name], default=own.default, low=low, high=own.key.high)
    return {**keys, **release.broker_keys}


def check_broker_settings(settings: Mapping[str, str], release: Release = KAFKA_4_3) -> dict[str, str]:
    """Check broker settings, and return them as they are stored.

    Raises BadUse for an invalid value or an unknown key. If the key seems misspelt, the error names the
    nearest known key.
    """
    stored: dict[str, str] = {}
    keys = broker_keys(release)
    for name, value in settings.items():
        key = keys.get(name)
        if key is None:
            raise _unknown(name, keys)
        stored[name] = checked(name, key, value)
    log_dirs = items(stored.get("log.dirs", ""))
    if "" in log_dirs or len(set(log_dirs)) < len(log_dirs):
        raise BadUse(ErrorKind.LOG_DIRS_WRONG, value=stored["log.dirs"])
    protocols = stored.get(REBALANCE_PROTOCOLS, CLASSIC)
    if CLASSIC not in items(protocols):
        raise BadUse(
            ErrorKind.SETTING_NOT_A_CHOICE,
            name=REBALANCE_PROTOCOLS,
            value=protocols,
            choices=(CLASSIC, f"{CLASSIC},consumer"),
            default=CLASSIC,
        )
    return stored


def check_topic_configs(configs: Mapping[str, str], keys: Mapping[str, Key]) -> dict[str, str]:
    """Check a topic's own configurations, and return them as they are stored. `keys` are all that there are.

    Raises BadUse as `check_broker_settings` does.
    """
    stored: dict[str, str] = {}
    for name, value in configs.items():
        key = keys.get(name)
        if key is None:
            raise _unknown(name, keys)
        stored[name] = checked(name, key, value)
    _check_compaction_lags(stored, keys)
    return stored


def _check_compaction_lags(configs: Mapping[str, str], keys: Mapping[str, Key]) -> None:
    low, high = "min.compaction.lag.ms", "max.compaction.lag.ms"
    least, most = (configs.get(name, keys[name].default) for name in (low, high))
    if int(least) > int(most):
        default = keys[low].default
        raise BadUse(
            ErrorKind.SETTING_OUT_OF_RANGE, name=low, value=least, low=0, high=int(most), default=default
        )


def _unknown(name: str, known: Mapping[str, object]) -> BadUse:
    near = get_close_matches(name, list(known), n=1, cutoff=0.5)
    if near:
        return BadUse(ErrorKind.SETTING_MISSPELT, name=name, nearest=near[0])
    return BadUse(ErrorKind.SETTING_UNKNOWN, name=name, known=tuple(sorted(known)))


NOTHING: Mapping[str, str] = {}


class Settings:
    """The settings of all brokers of a cluster, which have a release. Raises BadUse if they are wrong."""

    def __init__(self, settings: Mapping[str, str], release: Release = KAFKA_4_3) -> None:
        self.release = release
        self.explicit = check_broker_settings(settings, release)
        keys = {**BROKER_KEYS, **broker_keys(release)}
        self._defaults = {name: key.default for name, key in keys.items()} | dict(release.lacking)

    def text(self, name: str) -> str:
        """Return a broker's setting as text: the explicit one, else its default. For a setting that
        the release lacks, that is what it says itself, else the default of Kafka 4.3."""
        return self.explicit.get(name, self._defaults[name])

    def number(self, name: str) -> int:
        """Return the effective value of a numeric key."""
        return int(self.text(name))

    def us(self, name: str) -> int:
        """Return the effective value, in microseconds, of a key whose unit is milliseconds."""
        return self.number(name) * 1000

    def flag(self, name: str) -> bool:
        """Return the effective value of a boolean key."""
        return self.text(name) == "true"

    def topic(self, configs: Mapping[str, str], name: str, dynamic: Mapping[str, str] = NOTHING) -> str:
        """Return a topic's effective value: its own, else the brokers' dynamic or static one, else Kafka's
        default."""
        own = configs.get(name)
        if own is not None:
            return own
        topic_key = self.release.topic_keys[name]
        broker_name = topic_key.broker_name or ""
        if broker_name in dynamic:
            return dynamic[broker_name]
        return self.text(broker_name) if broker_name in self._defaults else topic_key.key.default
