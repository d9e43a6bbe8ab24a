"""What to ask which broker about offsets in an observation: log starts, log ends and high watermarks."""

from collections.abc import Mapping
from functools import partial

from msgspec import Struct, field

from kview.model.snapshot import Flags
from kview.model.units import UNKNOWN
from kview.observe.budget import Budget, Shares
from kview.observe.fast_lane import FastLane
from kview.observe.groups.rounds import Ask
from kview.observe.link import Link
from kview.observe.links import Links
from kview.observe.log_starts import LogStarts
from kview.observe.readings import Share
from kview.observe.state import State


class OffsetRounds(Struct):
    """Asks followers and leaders for their shares, and for the log starts that matter now.

    All log starts are asked for in every `log_start_rounds`-th observation, and last stable offsets
    when they are `last_stable_s` old. Those that transactions hold back are asked for each time.
    """

    state: State
    fast: FastLane
    links: Links
    budget: Budget
    log_start_rounds: int
    last_stable_s: float
    _log_starts: LogStarts = field(default_factory=LogStarts)

    def clock_set(self) -> None:
        """Forget what was calculated from times of the old clock."""
        self._log_starts = LogStarts()

    def early_log_starts(self, askable: Mapping[int, Link], sequence: int) -> list[tuple[Link, Ask]]:
        """Return the requests for the log starts that have to be read before commits."""
        layout = self.state.layout
        parts, _ = self.shares(sequence)
        early = self._log_starts.before_commits(layout, self.state.readings)
        rows = {broker: share.leads[early[share.leads]] for broker, share in parts.items()}
        return [
            (link, partial(self.fast.log_starts, link, broker, layout, rows[broker]))
            for broker, link in askable.items()
            if len(rows.get(broker, ()))
        ]

    def shares(self, sequence: int) -> tuple[Shares, bool]:
        """Return what to read from which broker, and whether that is everything."""
        failing = [broker for broker, link in self.links.fast.items() if link.failing]
        return self.budget.shares(self.state.layout, sequence, failing)

    def followers(self, shares: tuple[Shares, bool]) -> list[tuple[Link, Ask]]:
        """Return the requests for the log ends of followers."""
        if self.fast.debugging is False:
            return []
        parts, whole = shares
        return [
            (link, partial(self.fast.followers, link, broker, parts[broker], whole))
            for broker, link in self.links.askable().items()
            if broker in parts and len(parts[broker].follows)
        ]

    def starts_near_commits(self, sequence: int) -> Flags:
        """Return a mask of the partitions whose log starts matter, by the commits that have arrived."""
        state = self.state
        state.group_tables.update_offsets(state.groups)
        matters = self._log_starts.wanted(state.layout, state.readings, state.group_tables.offsets)
        if sequence % self.log_start_rounds == 0:
            matters[:] = True
        return matters

    def leaders(self, shares: tuple[Shares, bool], matters: Flags, began_ms: int) -> list[tuple[Link, Ask]]:
        """Return the requests for what leaders know, with the log starts in `matters` that are still due."""
        parts, whole = shares
        due = self._log_starts.after_commits(self.state.readings, matters, began_ms)
        read = self.state.readings
        stable = read.last_stable_since_ms != UNKNOWN
        stable |= read.last_stable_ms <= began_ms - int(self.last_stable_s * 1000)

        def ask(link: Link, broker: int, share: Share) -> Ask:
            starts, stables = share.leads[due[share.leads]], share.leads[stable[share.leads]]
            return partial(self.fast.leaders, link, broker, share, whole, starts, stables)

        return [
            (link, ask(link, broker, share))
            for broker, link in self.links.askable().items()
            if (share := parts.get(broker)) is not None and len(share.leads)
        ]
