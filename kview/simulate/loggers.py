"""The loggers of a broker, whose levels change nothing here, and are forgotten when the process ends.

Source: kafka.server.logger.RuntimeLoggerManager.
"""

from collections.abc import Sequence

from kview.simulate.alterations import Alteration, Operation
from kview.simulate.codes import ErrorCode
from kview.simulate.nodes import Node
from kview.simulate.results import AdminResult, ConfigEntry, ConfigSource

ROOT, DEFAULT = "root", "INFO"
LEVELS = ("DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN")
LOGGERS = (
    "kafka.authorizer.logger",
    "kafka.coordinator.transaction.TransactionCoordinator",
    "kafka.log.LogCleaner",
    "kafka.log.LogManager",
    "kafka.network.DataPlaneAcceptor",
    "kafka.network.Processor",
    "kafka.network.SocketServer",
    "kafka.request.logger",
    "kafka.server.BrokerServer",
    "kafka.server.KafkaApis",
    "kafka.server.KafkaConfig",
    "kafka.server.KafkaRequestHandler",
    "kafka.server.ReplicaManager",
    "kafka.server.metadata.BrokerMetadataPublisher",
    "kafka.server.metadata.DynamicConfigPublisher",
    "org.apache.kafka.controller",
    "org.apache.kafka.coordinator.group.GroupCoordinatorService",
    "org.apache.kafka.storage.internals.log.UnifiedLog",
    "state.change.logger",
    ROOT,
)
"""Some of a real broker's loggers, of which there are about 170."""

OK = AdminResult(ErrorCode.NONE)


class Loggers:
    """The loggers of one broker, whose process is `node`."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._incarnation = node.incarnation
        self._levels: dict[str, str] = {}

    def _current(self) -> dict[str, str]:
        """Return the levels that were set since the process started."""
        if self._incarnation != self._node.incarnation:
            self._incarnation, self._levels = self._node.incarnation, {}
        return self._levels

    def entries(self) -> list[ConfigEntry]:
        """Return all loggers with the levels in force."""
        levels = self._current()
        root = levels.get(ROOT, DEFAULT)
        return [ConfigEntry(n, levels.get(n, root), ConfigSource.LOGGER, 0, (), False) for n in LOGGERS]

    def alter(self, alterations: Sequence[Alteration], validate_only: bool) -> AdminResult:
        """Change levels, or none of them if one is wrong."""
        if len({alteration.name for alteration in alterations}) < len(alterations):
            return AdminResult(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
        for alteration in alterations:
            wrong = _wrong(*alteration)
            if wrong is not None:
                return wrong
        if not validate_only:
            levels = self._current()
            for name, operation, level in alterations:
                if operation == Operation.DELETE:
                    levels.pop(name, None)
                else:
                    levels[name] = level or DEFAULT
        return OK


def _wrong(name: str, operation: int, level: str | None) -> AdminResult | None:
    if operation != Operation.DELETE and level is None:
        return AdminResult(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {name}")
    if operation in (Operation.APPEND, Operation.SUBTRACT):
        verb = Operation(operation).name
        message = f"{verb} operation is not allowed for the BROKER_LOGGER resource"
        return AdminResult(ErrorCode.INVALID_REQUEST, message)
    if operation not in (Operation.SET, Operation.DELETE):
        message = f"Unknown operation type {operation} is not allowed for the BROKER_LOGGER resource"
        return AdminResult(ErrorCode.INVALID_REQUEST, message)
    if name not in LOGGERS:
        return AdminResult(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
    if operation == Operation.DELETE and name == ROOT:
        message = "Removing the log level of the root logger is not allowed"
        return AdminResult(ErrorCode.INVALID_REQUEST, message)
    if operation == Operation.SET and level not in LEVELS:
        message = (
            f"Cannot set the log level of {name} to {level} as it is not a supported log level. "
            f"Valid log levels are {', '.join(LEVELS)}"
        )
        return AdminResult(ErrorCode.INVALID_CONFIG, message)
    return None
