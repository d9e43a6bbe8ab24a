"""The event queue and its random sources."""

import gc

from kview.simulate.kernel import CANCELLED_MAX, WORK_US, Kernel, Timer


def test_events_run_by_time_then_by_number() -> None:
    kernel = Kernel(1, 100)
    ran: list[str] = []
    kernel.at(300, ran.append, "third")
    kernel.at(200, ran.append, "first")
    kernel.at(200, ran.append, "second")
    kernel.run_until(250)
    assert ran == ["first", "second"] and kernel.now_us == 250
    kernel.run_until(300)
    assert ran == ["first", "second", "third"]


def test_an_event_may_schedule_another_for_the_same_time() -> None:
    kernel = Kernel(1, 0)
    ran: list[int] = []
    kernel.at(10, lambda: kernel.after(0, ran.append, kernel.now_us))
    kernel.run_until(10)
    assert ran == [10]


def test_what_is_cancelled_does_not_run_and_is_not_due() -> None:
    kernel = Kernel(1, 0)
    ran: list[int] = []
    timer = kernel.at(10, ran.append, 1)
    kernel.at(20, ran.append, 2)
    kernel.cancel(timer)
    assert kernel.next_due_us() == 20
    kernel.run_until(30)
    assert ran == [2] and kernel.next_due_us() is None


def test_time_does_not_go_back() -> None:
    kernel = Kernel(1, 1000)
    times: list[int] = []
    kernel.at(5, lambda: times.append(kernel.now_us))
    kernel.run_until(500)
    assert kernel.now_us == 1000 and not times
    kernel.run_until(1000)
    assert times == [1000]


def test_randomness_depends_on_seed_and_name_alone() -> None:
    one, other = Kernel(1, 0), Kernel(1, 50)
    other.random("b").random()
    assert one.random("a").random() == other.random("a").random()
    assert Kernel(1, 0).random("a").random() != Kernel(2, 0).random("a").random()
    assert Kernel(1, 0).random("a").random() != Kernel(1, 0).random("b").random()


def test_cancelled_timers_do_not_pile_up() -> None:
    kernel = Kernel(1, 0)
    done: list[int] = []
    before = sum(isinstance(each, Timer) for each in gc.get_objects())
    for number in range(3 * CANCELLED_MAX):
        kernel.cancel(kernel.after(1_000_000 + number, done.append, number))
        if not number % 100:
            kernel.after(number, done.append, number)
    assert sum(isinstance(each, Timer) for each in gc.get_objects()) < before + 2 * CANCELLED_MAX
    kernel.run_until(2_000_000)
    assert done == list(range(0, 3 * CANCELLED_MAX, 100))


def test_while_the_clock_stands_work_is_done_and_everything_else_waits() -> None:
    kernel = Kernel(1, 0)
    ran: list[tuple[str, int]] = []

    def note(name: str, again_us: int = 0) -> None:
        ran.append((name, kernel.now_us))
        if again_us:
            kernel.after(again_us, note, name)

    kernel.at(WORK_US, note, "work", 100_000)
    kernel.at(WORK_US + 1, note, "timer")
    kernel.tick(10_000, note, "tick")
    kernel.run_until(5_000)
    kernel.stand()
    kernel.stand()
    kernel.after(WORK_US + 1, note, "later")
    cancelled = kernel.after(WORK_US + 1, note, "cancelled")
    assert kernel.next_due_us() == WORK_US
    kernel.work(WORK_US - 6_000)
    assert not ran
    kernel.cancel(cancelled)
    kernel.work(1_000_000_000)
    assert ran == [("work", 5_000), ("work", 5_000)] and kernel.now_us == 5_000
    assert kernel.next_due_us() is None
    assert kernel.working_us == 1_000_000_000 + WORK_US - 1_000
    kernel.go_on()
    kernel.go_on()
    assert kernel.next_due_us() == 10_000
    kernel.run_until(600_000)
    assert ran[2:] == [("tick", 10_000), ("timer", WORK_US + 1), ("later", 5_000 + WORK_US + 1)]


def test_work_that_is_left_when_the_clock_goes_on_is_done_after_what_was_left_of_its_time() -> None:
    kernel = Kernel(1, 0)
    ran: list[int] = []
    kernel.stand()
    kernel.after(100, lambda: ran.append(kernel.now_us))
    kernel.work(70)
    kernel.go_on()
    kernel.run_until(29)
    assert not ran
    kernel.run_until(30)
    assert ran == [30]
