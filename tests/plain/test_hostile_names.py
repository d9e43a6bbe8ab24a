"""Text and JSON output of a cluster whose names carry controls: text is harmless, JSON gives them back."""

import json

from kview.plain.blocks import block
from kview.plain.documents import document
from tests.tui.test_hostile_names import ALL, assert_harmless, hostile_view


def test_a_text_block_has_one_harmless_line_per_row() -> None:
    printed = block(hostile_view(), "simulated").split("\n")
    for line in printed:
        assert_harmless(line)
    (group,) = [line for line in printed if line.startswith("  g?[2J?[31m?")]
    assert group.split()[-8:] == ["Stable", "2/2", "18", "0.0", "s", "300", "300", "ok"]
    (event,) = [line for line in printed if "coordinator of group" in line]
    assert event.endswith("moved from broker 1 to 2") and " g?[2J?[31m?" in event
    (head,) = [line for line in printed if line.startswith("  GROUP")]
    assert head.index("STATE") == group.index("Stable"), "columns are aligned"


def test_json_escapes_the_names_and_gives_them_back() -> None:
    printed = document(hostile_view())
    assert_harmless("".join(c for c in printed if not 0x300 <= ord(c) <= 0x36F and c != "\u3164"))
    read = json.loads(printed)
    assert [group["group"] for group in read["groups"]] == [f"g{ALL}g"]
    assert {partition["topic"] for partition in read["partitions"]} == {f"t{ALL}t"}


def test_json_without_surrogates_is_escaped_the_same_way() -> None:
    printed = document(hostile_view("\x9b\u202e\U000e0001é"))
    assert "g\\u009b\\u202e\\udb40\\udc01ég" in printed
    assert json.loads(printed)["groups"][0]["group"] == "g\x9b\u202e\U000e0001ég"
