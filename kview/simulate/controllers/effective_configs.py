"""The configurations that the controllers and brokers act by, as the metadata has them."""

from collections.abc import Mapping

from kview.simulate.config_entries import ALL_BROKERS
from kview.simulate.controllers.metadata_log import MetadataLog
from kview.simulate.settings import NOTHING, Settings


class EffectiveConfigs:
    """The effective configurations of brokers and topics. Those about elections are kept by topic."""

    def __init__(self, settings: Settings, metadata: MetadataLog) -> None:
        self.settings = settings
        self._metadata = metadata
        self._election_rules: dict[str, tuple[int, bool]] = {}

    def _rules(self, topic: str) -> tuple[int, bool]:
        rules = self._election_rules.get(topic)
        if rules is None:
            topic_image = self._metadata.image.topics.get(topic)
            configs = topic_image.configs if topic_image is not None else {}
            dynamic = self.of_broker(-1)
            min_isr = int(self.settings.topic(configs, "min.insync.replicas", dynamic))
            unclean = self.settings.topic(configs, "unclean.leader.election.enable", dynamic) == "true"
            rules = min_isr, unclean
            if topic_image is not None:
                self._election_rules[topic] = rules
        return rules

    def of_broker(self, broker: int) -> Mapping[str, str]:
        """Return the dynamic configurations of a broker, or those of all brokers for the broker −1."""
        configs = self._metadata.image.broker_configs
        return {**configs.get(ALL_BROKERS, NOTHING), **configs.get(str(broker), NOTHING)}

    def forget(self, topic: str) -> None:
        """Drop what is kept about a topic, because its configurations may have changed."""
        self._election_rules.pop(topic, None)

    def min_insync_replicas(self, topic: str) -> int:
        """Return the topic's effective min.insync.replicas."""
        return self._rules(topic)[0]

    def unclean_election(self, topic: str) -> bool:
        """Return the topic's effective unclean.leader.election.enable."""
        return self._rules(topic)[1]
