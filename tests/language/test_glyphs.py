"""Signs and their stand-ins."""

from pathlib import Path

from rich.cells import cell_len

import kview
from kview.language import glyphs

ALLOWED_IN_WORDS = set("–…·≈≥≤×→←↑↓▸−÷")


def test_a_stand_in_takes_as_much_room() -> None:
    for name, sign in vars(glyphs).items():
        if name.isupper() and isinstance(sign, str):
            assert cell_len(sign) == len(glyphs.plain(sign)) == len(sign), name
            assert glyphs.plain(sign).isascii() and "?" not in glyphs.plain(sign), name


def test_about_at_least_cut_and_selected_are_told_apart_in_ascii() -> None:
    signs = [glyphs.ABOUT, "≥", glyphs.ELLIPSIS, glyphs.MARK]
    assert len({glyphs.plain(sign) for sign in signs}) == len(signs)


def test_what_has_no_stand_in_is_a_question_mark() -> None:
    assert glyphs.plain("Größe ● 4") == "Gr??e * 4"


def test_every_sign_that_is_drawn_has_a_stand_in() -> None:
    room = Path(kview.__file__).parent
    used = {
        character
        for folder in (room / "tui", room / "language")
        for path in folder.rglob("*.py")
        for character in path.read_text()
        if not character.isascii()
    }
    missing = {sign for sign in used if glyphs.plain(sign) == "?"}
    assert missing <= set("⢀⡀⣀"), missing


def test_names_are_made_printable() -> None:
    assert glyphs.printable("a\x1b[31mb\u200b") == "a?[31mb?"
    assert glyphs.printable("größe") == "größe"
