"""A caption on a low screen: at most four lines below its heading, the keys of a question in one."""

from kview.tui.text import Role, content
from kview.tui.widgets.caption import Caption, Paragraph, caption_lines, caption_rows

ANSWERS = Paragraph(
    "", Role.TEXT, choices=(("1", "broker 2, the next one"), ("2", "broker 4"), ("3", "none"))
)


def made(*paragraphs: Paragraph, is_large: bool = False) -> Caption:
    return Caption("A leader crashes", "step 2 of 6", paragraphs, is_large=is_large)


def shown(caption: Caption, cells: int, height: int) -> list[str]:
    rows = caption_rows(caption, cells, height)
    lines = [content(line).rstrip() for line in caption_lines(caption, cells, rows, False)]
    assert len(lines) == rows
    return lines[1:]


def test_answers_stand_side_by_side_if_there_is_room() -> None:
    question = made(
        Paragraph("Next, you crash broker 4."), Paragraph("Who leads?", Role.BRIGHT, "?"), ANSWERS
    )
    assert shown(question, 80, 24)[-1] == "   1 broker 2, the next one   2 broker 4   3 none"
    assert shown(question, 60, 15)[-1] == "   1 broker 2, the next one   2 broker 4   3 none"
    narrow = shown(question, 40, 24)
    assert [line.strip() for line in narrow[-3:]] == ["1 broker 2, the next one", "2 broker 4", "3 none"]
    large = made(Paragraph("Next."), ANSWERS, is_large=True)
    assert len(shown(large, 80, 24)) >= 4, "large ones have a line each"


def test_on_a_low_screen_a_caption_has_four_lines_and_what_counts_least_goes() -> None:
    why = Paragraph("The broker is dead only when its session has ended. " * 4, Role.WARN, "x")
    dial = Paragraph("6 s until broker 4 is fenced", Role.DIM, "o", rank=2)
    met = Paragraph("broker 4 is silent", Role.GOOD, "y", rank=3)
    read = Paragraph("Next, you crash broker 4.", rank=4)
    low = shown(made(read, why, dial, met), 80, 24)
    assert len(low) == 4 and "6 s until broker 4" in low[-1] and "The broker is dead" in low[0]
    high = shown(made(read, why, dial, met), 80, 40)
    assert len(high) == 6 and high[0].strip() == "Next, you crash broker 4."


def test_what_nobody_could_go_on_without_is_shown_whatever_it_takes() -> None:
    long = Paragraph("What happens to the records that were written to the old leader only? " * 5)
    assert len(shown(made(long, ANSWERS), 80, 24)) > 4
