"""The share sessions of one broker: which partitions each member fetches (ShareSessionCache).

A session ends when its member says so, when its connection ends, or when the member opens another.
"""

from collections.abc import Iterable, Iterator

from kview.simulate.codes import ErrorCode
from kview.simulate.sharing.in_flight import ShareRefused

NEW, FINAL = 0, -1
"""The epochs that open and close a session. In between it goes up by one with each request."""
EPOCH_MAX = 2**31 - 1

Place = tuple[bytes, int]
"""(topic id, partition)"""


class ShareSession:
    """One member's session. `epoch` is that of its next request, and `untold` are the partitions of which no
    answer has said anything."""

    def __init__(self, group: str, member: str, connection: object, places: Iterable[Place]) -> None:
        self.group = group
        self.member = member
        self.connection = connection
        self.places = dict.fromkeys(places)
        self.untold = set(self.places)
        self.epoch = NEW + 1

    def update(self, added: Iterable[Place], forgotten: Iterable[Place]) -> None:
        """Change the partitions as a request asks for."""
        for place in added:
            if place not in self.places:
                self.places[place] = None
                self.untold.add(place)
        for place in forgotten:
            self.places.pop(place, None)
            self.untold.discard(place)

    def rotated(self, epoch: int) -> list[Place]:
        """Return the partitions, each time beginning with another one."""
        places = list(self.places)
        at = epoch % len(places) if places else 0
        return places[at:] + places[:at]


class ShareSessions:
    """The sessions by group and member, `most` at most."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._sessions: dict[tuple[str, str], ShareSession] = {}

    def known(self, group: str, member: str, epoch: int) -> ShareSession:
        """Return a member's session. Raises ShareRefused if there is none, or the epoch is not that of its
        next request (unless it is the final one)."""
        session = self._sessions.get((group, member))
        if session is None:
            raise ShareRefused(ErrorCode.SHARE_SESSION_NOT_FOUND, None)
        if epoch not in (FINAL, session.epoch):
            raise ShareRefused(ErrorCode.INVALID_SHARE_SESSION_EPOCH, None)
        if epoch != FINAL:
            session.epoch = 1 if session.epoch >= EPOCH_MAX else session.epoch + 1
        return session

    def open(self, group: str, member: str, connection: object, places: Iterable[Place]) -> ShareSession:
        """Open a session in place of the one that the member may have. Raises ShareRefused."""
        key = (group, member)
        self._sessions.pop(key, None)
        if len(self._sessions) >= self._most:
            raise ShareRefused(ErrorCode.SHARE_SESSION_LIMIT_REACHED, None)
        session = self._sessions[key] = ShareSession(group, member, connection, places)
        return session

    def close(self, session: ShareSession) -> bool:
        """Close a session, and return whether its group has none left here."""
        key = (session.group, session.member)
        if self._sessions.get(key) is session:
            del self._sessions[key]
        return all(other.group != session.group for other in self._sessions.values())

    def of_connection(self, connection: object) -> Iterator[ShareSession]:
        """Yield the sessions that a connection has opened."""
        return (session for session in list(self._sessions.values()) if session.connection is connection)

    def clear(self) -> None:
        """Forget all sessions."""
        self._sessions.clear()
