"""What a dashboard shows and what its keys act on, as the room `run` hands it over."""

from collections.abc import Callable, Hashable, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

from kview.config.themes import Themes
from kview.derive.view import View
from kview.model.choices import Memory
from kview.model.lab import Lab
from kview.model.notices import Notice
from kview.model.ports import Attention, Feed, Inspector, Saves, SparkJob, Timeline
from kview.model.reporting import Reports
from kview.model.where import Candidate
from kview.tui.actions import Keys
from kview.tui.keys import DEFAULT_KEYS
from kview.tui.widgets.header import Member, SourceInfo

if TYPE_CHECKING:
    from kview.tui.app import KviewApp
    from kview.tui.teaching import Teaching


class Opened(Struct):
    """What somebody has opened, and the head does not tell any more: incidents by key, and unclean elections
    by when they were (epoch ms)."""

    incidents: frozenset[Hashable] = frozenset()
    unclean_ms: frozenset[int] = frozenset()


class NoFeed:
    """The feed of a screen that shows no view."""

    def start(self, on_view: Callable[[View], None], on_notice: Callable[[Notice], None]) -> None:
        """Publish nothing."""

    def stop(self) -> None:
        """Do nothing."""


class Clusters(Protocol):
    """The clusters between which the user can switch. All methods are called on the screen's thread, and
    return at once."""

    def names(self) -> Sequence[str]:
        """Return the names of the clusters besides the one shown."""
        ...

    def open(self, name: str) -> "Session":
        """Return the session of a cluster. Raises KviewError if its settings are wrong."""
        ...

    def fleet(self) -> "Session | None":
        """Return the session of the first screen with all clusters, None if there is only one."""
        ...

    def instead(self) -> "Session | None":
        """Return what to show instead of a cluster that has ended before it could be shown, None if it has
        not."""
        ...


class Session(Struct, frozen=True, kw_only=True):
    """A run of the dashboard. What is None is not there: its keys do nothing, and say so."""

    feed: Feed[View]
    source: SourceInfo
    clock_ms: Callable[[], int]
    """The time at the moment shown, epoch ms, by the snapshots' clock. It stands still while time is paused,
    and runs as fast as a recording is played."""
    wall_ms: Callable[[], int] | None = None
    """What that clock shows live. None: the same."""

    timeline: Timeline | None = None
    spark: SparkJob | None = None
    attention: Attention | None = None
    """None in a replay."""
    inspector: Inspector | None = None
    """None if there is no cluster to ask."""
    lab: Lab | None = None
    """None on a cluster that we did not start."""
    clusters: Clusters | None = None
    """None if kview cannot switch to another cluster."""
    members: Callable[[], Sequence[Member]] | None = None
    """Returns the clusters of the fleet as they are now. None if a single cluster is shown."""
    opening: Notice | None = None
    """What to say at first."""
    selected: str = ""
    """The cluster that is selected at first, '' for the first one."""
    has_fleet: bool = False
    """Whether there is a screen of all clusters."""
    opened: Opened = field(default_factory=Opened)
    saves: Saves | None = None
    record_line: Callable[[str, Candidate], str] | None = None
    """Returns a record of a topic as one line of JSON."""
    reports: Reports | None = None
    memory: Memory | None = None
    """None if nothing is kept for the next time."""

    teaching: "Callable[[KviewApp], Teaching] | None" = None
    """Makes what is taught on the dashboard."""

    keys: Keys = DEFAULT_KEYS
    themes: Themes | None = None
    """None: those that are installed."""
    theme: str | None = None
    """None or '': the default theme."""
    no_color: bool | None = None
    """None: as the environment's NO_COLOR says."""
    few_colors: bool | None = None
    """Whether there are only 16 colours. None: as the terminal says."""
    ascii_only: bool = False
    mouse: bool = True
    """Whether the mouse works, and is not left to the terminal."""
    zone: tzinfo | None = None
    """The time zone of the times of day shown. None: the machine's own."""
    config_file: Path | None = None
    """Where settings are kept for the next time, None if they are not."""
    log_file: str = ""
    """Where tracebacks are logged, '' if they are not."""
