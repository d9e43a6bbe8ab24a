"""Filters: what a text means, and which rows of a view it keeps."""

import re
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kview.derive.filters import STATES, Field, Problem, parse
from kview.derive.passing import Listed, Passing, concerns
from kview.derive.view import View
from kview.language.filters import problem
from kview.model.expressions import MOST_CHARACTERS, matching
from kview.model.snapshot import Flags
from tests.worlds import crash_script, views


@cache
def crash() -> View:
    """The view three seconds after broker 4 was killed."""
    return tuple(views(crash_script()))[63]


def kept(text: str) -> Passing:
    wanted = parse(text)
    assert wanted.problem is None, (text, wanted)
    return Passing(crash(), wanted)


def partitions(flags: Flags) -> set[tuple[str, int]]:
    table = crash().snapshot.partitions
    return {(str(table.topic[row]), int(table.partition[row])) for row in np.flatnonzero(flags)}


def groups(flags: Flags) -> set[str]:
    return set(crash().snapshot.groups.group[flags].tolist())


def readers(of: set[tuple[str, int]]) -> set[str]:
    table = crash().snapshot.offsets
    rows = zip(table.group.tolist(), table.topic.tolist(), table.partition.tolist(), strict=True)
    return {group for group, topic, partition in rows if (topic, partition) in of}


def expected(text: str) -> set[tuple[str, int]]:
    """Which partitions a single term keeps, one by one from the view."""
    table, figures = crash().snapshot.partitions, crash().partitions
    racks = dict(
        zip(crash().snapshot.brokers.id.tolist(), crash().snapshot.brokers.rack.tolist(), strict=True)
    )
    field, _, value = text.rpartition(":")
    found = set()
    for row in range(len(table)):
        topic, held = str(table.topic[row]), [int(b) for b in table.replicas[row] if b >= 0]
        key = topic, int(table.partition[row])
        match field:
            case "broker":
                passes = int(value) in held
            case "rack":
                passes = value in {racks[broker] for broker in held}
            case "state":
                passes = str(figures.status[row]) == value.replace("-", "_")
            case "group":
                passes = value in readers({key})
            case _:
                passes = re.search(value.strip("/"), topic) is not None
        if passes:
            found.add(key)
    return found


@pytest.mark.parametrize(
    "text",
    ["invoice", "topic:pay", "/^(inv|audit).*[eg]$/", "broker:4", "rack:R2", "state:frozen", "group:billing",
     "state:silent-leader", "broker:99"],
)  # fmt: skip
def test_a_term_keeps_the_partitions_that_it_names_and_not_the_others_when_negated(text: str) -> None:
    every = partitions(np.ones(len(crash().snapshot.partitions), bool))
    assert partitions(kept(text).partitions) == expected(text)
    assert partitions(kept(f"!{text}").partitions) == every - expected(text)
    assert expected(text) != every


@pytest.mark.parametrize("text", ["topic:payment", "/^pay/", "state:frozen", "topic:nothing"])
def test_groups_stay_that_read_what_stays(text: str) -> None:
    assert groups(kept(text).groups) == readers(partitions(kept(text).partitions))


def test_all_terms_hold_for_one_partition_of_a_topic() -> None:
    passing = kept("broker:4 state:frozen invoice")
    both = expected("broker:4") & expected("state:frozen") & expected("invoice")
    assert both and partitions(passing.partitions) == both
    assert set(crash().topics.topic[passing.topics]) == {topic for topic, _ in both}
    without = kept("!state:frozen").topics
    frozen = {topic for topic, _ in expected("state:frozen")}
    assert set(crash().topics.topic[without]) == set(crash().topics.topic) - frozen


def test_brokers_are_only_filtered_by_what_is_said_of_brokers() -> None:
    ids = crash().snapshot.brokers.id
    assert ids[kept("invoice group:billing state:frozen").brokers].tolist() == ids.tolist()
    assert ids[kept("broker:1,4").brokers].tolist() == [1, 4]
    assert ids[kept("state:silent").brokers].tolist() == [4]
    assert ids[kept("rack:r2 !broker:4").brokers].tolist() == [3, 5]


def test_a_list_is_filtered_by_the_terms_that_can_hide_its_rows() -> None:
    def lists(text: str) -> set[Listed]:
        return {listed for listed in Listed if concerns(parse(text), listed)}

    every = set(Listed)
    assert lists("invoice") == every - {Listed.BROKERS}
    assert lists("broker:4") == every
    assert lists("rack:R1") == every - {Listed.EVENTS}
    assert lists("state:fenced") == {Listed.BROKERS}
    assert lists("state:stuck") == {Listed.GROUPS}
    assert lists("state:frozen") == {Listed.PARTITIONS, Listed.GROUPS}
    assert lists("state:trouble") == every - {Listed.EVENTS}
    assert lists("state:stuck invoice") == every - {Listed.BROKERS}
    assert lists("broker:none") == set(), "it is wrong, and filters nothing"


def test_a_word_in_a_groups_own_name_leaves_its_partitions_alone() -> None:
    own = crash().snapshot.offsets.group == "billing"
    assert (kept("billing").offsets("billing") == own).all() and own.any()
    assert not kept("nothing").offsets("billing").any()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("brocker:4", Problem.UNKNOWN_FIELD),
        ("broker:four", Problem.NOT_A_BROKER),
        ("state:frozzen", Problem.UNKNOWN_STATE),
        ("topic:", Problem.EMPTY),
        ("!", Problem.EMPTY),
        ("/a(/", Problem.BAD_PATTERN),
        (r"/(a)\1/", Problem.BAD_PATTERN),
        (f"/{'a' * (MOST_CHARACTERS + 1)}/", Problem.BAD_PATTERN),
        ("a " * 21, Problem.TOO_MANY),
    ],
)
def test_a_wrong_filter_says_why_and_filters_nothing(text: str, why: Problem) -> None:
    wanted = parse(text)
    assert wanted.problem is why and not wanted.terms
    said = problem(wanted)
    assert said.startswith("not filtered: ") and "\n" not in said
    assert Passing(crash(), wanted).partitions.all()


def test_an_expression_that_takes_others_for_ever_takes_no_time() -> None:
    assert not matching("^(([a-z])+.)+[0-9]([a-z])+$", ["a" * 249] * 100, ignore_case=True).any()


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from('ab!/:"\\ ,()*+?[]{}0é\n\x00') | st.characters(), max_size=40))
def test_any_text_is_a_filter_or_has_a_problem(text: str) -> None:
    wanted = parse(text)
    assert not (wanted.terms and wanted.problem)
    passing = Passing(crash(), wanted)
    for flags, rows in (
        (passing.partitions, len(crash().snapshot.partitions)),
        (passing.topics, len(crash().topics.topic)),
        (passing.groups, len(crash().snapshot.groups)),
        (passing.brokers, len(crash().snapshot.brokers)),
    ):
        assert flags.shape == (rows,) and flags.dtype == bool
        assert wanted.terms or flags.all()


_TERMS = st.builds(
    lambda negated, field, value: f"{'!' if negated else ''}{field}{value}",
    st.booleans(),
    st.just(""),
    st.sampled_from(["pay", "inv", "o"]),
) | st.sampled_from(["broker:4", "!rack:R1", "state:frozen", "group:billing", "topic:audit", "/e$/"])


@settings(max_examples=100, deadline=None)
@given(st.lists(_TERMS, min_size=1, max_size=4))
def test_more_terms_never_keep_more_and_their_order_does_not_matter(terms: list[str]) -> None:
    together = kept(" ".join(terms))
    assert (together.partitions == kept(" ".join(reversed(terms))).partitions).all()
    for term in terms:
        assert (together.partitions <= kept(term).partitions).all()
        assert (together.topics <= kept(term).topics).all()
        assert (together.groups <= kept(term).groups).all()


def test_states_are_those_that_the_screen_names() -> None:
    for state in STATES:
        assert parse(f"state:{state}").terms[0].field is Field.STATE
