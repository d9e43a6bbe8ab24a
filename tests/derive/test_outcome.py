"""What a fault led to, for the partitions that the broker led when it was hit."""

from kview.derive.incidents.outcome import led_by, outcome, rejoined
from kview.derive.view import View
from kview.language import commands
from kview.model.lab import Command, CommandKind, Done, NodeRole, Outcome
from tests.worlds import World, default_world, views
from tests.worlds.parts import topic


def failover(world: World, made_meanwhile: str = "") -> tuple[View, View, View]:
    """Views before broker 4 crashed, while it is silent, and after it was fenced. A topic of that name is
    created in between."""
    snapshots = [world.tick() for _ in range(3)]
    world.crash(4)
    snapshots += [world.tick() for _ in range(4)]
    if made_meanwhile:
        world.add(topic(made_meanwhile, 3, 1, 10.0))
    snapshots += [world.tick() for _ in range(10)]
    seen = list(views(snapshots))
    return seen[2], seen[5], seen[-1]


def led_to(before: View, after: View) -> Outcome | None:
    hit_ms = before.snapshot.observation.ended_ms
    return outcome(after, CommandKind.CRASH, 4, led_by(before, 4), hit_ms)


def test_nothing_is_said_while_the_broker_still_leads() -> None:
    before, silent, _ = failover(default_world())
    assert led_to(before, silent) is None


def test_internal_topics_do_not_count() -> None:
    before, _, after = failover(default_world())
    assert led_to(before, after) == Outcome(CommandKind.CRASH, 4, 3, 1, 12, 14_000)


def test_a_topic_created_meanwhile_changes_nothing() -> None:
    before, _, after = failover(default_world(), made_meanwhile="a-new-one")
    assert len(after.snapshot.partitions) == len(before.snapshot.partitions) + 3
    assert led_to(before, after) == Outcome(CommandKind.CRASH, 4, 3, 1, 12, 14_000)


def test_a_broker_that_led_nothing_has_no_outcome() -> None:
    world = default_world()
    world.logs = [log for log in world.logs if log.leader != 4]
    before, _, after = failover(world)
    assert led_to(before, after) is None


def test_a_crash_and_a_clean_stop_say_what_they_did_and_what_was_lost() -> None:
    before, _, after = failover(default_world())
    crashed = led_to(before, after)
    assert crashed is not None
    assert commands.outcome(crashed) == (
        "broker 4 crashed: 3 partitions got new leaders after 14 s; 1 partition has no leader: its records"
        " cannot be read until a broker that has all of them is back; ≥ 12 records lost elsewhere"
    )
    world = default_world()
    world.logs = [log for log in world.logs if log.topic != "audit-log"]
    snapshots = [world.tick() for _ in range(3)]
    for log in world.logs:
        if log.leader == 4:
            log.leader, log.epoch = next(id for id in log.isr if id != 4), log.epoch + 1
    *_, handed_over = views([*snapshots, world.tick(), world.tick()])
    (*_, then) = views(snapshots)
    hit_ms = then.snapshot.observation.ended_ms
    stopped = outcome(handed_over, CommandKind.STOP, 4, led_by(then, 4), hit_ms)
    assert stopped is not None
    assert commands.outcome(stopped) == (
        "broker 4 stopped cleanly: 3 partitions got new leaders before it exited"
    )


def test_a_new_leader_that_does_not_answer_is_no_new_leader_for_clients() -> None:
    world = default_world()
    world.logs = [log for log in world.logs if log.topic != "audit-log"]
    snapshots = [world.tick() for _ in range(2)]
    heirs = {next(id for id in log.isr if id != 4) for log in world.logs if log.leader == 4}
    heir = min(heirs)
    world.crash(heir)
    snapshots += [world.tick() for _ in range(3)]
    for log in world.logs:
        if log.leader == 4:
            log.leader, log.epoch = heir, log.epoch + 1
    *_, then = views(snapshots)
    *_, stopped = views([*snapshots, world.tick()])
    found = outcome(stopped, CommandKind.STOP, 4, led_by(then, 4), then.snapshot.observation.ended_ms)
    assert found is not None and (found.moved, found.moved_to_silent, found.silent_leaders) == (0, 3, (heir,))
    assert commands.outcome(found) == (
        f"broker 4 stopped cleanly: 3 partitions moved to broker {heir}, which does not answer: they cannot"
        " be read or written until an answering broker leads them"
    )


def test_a_restored_broker_has_caught_up_once_it_is_in_every_isr() -> None:
    world = default_world()
    snapshots = [world.tick() for _ in range(3)]
    world.crash(4)
    snapshots += [world.tick() for _ in range(12)]
    world.log("invoice", 3).stalled = frozenset({4})
    world.back(4)
    at_ms = snapshots[-1].observation.ended_ms
    snapshots += [world.tick() for _ in range(5)]
    world.log("invoice", 3).stalled = frozenset()
    seen = list(views([*snapshots, *(world.tick() for _ in range(5))]))
    for done in (Done(Command(CommandKind.START), (4,)), Done(Command(CommandKind.UNDO), (4,))):
        assert not rejoined(seen[2], done, at_ms), "that was before"
        assert not rejoined(seen[-6], done, at_ms), "invoice-3 still waits for it"
        assert rejoined(seen[-1], done, at_ms)
    controller = Done(Command(CommandKind.START), (101,), NodeRole.CONTROLLER)
    assert not rejoined(seen[-1], controller, at_ms)
    assert commands.caught_up(Done(Command(CommandKind.START), (4,))) == (
        "broker 4 has caught up: it is in every ISR again"
    )
