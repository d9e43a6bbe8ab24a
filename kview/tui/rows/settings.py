"""Rows of the settings of a topic or a broker: those that somebody has set come first."""

from collections.abc import Sequence
from datetime import tzinfo

from kview.language import glyphs, words
from kview.language import inspection as said
from kview.language.payloads import Form
from kview.model.inspection import Setting, SettingsAnswer, SettingsRequest
from kview.model.units import UNKNOWN
from kview.tui.rows.columns import Column
from kview.tui.rows.common import Keyed, name_width
from kview.tui.rows.row import Row
from kview.tui.text import EMPTY, Line, Role, Span, line


def settings_title(
    request: SettingsRequest, answer: SettingsAnswer | None, search: str, shown: int, zone: tzinfo | None
) -> Line:
    """Return the panel's title: whose settings these are, how many somebody has set, and when they were
    read."""
    spans = [
        Span("SETTINGS", Role.HEAD),
        Span(f" {request.topic or f'broker {request.broker}'}", Role.BRIGHT),
    ]
    notes = []
    if search:
        notes.append(f"/{search}")
    if answer is not None and answer.settings:
        differing = sum(setting.differs for setting in answer.settings)
        notes.append(f"{differing:,} set, {len(answer.settings) - differing:,} at their default")
        if shown < len(answer.settings):
            notes.append(f"{shown:,} shown")
    if answer is not None and answer.asked_ms != UNKNOWN:
        notes.append(f"asked at {words.clock(answer.asked_ms, zone, tenths=False)}")
    return (*spans, *(Span(f" {glyphs.DOT} {note}", Role.DIM) for note in notes))


class SettingRows(Keyed[str]):
    """The settings whose names or values contain `found`. The key is the setting's name."""

    def __init__(
        self,
        request: SettingsRequest,
        answer: SettingsAnswer | None,
        search: str,
        zone: tzinfo | None,
    ) -> None:
        wanted = search.casefold()
        settings = answer.settings if answer is not None else ()
        self._settings = sorted(
            (
                setting
                for setting in settings
                if wanted in setting.name.casefold() or wanted in said.setting(setting).casefold()
            ),
            key=lambda setting: (not setting.differs, setting.name),
        )
        super().__init__([setting.name for setting in self._settings])
        self.title = settings_title(request, answer, search, len(self._settings), zone)
        nothing = bool(answer is not None and answer.settings and not self._settings)
        self.empty = f"no setting contains {search!r}" if nothing else ""
        self.columns: Sequence[Column] = (
            Column("name", "setting", name_width(self.keys, 20, 46), name=True),
            Column("value", "value", 12, flex=3, most=80),
            Column("default", "default", 12, flex=2, most=60, rank=1),
            Column("source", "set by", 17),
        )

    def setting(self, index: int) -> Setting:
        return self._settings[index]

    def row(self, index: int, now_ms: int) -> Row:
        """Return a setting's cells. Those that somebody has set are bright."""
        setting = self._settings[index]
        role = Role.TEXT if setting.differs else Role.DIM
        value_role = Role.DIM if setting.sensitive else role
        default = said.default(setting) if setting.differs else ""
        return Row(
            (
                line(Span(setting.name, Role.BRIGHT if setting.differs else Role.DIM)),
                line(Span(said.setting(setting), value_role)),
                line(Span(default, Role.DIM)),
                line(Span(said.source(setting.source), role)),
            )
        )


class SettingDetail:
    """A setting in full, with every value that is set for it, from the one in force to the default."""

    forms = False

    def __init__(self, request: SettingsRequest, setting: Setting) -> None:
        self._request = request
        self._setting = setting

    def title(self) -> Line:
        """Return the line above: the setting's name and whose it is."""
        whose = self._request.topic or f"broker {self._request.broker}"
        return line(Span("SETTING ", Role.HEAD), Span(self._setting.name, Role.BRIGHT), f" of {whose}")

    def lines(self, form: Form, cells: int) -> list[Line]:
        setting = self._setting
        source = Span(f"  {said.source(setting.source)}", Role.DIM)
        lines: list[Line] = [line(Span("in force", Role.HEAD), source)]
        lines += _broken(said.setting(setting), cells)
        if setting.read_only:
            lines += [EMPTY, line(Span("read-only: a restart of the broker changes it", Role.DIM))]
        if setting.synonyms:
            lines += [EMPTY, line(Span("every value that is set, the first one counts", Role.HEAD))]
        for synonym in setting.synonyms:
            lines.append(line(Span(f"{said.source(synonym.source)}  {synonym.name}", Role.DIM)))
            lines += _broken(said.value(synonym.value, setting.sensitive, setting.name), cells)
        return lines


def _broken(text: str, cells: int) -> list[Line]:
    return [line(Span(text[at : at + cells])) for at in range(0, max(1, len(text)), cells)]
