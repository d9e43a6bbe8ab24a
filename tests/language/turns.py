"""Turns of phrase that no sentence of kview may contain: nobody would say them to a colleague."""

BANNED = (
    " is no ",
    " are no ",
    " anew",
    "beside the",
    " is told",
    "gone to",
    "whoever",
    "thereof",
    "look at the cluster",
)


def banned_turns(text: str) -> list[str]:
    """Those of them that `text` contains."""
    padded = f" {text.lower()} ".replace("there is no ", "").replace("there are no ", "")
    return [turn for turn in BANNED if turn in padded]
