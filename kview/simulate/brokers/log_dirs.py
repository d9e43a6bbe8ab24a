"""A broker's log directories, and which of them have failed. Source: LogManager, KIP-858."""

from collections.abc import Mapping, Sequence

from kview.simulate.brokers.replica import Replica
from kview.simulate.metadata import TopicPartition
from kview.simulate.setting import items

METADATA_DIR = 0
"""The first directory has the metadata log. A broker that loses it ends."""


def paths(log_dirs: str, broker: int) -> tuple[str, ...]:
    """Return the paths of a broker's directories. Those that are not absolute are in a folder of its own."""
    own = f"/simulated/broker-{broker}"
    return tuple(path if path.startswith("/") else f"{own}/{path}" for path in items(log_dirs)) or (own,)


class LogDirs:
    """The directories of a broker, each on a disk of its own, by their places in log.dirs.

    `failed` ones are not used any more until the broker starts again. What is in `lost` ones is gone, and to
    `full` ones nothing can be appended. `offline` are the replicas in failed directories.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = paths
        self.failed: set[int] = set()
        self.full: set[int] = set()
        self.lost: set[int] = set()
        self.offline: dict[TopicPartition, Replica] = {}
        self._emptied: set[TopicPartition] = set()
        """Offline replicas whose logs are gone. They are kept until the broker has registered again, because
        the controllers take them for what they were until then."""
        self._replicas = [0] * len(paths)

    def working(self) -> list[int]:
        """Return the directories that are neither failed nor full."""
        return [at for at in range(len(self.paths)) if at not in self.failed and at not in self.full]

    def place(self, replica: Replica) -> None:
        """Put a new replica where the fewest are (LogManager.nextLogDirs)."""
        usable = [at for at in range(len(self.paths)) if at not in self.failed]
        replica.directory = min(usable, key=self._replicas.__getitem__, default=METADATA_DIR)
        self._replicas[replica.directory] += 1

    def move(self, replica: Replica, directory: int) -> None:
        """Put a replica into another directory, at once."""
        self.removed(replica)
        replica.directory = directory
        self._replicas[directory] += 1

    def removed(self, replica: Replica) -> None:
        """Note that a replica is deleted."""
        self._replicas[replica.directory] -= 1

    def fail(
        self, directory: int, replicas: dict[TopicPartition, Replica]
    ) -> Mapping[TopicPartition, Replica]:
        """Stop serving what is in a directory. Its replicas, which are returned, go from `replicas` to
        `offline`."""
        self.failed.add(directory)
        gone = {key: replica for key, replica in replicas.items() if replica.directory == directory}
        for key in gone:
            del replicas[key]
        self.offline |= gone
        return gone

    def offline_ids(self) -> Mapping[TopicPartition, bytes]:
        """Return the partitions whose replicas are offline, with the ids of their topics."""
        return {key: replica.topic_id for key, replica in self.offline.items()}

    def has_lost(self, replica: Replica) -> bool:
        """Return whether a replica's log is gone."""
        return replica.directory in self.lost or replica.key in self._emptied

    def repair(self) -> None:
        """Put new disks in place of lost ones, and make room on full ones, for when the process starts."""
        self._emptied |= {key for key, replica in self.offline.items() if replica.directory in self.lost}
        self.failed, self.full, self.lost = set(), set(), set()

    def take_back(self) -> dict[TopicPartition, Replica]:
        """Return the replicas that were offline and are there again, because the process has started."""
        back = {key: replica for key, replica in self.offline.items() if replica.directory not in self.failed}
        for key in back:
            del self.offline[key]
        for key in self._emptied & back.keys():
            self.removed(back.pop(key))
        self._emptied = set()
        return back
