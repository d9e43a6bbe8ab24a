"""The timers of a broker's process, which wait while it hangs and end with it."""

from collections.abc import Callable

from kview.simulate.kernel import Kernel, Timer
from kview.simulate.nodes import Node, ProcessState


class BrokerProcess:
    """What a broker's process has to do at its times."""

    __slots__ = ("_held", "kernel", "node")

    def __init__(self, kernel: Kernel, node: Node) -> None:
        self.kernel = kernel
        self.node = node
        # Calls that came due while the process hung. There are never more of them than timers that were
        # pending when it hung, because a hung process starts no new timers.
        self._held: list[tuple[Callable[..., object], tuple[object, ...]]] = []

    def at(self, time_us: int, fn: Callable[..., object], *args: object) -> Timer:
        """Start a timer of this process that is due at `time_us`."""
        return self.kernel.at(time_us, self._execute, self.node.incarnation, fn, *args)

    def after(self, delay_us: int, fn: Callable[..., object], *args: object) -> Timer:
        """Start a timer of this process.

        The timer waits while the process hangs, and is dropped when the process dies.
        """
        return self.kernel.after(delay_us, self._execute, self.node.incarnation, fn, *args)

    def tick(self, delay_us: int, fn: Callable[..., object], *args: object) -> Timer:
        """Do the same for what is not work, however soon it is due: it waits while the clock stands."""
        return self.kernel.tick(delay_us, self._execute, self.node.incarnation, fn, *args)

    def _execute(self, incarnation: int, fn: Callable[..., object], *args: object) -> None:
        """Call `fn` if the process is still in `incarnation`.

        If the process hangs, `fn` is called after it resumes. If the process has died since, `fn` is never
        called.
        """
        node = self.node
        if node.incarnation != incarnation:
            return
        if node.state is ProcessState.RUNNING:
            fn(*args)
        elif node.state is ProcessState.HUNG:
            self._held.append((fn, args))

    def ended(self) -> None:
        """Drop all timers, because the process has ended."""
        self.node.incarnation += 1
        self._held = []

    def resume(self) -> None:
        """Run the timers that came due during a hang."""
        held, self._held = self._held, []
        for fn, args in held:
            self.after(0, fn, *args)
