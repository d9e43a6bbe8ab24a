"""Judges small worlds."""

from kview.derive.checks.cluster import Limits
from kview.derive.checks.judge import Ignore, Watch, step
from kview.model.checks import Judgement
from tests.worlds import World, views

SET_UP = ("min_isr_1", "replication_factor_1", "*_loss", "group_stopped:audit-export")
"""What is to say about the default world as it is set up, even if nothing is wrong with it."""


def rules(*texts: str) -> tuple[Ignore, ...]:
    """What to ignore, as KIND:NAME or KIND."""
    return tuple(Ignore(*text.split(":", 1)) for text in texts)


def judged(world: World, seconds: int, *ignore: str, limits: Limits | None = None) -> Judgement:
    """What a check of so many observations finds at its end."""
    watch = Watch(limits or Limits(), rules(*ignore))
    for view in views(world.tick() for _ in range(seconds)):
        watch, judgement = step(watch, view)
    return judgement


def labels(judgement: Judgement) -> list[str]:
    """The findings as KIND:NAME, the worst first."""
    return [f"{finding.kind}:{finding.name}" for finding in judgement.findings]
