"""The clock follows the wall clock but not its pauses, and the driver runs events in slices."""

import asyncio

from kview.serve.clock import CATCH_UP, MAX_BEHIND_US, Clock
from kview.serve.driver import SLICE_US, Driver
from kview.simulate.kernel import Kernel

START_US = 1_700_000_000_000_000


class Wall:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.ns = 5_000

    def __call__(self) -> int:
        return self.ns

    def advance_us(self, us: int) -> None:
        self.ns += us * 1000


def test_time_passes_as_the_wall_does() -> None:
    wall = Wall()
    clock = Clock(wall, START_US)
    for step in range(1, 50):
        wall.advance_us(10_000)
        assert clock.now_us(START_US + 10_000 * (step - 1)) == START_US + 10_000 * step
    assert clock.held_us == 0


def test_a_pause_holds_the_clock_and_is_made_up_slowly() -> None:
    wall = Wall()
    clock = Clock(wall, START_US)
    wall.advance_us(30_000_000)
    engine_us = clock.now_us(START_US)
    assert engine_us == START_US + MAX_BEHIND_US, "nobody's session may expire by the pause"
    assert clock.held_us == 30_000_000 - MAX_BEHIND_US
    passed_us = 0
    while clock.held_us:
        wall.advance_us(10_000)
        passed_us += 10_000
        before_us, engine_us = engine_us, clock.now_us(engine_us)
        assert 10_000 <= engine_us - before_us <= 10_000 * (1 + 2 * CATCH_UP)
        assert passed_us < 2 * 30_000_000 / CATCH_UP
    assert engine_us == START_US + 30_000_000 + passed_us


def test_an_engine_that_cannot_keep_up_holds_the_clock_too() -> None:
    wall = Wall()
    clock = Clock(wall, START_US)
    for _ in range(100):
        wall.advance_us(100_000)
        assert clock.now_us(START_US) <= START_US + MAX_BEHIND_US


class CountingEngine(Kernel):
    """An engine with an event every millisecond, which keeps the slices in which it runs."""

    def __init__(self) -> None:
        super().__init__(1, START_US)
        self.slices: list[int] = []
        self.after(1_000, self._event)

    def _event(self) -> None:
        self.after(1_000, self._event)

    def run_until(self, time_us: int) -> None:
        self.slices.append(time_us - self.now_us)
        super().run_until(time_us)


def test_after_a_stall_the_engine_catches_up_in_slices_between_which_others_run() -> None:
    engine, wall, failures = CountingEngine(), Wall(), list[Exception]()
    others_ran_at: list[int] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        caught_up = loop.create_future()
        driver = Driver(engine, Clock(wall, START_US), loop, failures.append)

        def other() -> None:
            others_ran_at.append(engine.now_us)
            if engine.now_us < START_US + 400_000:
                loop.call_soon(other)
            else:
                caught_up.set_result(None)

        wall.advance_us(400_000)
        driver.start()
        other()
        await caught_up
        driver.stop()

    asyncio.run(asyncio.wait_for(run(), 10))
    assert max(engine.slices) <= SLICE_US
    assert len(set(others_ran_at)) >= 400_000 // SLICE_US - 1
    assert not failures


def test_an_exception_of_the_engine_stops_the_driver_and_is_told() -> None:
    def broken() -> None:
        raise ArithmeticError("an invariant")

    engine, wall = Kernel(1, START_US), Wall()
    engine.after(1_000, broken)

    async def run() -> Exception:
        told: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        driver = Driver(engine, Clock(wall, START_US), asyncio.get_running_loop(), told.set_result)
        wall.advance_us(10_000)
        driver.start()
        return await asyncio.wait_for(told, 5)

    assert isinstance(asyncio.run(run()), ArithmeticError)
