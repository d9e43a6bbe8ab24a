"""The replication throttle, which limits how fast replicas that are not in sync are copied.

It has a rate per broker, for what the broker sends as a leader and for what it fetches as a follower, and it
covers the replicas that a topic names. Sources: KIP-73, kafka.server.ReplicationQuotaManager.
"""

from kview.simulate.brokers.bucket import Bucket
from kview.simulate.controllers.effective_configs import EffectiveConfigs
from kview.simulate.metadata import MetadataImage, TopicPartition
from kview.simulate.setting import LONG_MAX, items
from kview.simulate.settings import FOLLOWER_THROTTLE, LEADER_THROTTLE, NOTHING

ALL_REPLICAS = "*"

_REPLICAS = {
    LEADER_THROTTLE: "leader.replication.throttled.replicas",
    FOLLOWER_THROTTLE: "follower.replication.throttled.replicas",
}
"""The broker's rate → the topic's list of replicas."""


class Throttle:
    """One broker's throttle in one direction. `rate_key` is LEADER_THROTTLE or FOLLOWER_THROTTLE."""

    def __init__(self, broker: int, rate_key: str, configs: EffectiveConfigs) -> None:
        self._broker = broker
        self._rate_key = rate_key
        self._configs = configs
        self._bucket: Bucket | None = None

    def bucket_for(self, key: TopicPartition, image: MetadataImage, now_us: int) -> Bucket | None:
        """Return the budget for copying this partition, or None if it is not limited.

        `image` is the broker's metadata.
        """
        text = self._configs.of_broker(self._broker).get(self._rate_key)
        rate = int(text) if text is not None else self._configs.settings.number(self._rate_key)
        if rate >= LONG_MAX or not self._covers(key, image):
            return None
        if self._bucket is None or self._bucket.rate != rate:
            self._bucket = Bucket(rate, now_us)
        return self._bucket

    def _covers(self, key: TopicPartition, image: MetadataImage) -> bool:
        topic = image.topics.get(key[0])
        configs = topic.configs if topic is not None else NOTHING
        replicas = configs.get(_REPLICAS[self._rate_key], "")
        return replicas == ALL_REPLICAS or f"{key[1]}:{self._broker}" in items(replicas)
