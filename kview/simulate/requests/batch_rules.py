"""The rules by which a broker checks clients' batches, from the topics' configurations."""

from collections.abc import Mapping

from kview.simulate.batch_check import APPEND_TIME, Rules
from kview.simulate.controllers.effective_configs import EffectiveConfigs
from kview.simulate.controllers.metadata_log import MetadataLog
from kview.simulate.kernel import Kernel
from kview.simulate.setting import LONG_MAX
from kview.simulate.settings import NOTHING

DIFFERENCE = "message.timestamp.difference.max.ms"
"""What counted for both directions before Kafka 4.0, where they are not limited themselves."""

KEPT_RULES_MAX = 20_000
"""Topics, per broker, whose rules for batches are remembered."""


class BatchRules:
    """The rules by broker and topic, remembered until the configurations change."""

    def __init__(self, kernel: Kernel, metadata: MetadataLog, configs: EffectiveConfigs) -> None:
        self._kernel = kernel
        self._metadata = metadata
        self._configs = configs
        self._kept: dict[tuple[int, str], tuple[Mapping[str, str], object, Rules]] = {}

    def of(self, b: int, topic: str) -> Rules:
        """Return the rules by which broker b checks a batch for this topic now."""
        topic_image = self._metadata.image.topics.get(topic)
        configs = topic_image.configs if topic_image is not None else NOTHING
        now_ms, dynamic = self._kernel.now_us // 1000, self._metadata.image.broker_configs
        kept = self._kept.get((b, topic))
        if kept is not None and kept[0] is configs and kept[1] is dynamic:
            return kept[2]._replace(now_ms=now_ms)
        settings, of_broker = self._configs.settings, self._configs.of_broker(b)

        def value(name: str) -> str:
            return settings.topic(configs, name, of_broker)

        def distance_ms(name: str) -> int:
            own = int(value(name))
            both = DIFFERENCE in settings.release.topic_keys and own == LONG_MAX
            return int(value(DIFFERENCE)) if both else own

        rules = Rules(
            now_ms,
            int(value("max.message.bytes")),
            "compact" in value("cleanup.policy"),
            distance_ms("message.timestamp.before.max.ms"),
            distance_ms("message.timestamp.after.max.ms"),
            value("message.timestamp.type") == APPEND_TIME,
        )
        if len(self._kept) >= KEPT_RULES_MAX:
            self._kept.clear()
        self._kept[b, topic] = configs, dynamic, rules
        return rules
