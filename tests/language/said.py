"""What every sentence must be: something, in plain English, with its numbers in it."""

from collections.abc import Iterable

from tests.language.turns import banned_turns


def well_said(sentence: str, numbers: Iterable[str] = ()) -> None:
    """Fails for an empty sentence, for a banned turn, and for a number that is not in it."""
    assert sentence and sentence == sentence.strip(), repr(sentence)
    assert not banned_turns(sentence), sentence
    assert "None" not in sentence and "-922" not in sentence and "Kind" not in sentence, sentence
    for number in numbers:
        assert number in sentence, f"{number} is missing: {sentence}"
