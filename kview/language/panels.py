"""What a panel says when it could not be drawn, and what the Delete key says."""

from kview.model.states import BrokerState

DELETE_HELP = "drop the row of a broker that has left the cluster"
DELETE_IS_LIVE = "Delete acts on the cluster as it is now"
DELETE_IN_REPLAY = "Delete needs a live cluster: a recording cannot be changed"
DELETE_NEEDS_BROKER = "Delete drops the row of a broker that has left the cluster: select one"


def not_drawn(log_file: str) -> str:
    """Return the sentence that a panel could not be drawn. `log_file` is '' if nothing can be logged."""
    if not log_file:
        return "this panel could not be drawn; the log file cannot be written"
    return f"this panel could not be drawn; the log has the details: {log_file}"


def dismissed(broker: int) -> str:
    """Return what Delete did to a broker that has left the cluster."""
    return f"the row of broker {broker} is dropped; it comes back if the broker joins the cluster again"


def not_dismissed(broker: int, state: BrokerState) -> str:
    """Return why Delete did nothing to a broker that the cluster still lists."""
    return f"broker {broker} is {state.value}, not gone: Delete drops the row of a broker that has left"
