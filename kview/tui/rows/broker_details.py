"""What a broker says of itself on demand: its listeners, its log directories, and settings that differ from
their defaults."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kview.language import directories as said
from kview.language import glyphs, words
from kview.language import inspection as inspected
from kview.model.inspection import (
    DirectoriesAnswer,
    Directory,
    Setting,
    SettingsAnswer,
    SettingSource,
)
from kview.model.units import UNKNOWN
from kview.tui.rows.columns import Column
from kview.tui.rows.common import Keyed, name_width
from kview.tui.rows.row import Row
from kview.tui.text import Line, Role, Span, cut, line, middle

NAMES = 11
"""The cells of the names before the lines."""
MOST_PATH = 32
LOW_ON_SPACE = 0.1
"""With a smaller share of its volume free, a directory is marked."""
FULL_SOON_MS = 3_600_000
"""So is one that will be full within this time."""
OLD_MS = 45_000
"""Answers older than this show their age: they are read again every 30 s while the broker answers."""

LISTENERS, ADVERTISED = "listeners", "advertised.listeners"


@dataclass(frozen=True, slots=True)
class BrokerDetails:
    """The latest answers of a broker, None before the first one.

    `note` says why there are none, '' if there are or will be.
    """

    directories: DirectoriesAnswer | None = None
    settings: SettingsAnswer | None = None
    note: str = ""
    full_ms: Mapping[str, int] = field(default_factory=dict)
    """≈ when directories are full, by path, as far as that is known."""


def detail_lines(details: BrokerDetails, cells: int, most: int, count_set: bool, now_ms: int) -> list[Line]:
    """Return the lines of listeners and directories, of the latter at most `most`, worst first.

    `most` is 0 on a low screen, which has one line for the worst directory. With `count_set` there is a line
    that counts the settings that differ from their defaults. `now_ms` is the current time.
    """
    if details.note and details.directories is None and details.settings is None:
        return [_named("", line(Span(details.note, Role.DIM)))]
    if not most:
        return [cut(each, cells) for each in _directories(details, 1, now_ms)]
    made = [_listeners(details.settings), *_directories(details, most, now_ms)]
    if count_set and details.settings is not None and not details.settings.failure:
        there = len(details.settings.settings)
        number = len(differing(details.settings))
        text = f"{number:,} of {there:,} settings differ from their defaults"
        made.append(_named("settings", line(Span(text, Role.DIM))))
    return [cut(each, cells) for each in made]


def _named(name: str, text: Line) -> Line:
    return line(Span(f"  {name:<{NAMES}}" if name else "  ", Role.DIM), *text)


def _listeners(answer: SettingsAnswer | None) -> Line:
    if answer is None:
        return _named(LISTENERS, line(Span(said.READING, Role.DIM)))
    if answer.failure:
        return _named(LISTENERS, line(Span(inspected.failure(answer.failure, answer), Role.WARN)))
    values = {one.name: one.value or "" for one in answer.settings if one.name in (LISTENERS, ADVERTISED)}
    own, advertised = (_spaced(values.get(name, "")) for name in (LISTENERS, ADVERTISED))
    spans = [Span(own or words.NONE)]
    if advertised and advertised != own:
        spans += [Span("  advertised ", Role.DIM), Span(advertised)]
    return _named(LISTENERS, line(*spans))


def _spaced(value: str) -> str:
    return glyphs.printable(", ".join(part.strip() for part in value.split(",") if part.strip()))


def _directories(details: BrokerDetails, most: int, now_ms: int) -> list[Line]:
    answer = details.directories
    name = said.title(answer)
    if answer is None:
        return [_named(name, line(Span(said.READING, Role.DIM)))]
    if answer.failure:
        return [_named(name, line(Span(inspected.failure(answer.failure, answer), Role.WARN)))]
    if not answer.directories:
        return [_named(name, line(Span(said.NONE_LISTED, Role.DIM)))]
    found = sorted(answer.directories, key=_badness)
    age = ""
    if answer.asked_ms != UNKNOWN and now_ms - answer.asked_ms > OLD_MS:
        age = f"  read {words.age(answer.asked_ms, now_ms)} ago"
    made = []
    shown = found if len(found) <= most else found[: max(1, most)]
    widest = max(len(_path(one)) for one in shown)
    for at, one in enumerate(shown):
        spans = [Span(f"{_path(one):<{widest}}")]
        if not one.error:
            spans.append(Span(f"  {said.held(one)}", Role.DIM if age else Role.TEXT))
        if free := said.free(one):
            low = one.usable_bytes < LOW_ON_SPACE * one.total_bytes
            spans.append(Span(f"  {free}", Role.WARN if low else Role.DIM))
        full_ms = details.full_ms.get(one.path, UNKNOWN)
        if not one.error and (full := said.full(full_ms, now_ms)):
            spans.append(Span(f"  {full}", Role.WARN if full_ms - now_ms < FULL_SOON_MS else Role.DIM))
        if wrong := said.wrong(one):
            spans.append(Span(f"  {wrong}", Role.RISK if one.error else Role.WARN))
        if at == 0:
            spans.append(Span(age, Role.DIM))
        if at == len(shown) - 1 and len(shown) < len(found):
            spans.append(Span(f"  {said.more(len(found) - len(shown))}", Role.DIM))
        made.append(_named(name if at == 0 else " ", line(*spans)))
    return made


def _path(one: Directory) -> str:
    return middle(glyphs.printable(one.path), MOST_PATH)


def _badness(one: Directory) -> tuple[bool, float, str]:
    known = one.total_bytes > 0 and one.usable_bytes != UNKNOWN
    return (not one.error, one.usable_bytes / one.total_bytes if known else 1.0, one.path)


def differing(answer: SettingsAnswer) -> list[Setting]:
    """Return the settings that somebody has set to something else than their defaults, if these are known."""

    def differs(one: Setting) -> bool:
        defaults = [other.value for other in one.synonyms if other.source is SettingSource.DEFAULT]
        return one.differs and (one.sensitive or not defaults or one.value != defaults[0])

    return [one for one in answer.settings if differs(one)]


class SetRows(Keyed[str]):
    """The settings of a broker that differ from their defaults. The key is the setting's name."""

    def __init__(self, details: BrokerDetails) -> None:
        answer = details.settings
        self._settings = sorted(differing(answer), key=lambda one: one.name) if answer is not None else []
        super().__init__([one.name for one in self._settings])
        read = answer is not None and not answer.failure
        counted = f" {len(self._settings):,}" if read else ""
        self.title = line(
            Span("SETTINGS", Role.HEAD), Span(f"{counted} that differ from their defaults", Role.DIM)
        )
        if answer is None:
            self.empty = details.note or said.READING
        elif answer.failure:
            self.empty = inspected.failure(answer.failure, answer)
        else:
            self.empty = "none: every setting has its default"
        self.columns: Sequence[Column] = (
            Column("name", "setting", name_width(self.keys, 16, 34), name=True),
            Column("value", "value", 10, flex=1, most=80),
            Column("source", "set by", 17, rank=1),
        )

    def setting(self, index: int) -> Setting:
        """Return the setting of a row."""
        return self._settings[index]

    def row(self, index: int, now_ms: int) -> Row:
        """Return a setting's cells."""
        one = self._settings[index]
        value_role = Role.DIM if one.sensitive else Role.TEXT
        return Row(
            (
                line(Span(one.name)),
                line(Span(inspected.setting(one), value_role)),
                line(Span(inspected.source(one.source), Role.DIM)),
            )
        )
