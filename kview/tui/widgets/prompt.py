"""A question in the status line's place: one line to type into."""

from collections.abc import Callable
from dataclasses import dataclass

from textual.widgets import Input


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: `hint` stands in the empty line, `value` in the line at first; `answer` is called with
    what was typed when Enter is pressed."""

    what: str
    hint: str
    answer: Callable[[str], None]
    value: str = ""


class Prompt(Input):
    """The line; it is shown while a screen has the class `-asking`."""

    question: Question | None = None

    def __init__(self) -> None:
        super().__init__(compact=True, select_on_focus=False, id="prompt")

    def ask(self, question: Question) -> None:
        """Show the question and take the keys."""
        self.question = question
        self.placeholder = question.hint
        self.value = question.value
        self.cursor_position = len(self.value)
        self.screen.add_class("-asking")
        self.screen.set_focus(self)

    def leave(self) -> Question | None:
        """Be gone; returns what was asked. The screen gives the keys back to a panel."""
        asked, self.question = self.question, None
        self.screen.remove_class("-asking")
        return asked
