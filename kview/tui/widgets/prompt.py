"""A question in place of the status line, with one line to type into."""

from collections.abc import Callable

from msgspec import Struct
from textual.widgets import Input

from kview.tui.text import content, cut, line


class Question(Struct, frozen=True):
    """A question.

    `hint` is shown while the line is empty. Enter, which the key line calls `enter`, calls `answer` with what
    was typed.
    """

    what: str
    hint: str
    enter: str
    answer: Callable[[str], None]
    problem: Callable[[str], str] = lambda typed: ""
    """Returns what is wrong with what was typed, '' if nothing is. The line stays open until nothing is."""


def fitting(hint: str, cells: int) -> str:
    """Return a hint in the line of an input, which keeps one cell at each end free. A cut ends in `…`."""
    return content(cut(line(hint), cells - 2))


class Prompt(Input):
    """The input line. It is shown while its screen has the class `-asking`."""

    question: Question | None = None

    def __init__(self) -> None:
        super().__init__(compact=True, select_on_focus=False, id="prompt")

    def ask(self, question: Question) -> None:
        """Show the question and take the focus."""
        self.question = question
        self.placeholder = fitting(question.hint, self.app.size.width)
        self.value = ""
        self.screen.add_class("-asking")
        self.screen.set_focus(self)

    def leave(self) -> Question | None:
        """Hide the line, and return the question that was asked. The screen then focuses a panel."""
        asked, self.question = self.question, None
        self.screen.remove_class("-asking")
        return asked
