"""Member sessions. A member that sends nothing for its session timeout is removed."""

from collections.abc import Callable

from kview.simulate.groups.group import Group, Member
from kview.simulate.groups.host import MS
from kview.simulate.groups.shard import Shard

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""Longest time a new member waits in its first JoinGroup. It sends no heartbeats yet, so it may have gone
away."""


class Sessions:
    """The sessions of one shard's members. `ended` is called for each member whose session has ended."""

    def __init__(self, shard: Shard, ended: Callable[[Group, Member], None]) -> None:
        self._shard = shard
        self._ended = ended

    def restart(self, group: Group, member: Member) -> None:
        """Restart a member's session, because the member sent a request."""
        timeout_ms = NEW_MEMBER_JOIN_TIMEOUT_MS if member.is_new else member.session_timeout_ms
        member.session_ends_us = self._shard.host.now_us() + timeout_ms * MS
        timer = member.session_timer
        if timer is not None and timer.time_us > member.session_ends_us:
            self._shard.cancel(timer)
            timer = None
        if timer is None:
            self._arm(group, member)

    def _arm(self, group: Group, member: Member) -> None:
        left_us = member.session_ends_us - self._shard.host.now_us()
        member.session_timer = self._shard.after(-(-left_us // MS), lambda: self._due(group, member))

    def _due(self, group: Group, member: Member) -> None:
        member.session_timer = None
        if group.members.get(member.member_id) is not member:
            return
        waits = not member.is_new and (member.join_done is not None or member.sync_done is not None)
        if member.session_ends_us > self._shard.host.now_us():
            self._arm(group, member)
        elif waits:
            self.restart(group, member)  # A member that waits for an answer sends no heartbeats.
        else:
            self._ended(group, member)
