"""The last answer of a connection whose login fails."""

from typing import Any

from kview.serve.call import Call
from kview.serve.login import Login, Stage


def refuse(call: Call, login: Login, answer: Any) -> None:
    """Send the answer after a delay, and then close the connection."""
    login.stage = Stage.OVER
    call.cluster.kernel.after(login.logins.delay_us, call.later(call.last_answer), answer)
