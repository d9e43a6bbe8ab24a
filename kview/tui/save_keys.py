"""The keys that save what is on the screen: a screenshot, and the table shown."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from kview.errors import KviewError
from kview.language import words
from kview.language.errors import sentence
from kview.model.events import Severity
from kview.model.ports import Saving
from kview.tui.export import Format, Writer, values
from kview.tui.rows.row import Rows
from kview.tui.widgets.bottom import StatusMessage
from kview.tui.widgets.failing import FailureLog
from kview.tui.widgets.prompt import Question

if TYPE_CHECKING:
    from kview.tui.app import KviewApp

ROWS_AT_A_TIME = 100
"""The number of rows made between two keys, which takes a few milliseconds."""

ROWS_A_WRITE = 5_000
"""The number of rows written to the file at once."""


class SaveKeys:
    """Saves screenshots and tables, if there is a folder for them."""

    def __init__(self, app: "KviewApp") -> None:
        self._app = app
        self._saves = app.session.saves
        self._is_exporting = False
        self._is_cancelled = False
        self._failures = FailureLog("a table for export")

    @property
    def possible(self) -> bool:
        """Whether there is a folder to save to."""
        return self._saves is not None

    def do(self, what: str) -> None:
        """Carry out an action. Raises ValueError if there is no action of that name."""
        match what:
            case "screenshot":
                self._screenshot()
            case "export":
                self._ask()
            case _:
                raise ValueError(what)

    def cancel(self) -> bool:
        """Cancel the export. Returns False if there is none."""
        self._is_cancelled = self._is_exporting
        return self._is_exporting

    # -- screenshots

    def _screenshot(self) -> None:
        if self._saves is None:
            return
        svg, text = self._app.picture()
        name = self._name("screen")
        try:
            path = _written(self._saves.begin(name, "svg"), svg)
            _written(self._saves.begin(name, "txt"), text)
        except KviewError as error:
            self._failed("screenshot not saved", error)
            return
        self._app.say(StatusMessage(f"screenshot saved: {path}", "and as .txt", Severity.GOOD))

    # -- records

    def save_lines(self, name: str, lines: Iterable[str]) -> None:
        """Save lines of JSON, which are made when they are written."""
        if self._saves is None:
            self._app.say(StatusMessage("there is no folder to save to", severity=Severity.WARN))
        elif self._is_exporting:
            self._app.say(StatusMessage("an export is running", "Esc cancels it"))
        else:
            self._begin(name, "jsonl", "records", partial(self._write_lines, lines))

    async def _write_lines(self, lines: Iterable[str], saving: Saving) -> str:
        count = 0
        for text in lines:
            await asyncio.to_thread(saving.add, f"{text}\n")
            count += 1
            if self._is_cancelled:
                break
        return words.plural(count, "record")

    # -- export

    def _ask(self) -> None:
        screen = self._app.shown()
        table = screen.focused_rows() if screen else None
        if self._is_exporting:
            self._app.say(StatusMessage("an export is running", "Esc cancels it"))
        elif table is None:
            self._app.say(StatusMessage("there is no table here to export", "Tab focuses one"))
        else:
            name, rows = table
            now_ms = self._app.now_ms()  # Ages are those at the time of the key.
            hint = f"export all {len(rows):,} rows of {name} as csv or json (Enter: csv)"
            self._app.ask(
                Question("format", hint, "export", lambda typed: self._export(typed, name, rows, now_ms))
            )

    def _export(self, typed: str, name: str, rows: Rows, now_ms: int) -> None:
        try:
            format = Format(typed.casefold() or Format.CSV)
        except ValueError:
            said = f"{typed!r} is not a format for tables"
            self._app.say(StatusMessage(said, "write csv or json", Severity.WARN))
            return
        self._begin(
            name, format, "table", partial(self._write_rows, Writer(format, rows.columns), rows, now_ms)
        )

    async def _write_rows(self, writer: Writer, rows: Rows, now_ms: int, saving: Saving) -> str:
        unwritten = [writer.begin()]
        for index in range(len(rows)):
            unwritten.append(writer.row(values(rows, index, now_ms)))
            if index % ROWS_AT_A_TIME == ROWS_AT_A_TIME - 1:
                await asyncio.sleep(0)
            if self._is_cancelled:
                break
            if index % ROWS_A_WRITE == ROWS_A_WRITE - 1:
                await asyncio.to_thread(saving.add, "".join(unwritten))
                unwritten.clear()
                said = f"exporting: {index + 1:,} of {len(rows):,} rows"
                self._app.say(StatusMessage(said, "Esc cancels"), keep=True)
        await asyncio.to_thread(saving.add, "".join([*unwritten, writer.end()]))
        return f"{len(rows):,} rows"

    # -- files

    def _begin(
        self, name: str, suffix: str, what: str, write: Callable[[Saving], Coroutine[Any, Any, str]]
    ) -> None:
        """Export `what` to a file with `write`, which ends early when it is cancelled."""
        self._is_exporting, self._is_cancelled = True, False
        self._app.run_worker(self._write(name, suffix, what, write), group="export")

    async def _write(
        self, name: str, suffix: str, what: str, write: Callable[[Saving], Coroutine[Any, Any, str]]
    ) -> None:
        """Write a file a few rows at a time, so that keys work meanwhile."""
        saving: Saving | None = None
        try:
            assert self._saves is not None
            saving = self._saves.begin(self._name(name), suffix)
            written = await write(saving)
            if self._is_cancelled:
                saving.cancel()
                self._app.say(StatusMessage("export cancelled: no file was written"))
                return
            path = await asyncio.to_thread(saving.finish)
            self._app.say(StatusMessage(f"{written} saved: {path}", severity=Severity.GOOD))
        except KviewError as error:
            if saving is not None:
                saving.cancel()
            self._failed(f"{what} not exported", error)
        except BaseException as error:  # Kview ends, or a row cannot be made: leave no half of a file.
            if saving is not None:
                saving.cancel()
            if not isinstance(error, Exception):
                raise
            self._failures.failed(error)
            said = f"{what} not exported: a row could not be made"
            self._app.say(StatusMessage(said, severity=Severity.WARN))
        finally:
            self._is_exporting = False

    def _failed(self, what: str, error: KviewError) -> None:
        self._app.say(StatusMessage(f"{what}: {sentence(error.facts)}", severity=Severity.WARN))

    def _name(self, what: str) -> str:
        at = datetime.fromtimestamp(self._app.wall_ms() / 1000, self._app.zone)
        return f"kview-{what}-{at:%Y%m%d-%H%M%S}"


def _written(saving: Saving, text: str) -> str:
    """Write a whole file, and return its path. Raises KviewError, and leaves no file then."""
    try:
        saving.add(text)
        return saving.finish()
    except KviewError:
        saving.cancel()
        raise
