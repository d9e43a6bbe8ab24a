"""The UUIDs of the simulated cluster, which commands take as arguments."""

from random import Random

from kview.simulate.requests.voters import directory_id
from kview.simulate.topics import new_topic_id
from kview.simulate.uuids import in_base64, without_dash


def test_no_uuid_begins_with_a_dash_in_base64_and_others_stay_as_they_are() -> None:
    raw = [bytes((first, *range(1, 16))) for first in range(256)]
    changed = [before for before in raw if without_dash(before) != before]
    assert changed == [before for before in raw if in_base64(before).startswith("-")] != []
    assert not any(in_base64(without_dash(each)).startswith("-") for each in raw)
    assert {len(in_base64(each)) for each in raw} == {22}


def test_neither_do_those_of_topics_and_directories() -> None:
    random = Random(1)
    made = [new_topic_id(random) for _ in range(1_000)] + [directory_id("c", node) for node in range(1_000)]
    assert not any(in_base64(each).startswith("-") for each in made)
    assert len(set(made)) == len(made)
