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
    lines = [_listeners(details.settings), *_directories(details, most, now_ms)]
    if count_set and details.settings is not None and not details.settings.failure:
        there = len(details.settings.settings)
        number = len(differing(details.settings))
        text = f"{number:,} of {there:,} settings differ from their defaults"
        lines.append(_named("settings", line(Span(text, Role.DIM))))
    return [cut(each, cells) for each in lines]


def _named(name: str, text: Line) -> Line:
    return line(Span(f"  {name:<{NAMES}}" if name else "  ", Role.DIM), *text)


def _listeners(answer: SettingsAnswer | None) -> Line:
    if answer is None:
        return _named(LISTENERS, line(Span(said.READING, Role.DIM)))
    if answer.failure:
        return _named(LISTENERS, line(Span(inspected.failure(answer.failure, answer), Role.WARN)))
    values = {setting.name: setting.value or "" for setting in answer.settings}
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
    worst_first = sorted(answer.directories, key=_badness)
    age = ""
    if answer.asked_ms != UNKNOWN and now_ms - answer.asked_ms > OLD_MS:
        age = f"  read {words.age(answer.asked_ms, now_ms)} ago"
    lines = []
    shown = worst_first if len(worst_first) <= most else worst_first[: max(1, most)]
    widest = max(len(_path(directory)) for directory in shown)
    for at, directory in enumerate(shown):
        spans = [Span(f"{_path(directory):<{widest}}")]
        if not directory.error:
            spans.append(Span(f"  {said.held(directory)}", Role.DIM if age else Role.TEXT))
        if free := said.free(directory):
            low = directory.usable_bytes < LOW_ON_SPACE * directory.total_bytes
            spans.append(Span(f"  {free}", Role.WARN if low else Role.DIM))
        full_ms = details.full_ms.get(directory.path, UNKNOWN)
        if not directory.error and (full := said.full(full_ms, now_ms)):
            spans.append(Span(f"  {full}", Role.WARN if full_ms - now_ms < FULL_SOON_MS else Role.DIM))
        if wrong := said.wrong(directory):
            spans.append(Span(f"  {wrong}", Role.RISK if directory.error else Role.WARN))
        if at == 0:
            spans.append(Span(age, Role.DIM))
        if at == len(shown) - 1 and len(shown) < len(worst_first):
            spans.append(Span(f"  {said.more(len(worst_first) - len(shown))}", Role.DIM))
        lines.append(_named(name if at == 0 else " ", line(*spans)))
    return lines


def _path(directory: Directory) -> str:
    return middle(glyphs.printable(directory.path), MOST_PATH)


def _badness(directory: Directory) -> tuple[bool, float, str]:
    known = directory.total_bytes > 0 and directory.usable_bytes != UNKNOWN
    usable = directory.usable_bytes / directory.total_bytes if known else 1.0
    return (not directory.error, usable, directory.path)


def differing(answer: SettingsAnswer) -> list[Setting]:
    """Return the settings that somebody has set to something else than their defaults, if these are known."""

    def differs(setting: Setting) -> bool:
        defaults = [other.value for other in setting.synonyms if other.source is SettingSource.DEFAULT]
        return setting.differs and (setting.sensitive or not defaults or setting.value != defaults[0])

    return [setting for setting in answer.settings if differs(setting)]


class SetRows(Keyed[str]):
    """The settings of a broker that differ from their defaults. The key is the setting's name."""

    def __init__(self, details: BrokerDetails) -> None:
        answer = details.settings
        settings = differing(answer) if answer is not None else []
        self._settings = sorted(settings, key=lambda setting: setting.name)
        super().__init__([setting.name for setting in self._settings])
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
        return self._settings[index]

    def row(self, index: int, now_ms: int) -> Row:
        setting = self._settings[index]
        value_role = Role.DIM if setting.sensitive else Role.TEXT
        return Row(
            (
                line(Span(setting.name)),
                line(Span(inspected.setting(setting), value_role)),
                line(Span(inspected.source(setting.source), Role.DIM)),
            )
        )
