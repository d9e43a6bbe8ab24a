"""The mapping of the metadata's topics behaves like a dict, and a changed copy shares what is the same."""

from collections.abc import Iterator, KeysView

from hypothesis import given
from hypothesis import strategies as st

from kview.simulate.layers import LAYER_MIN, Layered

KEYS = st.integers(0, 60)
STEPS = st.lists(st.tuples(st.dictionaries(KEYS, st.integers(), max_size=5), st.sets(KEYS, max_size=5)))


@given(STEPS)
def test_it_is_a_dict_in_every_step_and_earlier_steps_stay_as_they_were(
    steps: list[tuple[dict[int, int], set[int]]],
) -> None:
    mapping, expected = Layered[int, int]({}), dict[int, int]()
    seen = [(mapping, dict(expected))]
    for values, removed in steps:
        mapping = mapping.changed(values, sorted(removed))
        for key in sorted(removed):
            expected.pop(key, None)
        expected.update(values)
        seen.append((mapping, dict(expected)))
    for then, wanted in seen:
        assert [then.get(key) for key in range(61)] == [wanted.get(key) for key in range(61)]
        assert [key in then for key in range(61)] == [key in wanted for key in range(61)]
    for then, wanted in seen:
        assert list(then.items()) == list(wanted.items()), "in the same order"
        assert (list(then), list(then.values()), len(then)) == (list(wanted), [*wanted.values()], len(wanted))


class Counted(dict[int, int]):
    """A dict that counts how often it is copied. With `__iter__`, `dict` asks it for its keys."""

    copies = 0

    def __iter__(self) -> Iterator[int]:
        return super().__iter__()

    def keys(self) -> KeysView[int]:  # type: ignore[override]
        Counted.copies += 1
        return super().keys()


def test_a_changed_copy_of_many_copies_few() -> None:
    mapping: Layered[int, int] = Layered(Counted({n: n for n in range(10_000)}))
    for n in range(LAYER_MIN):
        mapping = mapping.changed({20_000 + n: n})
        assert mapping.get(20_000) == 0 and mapping.get(9_999) == 9_999
    assert Counted.copies == 0, "nothing yet"
    assert len(mapping) == 10_000 + LAYER_MIN
    assert Counted.copies == 1, "once, to be read as a whole"
