"""Changes of one partition by Kafka's rules, without a cluster."""

from collections.abc import Callable
from typing import Any

from kview.simulate.controllers.election import ElectionRules
from kview.simulate.metadata import PartitionImage

START = PartitionImage(0, 5, 7, (0, 1, 2), (0, 1, 2))


def active(*brokers: int) -> Callable[[int], bool]:
    return brokers.__contains__


def rules(
    active: Callable[[int], bool],
    min_insync_replicas: int = 1,
    elr_enabled: bool = True,
    unclean: bool = False,
) -> ElectionRules:
    return ElectionRules(active, min_insync_replicas, elr_enabled, unclean)


def change(
    partition: PartitionImage = START,
    *,
    isr: tuple[int, ...],
    unclean_shutdown: int | None = None,
    prefer: bool = False,
    **how: Any,
) -> PartitionImage:
    new = rules(**how).elect(partition, isr, unclean_shutdown=unclean_shutdown, prefer=prefer)
    assert new is not None
    return new


def test_the_next_in_sync_replica_in_list_order_leads() -> None:
    assert change(isr=(1, 2), active=active(1, 2)) == PartitionImage(1, 6, 8, (0, 1, 2), (1, 2))


def test_a_shrink_alone_raises_the_partition_epoch_only() -> None:
    assert change(isr=(0, 2), active=active(0, 2)) == PartitionImage(0, 5, 8, (0, 1, 2), (0, 2))


def test_nothing_new_is_no_change() -> None:
    assert rules(active(0, 1, 2)).elect(START, START.isr) is None


def test_the_last_one_stays_in_the_isr_without_elr() -> None:
    alone = START._replace(isr=(0,))
    assert change(alone, isr=(), active=active(1, 2), elr_enabled=False) == PartitionImage(
        -1, 6, 8, (0, 1, 2), (0,)
    )


def test_the_last_one_goes_to_the_elr_and_leads_again_from_there() -> None:
    lost = change(START._replace(isr=(0,)), isr=(), active=active(1, 2))
    assert lost == PartitionImage(-1, 6, 8, (0, 1, 2), (), (0,), (0,))
    back = change(lost, isr=(), active=active(0, 1, 2))
    assert back == PartitionImage(0, 7, 9, (0, 1, 2), (0,), (), ())


def test_below_min_isr_the_elr_keeps_who_had_everything() -> None:
    two = change(isr=(0, 1), active=active(0, 1), min_insync_replicas=2)
    assert (two.isr, two.elr) == ((0, 1), ())
    one = change(two, isr=(0,), active=active(0), min_insync_replicas=2)
    assert (one.isr, one.elr) == ((0,), (1,))
    none = change(one, isr=(), active=active(1, 2), min_insync_replicas=2)
    assert (none.leader, none.isr, none.elr) == (1, (1,), (0,)), "the one in the ELR leads"
    again = change(none, isr=(0, 1), active=active(0, 1), min_insync_replicas=2)
    assert (again.elr, again.last_known_elr) == ((), ())


def test_after_an_unclean_shutdown_only_the_last_known_leader_may_lead() -> None:
    lost = change(START._replace(isr=(0,)), isr=(), active=active(1, 2))
    unclean = change(lost, isr=(), active=active(1, 2), unclean_shutdown=0)
    assert (unclean.leader, unclean.elr, unclean.last_known_elr) == (-1, (), (0,))
    back = change(unclean, isr=(), active=active(0, 1, 2))
    assert (back.leader, back.isr, back.recovering) == (0, (0,), True)


def test_an_unclean_election_takes_the_first_live_replica() -> None:
    alone = START._replace(isr=(0,))
    new = change(alone, isr=(), active=active(1, 2), unclean=True, elr_enabled=False)
    assert (new.leader, new.isr, new.recovering, new.leader_epoch) == (1, (1,), True, 6)
    assert change(alone, isr=(), active=active(1, 2), unclean=False).leader == -1


def test_the_preferred_leader_is_taken_only_if_it_is_in_sync() -> None:
    moved = START._replace(leader=1)
    assert change(moved, isr=(0, 1, 2), active=active(0, 1, 2), prefer=True).leader == 0
    behind = moved._replace(isr=(1, 2))
    assert rules(active(0, 1, 2)).elect(behind, (1, 2), prefer=True) is None


def test_an_election_from_the_elr_leaves_the_rest_of_it_and_no_last_known_leader() -> None:
    """As on a real cluster: min ISR 2, three replicas, the last of them hung and resumed."""
    lost = START._replace(leader=-1, isr=(), elr=(0, 2), last_known_elr=(0,))
    back = change(lost, isr=(), active=active(0), min_insync_replicas=2)
    assert (back.leader, back.isr, back.elr, back.last_known_elr) == (0, (0,), (2,), ())


def test_after_an_unclean_election_nobody_is_eligible() -> None:
    lost = START._replace(leader=-1, isr=(), elr=(0, 2), last_known_elr=(0,))
    forced = change(lost, isr=(), active=active(1), min_insync_replicas=2, unclean=True)
    assert (forced.leader, forced.isr, forced.elr, forced.last_known_elr) == (1, (1,), (), ())
    assert forced.recovering


def test_after_the_last_known_leaders_election_nobody_is_eligible() -> None:
    lost = START._replace(leader=-1, isr=(), elr=(), last_known_elr=(0,))
    back = change(lost, isr=(), active=active(0, 1, 2), min_insync_replicas=2)
    assert (back.leader, back.isr, back.elr, back.last_known_elr) == (0, (0,), (), ())
