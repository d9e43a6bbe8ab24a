"""What clients ask of the active controller, besides the creation and deletion of topics.

A broker forwards these requests. Without an active controller they wait until they time out. Sources:
org.apache.kafka.controller.ReplicationControlManager and ConfigurationControlManager.
"""

from collections.abc import Sequence
from dataclasses import replace

from kview.simulate.alterations import (
    MIN_ISR,
    Alteration,
    broker_configs_after,
    group_configs_after,
    min_isr_refusal,
    topic_configs_after,
)
from kview.simulate.broker_configs import find
from kview.simulate.client_metrics import metrics_configs_after
from kview.simulate.codes import ErrorCode
from kview.simulate.controllers.effective_configs import EffectiveConfigs
from kview.simulate.controllers.election import Elections
from kview.simulate.controllers.metadata_log import MetadataLog
from kview.simulate.kernel import Kernel
from kview.simulate.metadata import PartitionImage, TopicImage, TopicPartition
from kview.simulate.placement import Assignment, place
from kview.simulate.reassignment import begun, in_progress, reverted
from kview.simulate.results import AdminResult, Reassignment
from kview.simulate.topics import (
    PARTITIONS_MAX,
    all_inactive,
    unreachable_replication,
    wrong_assignment,
)
from kview.simulate.world import Placement

OK = AdminResult(ErrorCode.NONE)

GROUPS_MAX = 10_000
"""Limit of the groups with configurations, and of the subscriptions of metrics. They need not exist."""
GROUP_NAME_MAX = 1_000
"""Limit of the characters in the name of one."""
UNKNOWN_TOPIC = AdminResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
NO_CONTROLLER = AdminResult(ErrorCode.REQUEST_TIMED_OUT)


class Admin:
    """The controller's side of administration (see `Forwarding`).

    `placement` is how the replicas of new partitions are spread over brokers.
    """

    def __init__(
        self,
        kernel: Kernel,
        metadata: MetadataLog,
        configs: EffectiveConfigs,
        elections: Elections,
        placement: Placement,
    ) -> None:
        self._kernel = kernel
        self._metadata = metadata
        self._configs = configs
        self._elections = elections
        self._placement = placement

    # --- partitions

    def create_partitions(
        self, name: str, count: int, assignment: Sequence[Sequence[int]] | None, validate_only: bool
    ) -> AdminResult:
        """Let a topic have `count` partitions. `assignment` lists the replicas of the additional ones."""
        topic = self._metadata.image.topics.get(name)
        if topic is None:
            return UNKNOWN_TOPIC
        now = len(topic.partitions)
        if count == now:
            return AdminResult(ErrorCode.INVALID_PARTITIONS, f"Topic already has {now} partition(s).")
        if count < now:
            message = f"The topic {name} currently has {now} partition(s); {count} would not be an increase."
            return AdminResult(ErrorCode.INVALID_PARTITIONS, message)
        if count - now > PARTITIONS_MAX:
            return AdminResult(ErrorCode.UNKNOWN_SERVER_ERROR)
        replication = len(topic.partitions[0].replicas)
        active = self._elections.active({})
        if assignment is not None and len(assignment) != count - now:
            message = f"Attempted to add {count - now} additional partition(s), but only {len(assignment)}"
            return AdminResult(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{message} assignment(s) were specified."
            )
        if assignment is not None:
            wrong = wrong_assignment(self._metadata.image, assignment, replication)
            if wrong is not None:
                return wrong
            placed: Assignment = tuple(map(tuple, assignment))
        else:
            known, live = len(self._metadata.image.brokers), len(self._metadata.image.live_brokers())
            if live == 0 or replication > known:
                message = unreachable_replication(replication, known, live, self._configs.settings.release)
                return AdminResult(ErrorCode.INVALID_REPLICATION_FACTOR, message)
            placed = self._placed(now, count, replication)
        added: list[PartitionImage] = []
        for number, replicas in enumerate(placed, now):
            isr = tuple(r for r in replicas if active(r))
            if not isr:
                return AdminResult(ErrorCode.INVALID_REPLICA_ASSIGNMENT, all_inactive(number))
            added.append(PartitionImage(isr[0], 0, 0, replicas, isr))
        if not validate_only:
            self._metadata.commit({}, altered=[replace(topic, partitions=(*topic.partitions, *added))])
        return OK

    def _placed(self, now: int, count: int, replication: int) -> Assignment:
        """Return the replicas of the partitions from `now` up to `count`."""
        brokers, placement = list(self._metadata.image.brokers.values()), self._placement
        random = self._kernel.random("placement")
        if placement is Placement.STRIPED:
            return place(placement, brokers, count - now, replication, random)
        # These rules go on where they stopped when the topic was created.
        return place(placement, brokers, count, replication, random)[now:]

    def elect_leaders(
        self, keys: Sequence[TopicPartition] | None, unclean: bool
    ) -> list[tuple[TopicPartition, AdminResult]]:
        """Elect preferred leaders, or any replica where there is no leader if `unclean`.

        Without `keys` this is about all partitions, and those that need no election are left out.
        """
        asked = [key for key, _ in self._metadata.image.all_partitions()] if keys is None else keys
        active = self._elections.active({})
        changes: dict[TopicPartition, PartitionImage] = {}
        results: list[tuple[TopicPartition, AdminResult]] = []
        for key in asked:
            partition = self._metadata.image.partition(*key)
            if partition is None:
                known = key[0] in self._metadata.image.topics
                missing = f"partition as {key[0]}-{key[1]}" if known else f"topic as {key[0]}"
                result = AdminResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such {missing}")
            elif partition.leader >= 0 if unclean else partition.leader == partition.replicas[0]:
                result = AdminResult(
                    ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
                )
            else:
                rules = self._elections.rules(key[0], active, unclean)
                new = rules.elect(partition, partition.isr, prefer=not unclean)
                if new is not None:
                    changes[key] = new
                    result = OK
                elif unclean:
                    result = AdminResult(
                        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
                        "Eligible topic partition leaders are not available.",
                    )
                else:
                    result = AdminResult(
                        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."
                    )
            if keys is not None or result.error_code is not ErrorCode.ELECTION_NOT_NEEDED:
                results.append((key, result))
        if changes:
            self._metadata.commit(changes)
        return results

    # --- reassignments

    def reassign(
        self, key: TopicPartition, target: Sequence[int] | None, may_change_replication: bool
    ) -> AdminResult:
        """Begin to move a partition to the replicas `target`, or cancel its reassignment if that is None."""
        partition = self._metadata.image.partition(*key)
        if partition is None:
            known = key[0] in self._metadata.image.topics
            what = f"partition {key[0]}:{key[1]}" if known else f"a topic named {key[0]}"
            return AdminResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find {what}.")
        if target is None:
            return self._cancel(key, partition)
        wrong = wrong_assignment(self._metadata.image, [target], len(target))
        if wrong is not None:
            return wrong
        before = len(partition.replicas) - len(partition.removing)
        if not may_change_replication and len(target) != before:
            message = f"The replication factor is changed from {before} to {len(target)}"
            return AdminResult(ErrorCode.INVALID_REPLICATION_FACTOR, message)
        rules = self._elections.rules(key[0], self._elections.active({}))
        new = rules.elect(begun(partition, target), partition.isr, before=partition)
        if new is not None:
            self._metadata.commit({key: new})
        return OK

    def _cancel(self, key: TopicPartition, partition: PartitionImage) -> AdminResult:
        if not in_progress(partition):
            return AdminResult(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
        back = reverted(partition)
        if back.unclean and not self._configs.unclean_election(key[0]):
            message = f"Unable to revert partition assignment for {key[0]}:{key[1]} because it would require"
            return AdminResult(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{message} an unclean leader election.")
        rules = self._elections.rules(key[0], self._elections.active({}))
        new = rules.elect(back.partition, back.isr, before=partition)
        if new is not None:
            self._metadata.commit({key: new})
        return OK

    def reassignments(self) -> list[Reassignment]:
        """Return the reassignments in progress."""
        return [
            Reassignment(key, partition.replicas, partition.adding, partition.removing)
            for key, partition in self._metadata.image.all_partitions()
            if in_progress(partition)
        ]

    # --- configurations

    def alter_topic(
        self, name: str, alterations: Sequence[Alteration], others_too: bool, validate_only: bool
    ) -> AdminResult:
        """Change a topic's configurations. `others_too` removes those that no alteration names."""
        topic = self._metadata.image.topics.get(name)
        if topic is None:
            message = f"The topic '{name}' does not exist."
            return AdminResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
        after = topic_configs_after(
            {} if others_too else topic.configs,
            alterations,
            self._configs.settings,
        )
        if isinstance(after, AdminResult):
            return after
        if not validate_only:
            self._commit_configs(
                replace(topic, configs=after), after.get(MIN_ISR) != topic.configs.get(MIN_ISR)
            )
        return OK

    def _commit_configs(self, topic: TopicImage, clear_elr: bool) -> None:
        if clear_elr:  # Which replicas are eligible depends on min.insync.replicas.
            cleared = tuple(p._replace(elr=(), last_known_elr=()) for p in topic.partitions)
            topic = replace(topic, partitions=cleared)
        self._configs.forget(topic.name)
        self._metadata.commit({}, altered=[topic])

    def alter_broker(
        self, broker: str, alterations: Sequence[Alteration], others_too: bool, validate_only: bool
    ) -> AdminResult:
        """Change the dynamic configurations of a broker, or of all brokers if `broker` is empty."""
        configs, release = self._metadata.image.broker_configs, self._configs.settings.release
        in_force = {**self._configs.settings.explicit, **self._configs.of_broker(int(broker or -1))}

        def current(name: str) -> str | None:
            config = find(release.broker_configs, name)
            return in_force.get(name, config.default if config else None)

        before = configs.get(broker, {})
        after = broker_configs_after(broker, before, alterations, others_too, current, release)
        if not isinstance(after, AdminResult) and self._elections.elr_enabled:
            after = min_isr_refusal(broker, before, alterations, after) or after
        if isinstance(after, AdminResult):
            return after
        if not validate_only:
            for name in self._metadata.image.topics:
                self._configs.forget(name)
            # All topics are altered, because their effective configurations may have changed.
            topics = list(self._metadata.image.topics.values())
            self._metadata.commit({}, altered=topics, broker_configs={**configs, broker: after})
        return OK

    def alter_group(
        self, group: str, alterations: Sequence[Alteration], others_too: bool, validate_only: bool
    ) -> AdminResult:
        """Change a group's configurations. `others_too` removes those that no alteration names."""
        if not group:
            return AdminResult(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
        configs = dict(self._metadata.image.group_configs)
        before = configs.pop(group, {})
        if len(configs) >= GROUPS_MAX:
            return AdminResult(ErrorCode.INVALID_CONFIG, "Too many groups with configurations.")
        if len(group) > GROUP_NAME_MAX:
            return AdminResult(ErrorCode.INVALID_CONFIG, "The group's name is too long for configurations.")
        after = group_configs_after({} if others_too else before, alterations, self._configs.settings)
        if isinstance(after, AdminResult):
            return after
        if not validate_only and after != before:
            self._metadata.commit({}, group_configs={**configs, group: after} if after else configs)
        return OK

    def alter_client_metrics(
        self, name: str, alterations: Sequence[Alteration], others_too: bool, validate_only: bool
    ) -> AdminResult:
        """Change a subscription of client metrics. `others_too` removes those that no alteration names."""
        if not name:
            return AdminResult(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
        subscriptions = dict(self._metadata.image.client_metrics)
        before = subscriptions.pop(name, {})
        if len(subscriptions) >= GROUPS_MAX or len(name) > GROUP_NAME_MAX:
            return AdminResult(
                ErrorCode.INVALID_CONFIG, "Too many subscriptions, or a name that is too long."
            )
        after = metrics_configs_after(
            {} if others_too else before, alterations, self._configs.settings.release
        )
        if isinstance(after, AdminResult):
            return after
        if not validate_only and after != before:
            changed = {**subscriptions, name: after} if after else subscriptions
            self._metadata.commit({}, client_metrics=changed)
        return OK
