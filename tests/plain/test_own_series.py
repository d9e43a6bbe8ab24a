"""Which rows have metrics of their own, from scrape to scrape."""

import numpy as np
import pytest

from kview.model.name_patterns import BadPattern, NamePattern
from kview.plain.own_series import (
    CALM,
    HALVED_MS,
    MOST_NAMED,
    RISK,
    TROUBLE_LINGERS_MS,
    WARN,
    Choice,
    Keeper,
    Rows,
)

LIMIT, SCRAPE_MS = 3, 15_000


def rows(
    busy: list[float],
    trouble: dict[int, int] | None = None,
    included: tuple[int, ...] = (),
    excluded: tuple[int, ...] = (),
) -> Rows:
    levels = np.full(len(busy), CALM)
    for row, level in (trouble or {}).items():
        levels[row] = level
    flags = [np.isin(np.arange(len(busy)), which) for which in (included, excluded)]
    return Rows([f"row {row}" for row in range(len(busy))], levels, np.array(busy, np.float64), *flags)


class Scrapes:
    """Scrapes of one table, 15 s apart."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.keeper, self.limit, self.now_ms = Keeper(), limit, 0

    def next(self, scraped: Rows, after_ms: int = SCRAPE_MS) -> list[int]:
        own: list[int] = self.choice(scraped, after_ms).own.tolist()
        return own

    def choice(self, scraped: Rows, after_ms: int = SCRAPE_MS) -> Choice:
        self.now_ms += after_ms
        return self.keeper.choose(scraped, self.limit, self.now_ms)


def test_all_have_series_up_to_the_limit() -> None:
    assert Scrapes().next(rows([5, 0, 1])) == [0, 1, 2]
    assert Scrapes().next(rows([5, 0, 1, 9], excluded=(0,))) == [1, 2, 3]


def test_beyond_it_the_busiest_and_all_in_trouble_have_them() -> None:
    chosen = Scrapes().choice(rows([5, np.nan, 1, 9, 8, 0, 0], {1: WARN, 5: RISK}))
    assert chosen.own.tolist() == [0, 1, 3, 4, 5] and chosen.rest.tolist() == [2, 6]
    assert chosen.rest_in_trouble == 0


def test_of_many_in_trouble_the_worst_have_them_and_the_others_are_counted() -> None:
    chosen = Scrapes(2).choice(rows([0, 1, 2, 3, 9, 9, 8], {0: WARN, 1: RISK, 2: WARN, 3: WARN}))
    assert chosen.own.tolist() == [1, 3, 4, 5] and chosen.rest_in_trouble == 2


def test_a_row_at_the_edge_does_not_come_and_go() -> None:
    scrapes = Scrapes()
    first = scrapes.next(rows([10, 10, 10, 10.1, 9.9, 10]))
    chance = np.random.default_rng(1)
    for _ in range(50):
        assert scrapes.next(rows(list(chance.uniform(6, 11, 6)))) == first


def test_one_that_is_twice_as_busy_takes_the_place_of_another() -> None:
    scrapes = Scrapes()
    assert scrapes.next(rows([10, 11, 12, 5, 5])) == [0, 1, 2]
    assert scrapes.next(rows([10, 11, 12, 19, 5])) == [0, 1, 2]
    assert scrapes.next(rows([10, 11, 12, 25, 5])) == [1, 2, 3]
    assert scrapes.next(rows([10, 11, 12, 8, 5])) == [1, 2, 3]


def test_one_that_is_busy_now_and_then_is_not_idle_in_between() -> None:
    scrapes = Scrapes()
    sends, idle = rows([10, 10, 80, 7, 7]), rows([10, 10, 0, 7, 7])
    assert scrapes.next(sends) == [0, 1, 2]
    for _ in range(4 * HALVED_MS // SCRAPE_MS):
        assert scrapes.next(idle) == [0, 1, 2]
    assert scrapes.next(idle, HALVED_MS) == [0, 1, 3]


def test_trouble_keeps_its_series_for_a_while() -> None:
    scrapes = Scrapes(2)
    busy = [9.0, 8.0, 0.0, 0.0, 0.0]
    assert scrapes.next(rows(busy)) == [0, 1]
    assert scrapes.next(rows(busy, {3: WARN})) == [0, 1, 3]
    assert scrapes.next(rows(busy), TROUBLE_LINGERS_MS - 1) == [0, 1, 3]
    assert scrapes.next(rows(busy, {2: WARN, 4: WARN}), 0) == [0, 1, 2, 4], "trouble now comes first"
    assert scrapes.next(rows(busy), TROUBLE_LINGERS_MS) == [0, 1]


def test_it_remembers_no_more_than_it_has_chosen() -> None:
    keeper = Keeper()
    for number in range(20):
        many = rows([1.0] * 50, dict.fromkeys(range(50), RISK))
        many = many._replace(keys=[(number, row) for row in range(50)])
        keeper.choose(many, 5, number * SCRAPE_MS)
    assert len(keeper._busy) == len(keeper._troubled_ms) == 5


def test_what_is_included_always_has_series() -> None:
    scrapes = Scrapes(1)
    assert scrapes.next(rows([1, 2, 3, 0, 0], included=(3,), excluded=(2, 3))) == [1, 3]
    everything = rows([0.0] * (MOST_NAMED + 9), included=tuple(range(MOST_NAMED + 9)))
    assert len(scrapes.choice(everything).own) <= MOST_NAMED + 1


def test_beyond_the_limit_of_included_rows_it_is_always_the_same_that_have_series() -> None:
    chance, scrapes, count = np.random.default_rng(1), Scrapes(1), MOST_NAMED + 9
    owns = []
    for _ in range(2):
        each = rows(list(chance.uniform(6, 11, count)), included=tuple(range(count)))
        owns.append(scrapes.next(each)[:MOST_NAMED])
    assert owns[0] == owns[1]


def test_trouble_ends_although_the_clock_was_set_back() -> None:
    scrapes = Scrapes(1)
    busy = [9.0, 0.0, 0.0]
    assert scrapes.next(rows(busy, {2: WARN}), 10 * TROUBLE_LINGERS_MS) == [0, 2]
    assert scrapes.next(rows(busy), -9 * TROUBLE_LINGERS_MS) == [0, 2]
    assert scrapes.next(rows(busy), TROUBLE_LINGERS_MS) == [0]


@pytest.mark.parametrize("text", ["orders", "topics:a", "topic:", ":a", "Topic:a", ""])
def test_a_pattern_says_what_it_is_about(text: str) -> None:
    with pytest.raises(BadPattern):
        NamePattern.parse(text)
