"""A small world for tests of groups: one topic, and groups with chosen offsets."""

from collections.abc import Callable

from kview.derive.fold import State, step
from kview.derive.view import View
from kview.model.states import GroupState
from tests.worlds.parts import Consumers, Node, topic
from tests.worlds.world import World

TOPIC = "orders"


def small_world(*groups: Consumers, partitions: int = 4, rate: float = 100.0, size: int = 100_000) -> World:
    """Return a world with `groups` and the topic `orders`, whose partitions have one replica each."""
    nodes = [Node(id, "R1" if id < 3 else "R2") for id in range(6)]
    return World(nodes, topic(TOPIC, partitions, 1, rate, size=size), groups)


def reader(name: str, *committed: int, members: int = 1, share: float = 1 - 1e-9) -> Consumers:
    """Return a group that has committed these offsets on the partitions of `orders`."""
    state = GroupState.STABLE if members else GroupState.EMPTY
    offsets = {(TOPIC, number): offset for number, offset in enumerate(committed)}
    return Consumers(name, 0, members, offsets, state=state, read_share=share)


def ends(partitions: int = 4, size: int = 100_000) -> list[int]:
    """Return where the logs of a small world end at first."""
    return [size + 1_013 * number for number in range(partitions)]


def watch(world: World, observations: int, each: Callable[[int], None] = lambda number: None) -> list[View]:
    """Return the views of so many observations. `each` is called before each of them."""
    state, made = State(), []
    for number in range(observations):
        each(number)
        state, view = step(state, world.tick())
        made.append(view)
    return made
