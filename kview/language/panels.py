"""What a panel says when it could not be drawn, and what the key says that removes a broker."""

from kview.model.states import BrokerState

DELETE_HELP = "remove the row of a broker that the cluster no longer lists"
"""What the key does. In the others, `{remove-broker}` stands for its name."""
DELETE_IS_LIVE = "{remove-broker} works only on the live view"
DELETE_IN_REPLAY = "{remove-broker} needs a live cluster: a recording cannot be changed"
DELETE_NEEDS_BROKER = (
    "{remove-broker} removes the row of a broker that the cluster no longer lists: select such a row first"
)


def not_drawn(log_file: str) -> str:
    """Return the sentence that a panel could not be drawn. `log_file` is '' if nothing can be logged."""
    if not log_file:
        return (
            "this panel could not be drawn, and kview.log is not writable:"
            " check the space and permissions of its folder"
        )
    return f"this panel could not be drawn; the log has the details: {log_file}"


def dismissed(broker: int) -> str:
    """Return what the key did to a broker that is gone."""
    return f"the row of broker {broker} is removed; it comes back if the broker joins the cluster again"


def not_dismissed(broker: int, state: BrokerState, key: str) -> str:
    """Return why the key did nothing to a broker that the cluster still lists."""
    return f"broker {broker} is {state.value}: {key} removes only brokers that the cluster no longer lists"
