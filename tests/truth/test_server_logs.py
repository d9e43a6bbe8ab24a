"""Lines of a real controller's log."""

from datetime import datetime

from tests.truth.log import Coordinator, Fencing, Joined
from tests.truth.server_logs import coordinators, fencings, joined

LINES = """\
06:06:46.544 INFO BrokerHeartbeatManager: [QuorumController id=101] The request from broker 1 to unfence has been granted because it has caught up with the offset of its register broker record 17.
06:06:46.572 INFO ClusterControlManager: [QuorumController id=101] Replayed BrokerRegistrationChangeRecord modifying the registration for broker 1: BrokerRegistrationChangeRecord(brokerId=1, brokerEpoch=17, fenced=-1, inControlledShutdown=0, logDirs=[])
06:06:56.068 INFO ReplicationControlManager: [QuorumController id=101] Fencing broker 2 at epoch 18 because its session has timed out.
06:07:03.114 INFO ClusterControlManager: [QuorumController id=101] Registering a new incarnation of broker 2. Previous incarnation ID was MP_2UUZpRo; new incarnation ID is awMsl0HbQu. Generated 0 record(s)
00:00:01.497 INFO BrokerHeartbeatManager: [QuorumController id=102] The request from broker 2 to unfence has been granted because it has caught up with the offset of its register broker record 68.
"""  # noqa: E501


LOADED = """\
06:31:35.380 INFO CoordinatorRuntime: [GroupCoordinator id=0] Scheduling loading of metadata from __consumer_offsets-0 with epoch 1
06:31:35.536 INFO CoordinatorRuntime: [GroupCoordinator id=0] Finished loading of metadata from __consumer_offsets-0 with epoch 1 in 37ms where 2ms was spent in the scheduler. Loaded 97 records which total to 10649 bytes
"""  # noqa: E501


QUORUM = """\
10:35:38.548 INFO QuorumState: [RaftManager id=101] Completed transition to CandidateState(localId=101, epoch=1)
10:35:38.606 INFO QuorumState: [RaftManager id=101] Completed transition to Leader(localVoterNode=VoterNode(voterKey=ReplicaKey(id=101)))
10:35:39.397 INFO QuorumController: [QuorumController id=101] Becoming the active controller at epoch 1, next write offset 3.
10:35:39.801 INFO QuorumState: [RaftManager id=102] Completed transition to FollowerState(fetchTimeoutMs=2000, epoch=1, leader=101)
"""  # noqa: E501


def test_who_is_in_the_quorum() -> None:
    began = datetime(2026, 11, 22, 10, 35)
    ms = round(datetime(2026, 11, 22, 10, 35, 39).timestamp() * 1000)
    assert joined(QUORUM.splitlines(), began) == [Joined(ms + 397, 101), Joined(ms + 801, 102)]


def test_who_coordinates() -> None:
    began = datetime(2026, 11, 22, 6, 30)
    ms = round(datetime(2026, 11, 22, 6, 31, 35, 536_000).timestamp() * 1000)
    assert coordinators(LOADED.splitlines(), began) == [Coordinator(ms, 0)]


def test_what_the_active_controller_says() -> None:
    began = datetime(2026, 11, 22, 6, 6, 40)

    def ms(day: int, hour: int, minute: int, second: float) -> int:
        whole = datetime(2026, 11, day, hour, minute).timestamp() + second
        return round(whole * 1000)

    assert fencings(LINES.splitlines(), began) == [
        Fencing(ms(22, 6, 6, 46.544), 1, False),
        Fencing(ms(22, 6, 6, 56.068), 2, True),
        Fencing(ms(22, 6, 7, 3.114), 2, True),
        Fencing(ms(23, 0, 0, 1.497), 2, False),
    ]
