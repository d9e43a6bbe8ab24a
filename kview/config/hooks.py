"""What a profile calls when a finding begins, gets worse or ends: a command or a URL."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from kview.config.connect_rest import NotUsable
from kview.config.references import resolved
from kview.config.secret import Secret
from kview.model.events import Severity

CALL, SEVERITY, HOLD = "on-finding", "on-finding-severity", "on-finding-hold"
"""The keys of a profile."""

_HOLD = re.compile(r"([0-9]{1,5})(s|m)")
_SEVERITIES = {severity.value: severity for severity in (Severity.RISK, Severity.WARN)}
_URL = re.compile(r"(https?://[^/?#@\s]+)([/?][!-~]*)?", re.ASCII)


class Hook(Struct, frozen=True):
    """A command with its arguments, or the URL to which a document is posted if there is no command.

    It is called for findings that are at least as severe as `severity` and have lasted for `hold_ms`. The
    command's arguments and the URL may be secret.
    """

    command: tuple[Secret, ...]
    url: Secret
    severity: Severity
    hold_ms: int

    @property
    def shown(self) -> str:
        """What may be shown of the call: the program without its arguments, or the server."""
        if self.command:
            return self.command[0].reveal()
        server = _URL.match(self.url.reveal())
        return f"{server[1]}/…" if server else "…"


def hook(
    call: str | Sequence[str] | None,
    severity: str | None,
    hold: str | None,
    environment: Mapping[str, str],
    folder: Path,
) -> Hook | None:
    """Return what these values of a profile name, None if they name no call.

    References to secrets are resolved. Raises NotUsable, or BadUse if a reference cannot be resolved.
    """
    least = _SEVERITIES.get(Severity.WARN.value if severity is None else severity)
    if least is None:
        raise NotUsable(SEVERITY)
    held = _HOLD.fullmatch("30s" if hold is None else hold)
    if held is None:
        raise NotUsable(HOLD)
    if call is None:
        if severity is not None or hold is not None:
            raise NotUsable(CALL)
        return None
    hold_ms = int(held[1]) * (60_000 if held[2] == "m" else 1_000)
    if isinstance(call, str):
        url = resolved(call, environment, folder)
        if not _URL.fullmatch(url):
            raise NotUsable(CALL)
        return Hook((), Secret(url), least, hold_ms)
    words = [resolved(word, environment, folder) for word in call]
    if not words or not words[0] or any("\0" in word for word in words):
        raise NotUsable(CALL)
    return Hook(tuple(map(Secret, words)), Secret(""), least, hold_ms)
