"""Log directories that fail while their broker runs."""

from pathlib import Path

from tests.real_kafka.cluster import FOLDER
from tests.real_kafka.nodes import Node

TWO_DIRS = {
    "log.dirs": f"{FOLDER}/data,{FOLDER}/more",
    "metadata.log.dir": f"{FOLDER}/data",
    "replica.high.watermark.checkpoint.interval.ms": "500",  # this is how it notices
}
"""A cluster whose brokers can lose one of their two directories."""


def can_fail(node: Node) -> Path:
    """Return the directory of a broker that can fail."""
    return node.folder / "more"


def lose(node: Node) -> None:
    """Let the directory fail, as a disk that is unmounted: the broker can no longer write there."""
    path = can_fail(node)
    path.rename(path.with_name("unmounted"))
    path.touch()


def repair(node: Node) -> None:
    """Bring the directory back. A broker uses it again after a restart."""
    path = can_fail(node)
    path.unlink()
    path.with_name("unmounted").rename(path)
