"""The times that an incident tells: a count is never told before it was true."""

from msgspec.structs import replace

from kview.derive.fold import State, step
from kview.derive.view import View
from kview.language import incidents as words
from kview.model.events import EventKind
from kview.model.failures import FailureKind
from kview.model.incidents import Incident, IncidentKind, PhaseKind
from kview.recording.facts import incident_row
from tests.worlds import default_world
from tests.worlds.small import watch

CRASHED_S, BACK_S = {5: 3, 12: 4}, {40: 3, 60: 4}


def two_lost() -> list[View]:
    """Broker 3 is lost, broker 4 seven seconds later, and they are back 20 s apart."""
    world = default_world()

    def each(second: int) -> None:
        if second in CRASHED_S:
            world.crash(CRASHED_S[second])
        if second in BACK_S:
            world.back(BACK_S[second])

    return watch(world, 70, each)


def only(view: View) -> Incident:
    (incident,) = view.incidents
    return incident


def test_counts_that_grow_later_are_told_with_the_time_at_which_they_were_true() -> None:
    incident = only(two_lost()[-1])
    told = words.sentence(incident, incident.ended_ms)
    assert told.startswith("brokers 3 and 4 silent by +7.0 s ▸ +0.0 s … +7.")
    assert "▸ +35 s … +55 s 2 of 2 brokers back" in told
    row, back = incident_row(incident, {}), incident.phase(PhaseKind.BACK)
    assert back and (row["back_ms"], row["back_all_ms"]) == (35_100, 55_100)
    assert row["elected_all_ms"] == row["moves_all_ms"] == 55_100, "only broker 4 has some partitions"


def test_what_was_led_again_and_then_lost_again_is_not_told_as_led() -> None:
    world = default_world()

    def each(second: int) -> None:
        if second == 5:
            world.crash(4)
        if second == 20:
            for broker in range(6):
                world.crash(broker)

    incident = only(watch(world, 25, each)[-1])
    assert incident.phase(PhaseKind.ELECTED)
    assert not any(PhaseKind.ELECTED in stage.kinds for stage in words.stages(incident))


def test_it_waits_for_fencing_only_while_a_silent_broker_is_not_fenced() -> None:
    made = two_lost()
    assert words.waits_for(only(made[18])) == "waiting for fencing", "broker 3 is fenced, 4 is not"
    assert "without a leader" in words.waits_for(only(made[30]))
    assert only(made[30]).away == (3, 4) and only(made[45]).away == (4,)
    assert (only(made[18]).unfenced, only(made[30]).unfenced) == (1, 0)


def test_producers_wait_for_a_partition_without_a_leader_too() -> None:
    made = two_lost()
    alone, over = only(made[30]), only(made[-1])
    assert alone.leaderless and alone.is_waiting
    assert alone.waited_ms == made[30].snapshot.observation.ended_ms - made[4].snapshot.observation.began_ms
    assert over.waited_ms >= 48_000 and not over.is_waiting, "broker 4 was away for 48 s"


def test_a_quorum_that_nobody_could_ask_is_dated_by_who_told_first() -> None:
    world, state = default_world(), State()
    made: list[View] = []
    for second in range(25):
        if second in (5, 20):
            for broker in range(6):
                world.cut(broker, FailureKind.REFUSED) if second == 5 else world.back(broker)
        snapshot = world.tick()
        if second >= 5:
            asked = replace(snapshot.observation, quorum_received_ms=made[4].snapshot.observation.ended_ms)
            snapshot = replace(snapshot, observation=asked)
        state, view = step(state, snapshot)
        made.append(view)
    told = [one for one in made[-1].incidents if one.kind is IncidentKind.QUORUM]
    assert [one.began_ms for one in told] == [made[20].snapshot.observation.ended_ms]
    assert told[0].not_before_ms == made[4].snapshot.observation.ended_ms
    assert words.length(told[0], told[0].began_ms) == "≤ 16 s"
    (event,) = (one for one in made[-1].events if one.kind is EventKind.QUORUM_LOST)
    assert event.at_ms == told[0].began_ms
