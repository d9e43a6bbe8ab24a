"""Logs on their own: epochs, truncation, times and sizes, compared with a plain list of records."""

from hypothesis import given
from hypothesis import strategies as st

from kview.simulate.log import Log
from kview.simulate.records import encode_batch, header
from kview.simulate.stream import ENTRIES_MAX, Stream


def written(log: Log, epoch: int, records: int, first_us: int = 0) -> Log:
    stream = log.begin_epoch(epoch)
    stream.append_run(records, first_us, 10, 100, 0)
    log.end = stream.end
    return log


def follower_of(leader: Log, to: int) -> Log:
    log = Log()
    log.copy(leader, to)
    return log


def test_a_time_that_was_removed_is_forgotten() -> None:
    stream, late_ms = Stream(0, 0), 10**12
    for time_ms in (late_ms, 2, 3, late_ms + 1, 4):
        batch = encode_batch([(b"a", b"1", time_ms)])
        stream.append_batch(batch, header(batch))
    stream.replace(0, 2, [(2, encode_batch([(b"a", b"1", 2)]))])
    assert list(stream.latest_us) == [2_000, 3_000, (late_ms + 1) * 1_000, (late_ms + 1) * 1_000]


def test_runs_in_one_rhythm_are_one() -> None:
    stream = Stream(0, 0)
    for n in range(5):
        stream.append_run(10, n * 100, 10, 100, 0)
    assert len(stream.base) == 1 and stream.end == 50
    stream.append_run(10, 501, 10, 100, 0)
    stream.append_run(10, 601, 10, 100, 1)
    assert len(stream.base) == 3


def test_a_follower_that_was_ahead_is_cut_to_where_the_epochs_agree() -> None:
    old = written(Log(), 0, 100)
    new = follower_of(old, 80)
    assert new.agreement(old) == 80
    written(new, 1, 50)
    assert (old.agreement(new), new.end) == (80, 130)
    old.truncate(old.agreement(new))
    old.copy(new, new.end)
    assert [(s.epoch, s.start) for s in old.spans] == [(0, 0), (1, 80)]
    assert old.agreement(new) == 130


def test_a_follower_whose_records_were_all_deleted_is_cut_to_a_leader_that_never_had_them() -> None:
    own = written(Log(), 0, 100)
    own.advance_start(100)
    leader = written(Log(), 3, 20)
    own.truncate(own.agreement(leader))
    own.copy(leader, leader.end)
    assert (own.start, own.end, [(s.epoch, s.start) for s in own.spans]) == (0, 20, [(3, 0)])


def test_a_follower_keeps_what_a_leader_has_only_deleted() -> None:
    own, leader = written(Log(), 0, 100), Log()
    leader.reset(60)
    written(leader, 3, 20)
    assert own.agreement(leader) == 60


def test_two_logs_that_went_apart_twice_agree_on_what_is_common() -> None:
    base = written(Log(), 0, 10)
    one, other = follower_of(base, 10), follower_of(base, 8)
    written(one, 1, 5)
    written(other, 2, 5)
    assert one.agreement(other) == 8 and other.agreement(one) == 8


def test_an_epoch_without_records_does_not_hide_older_ones() -> None:
    base = written(Log(), 0, 10)
    leader = follower_of(base, 10)
    written(leader, 1, 5)
    empty = follower_of(base, 10)
    empty.begin_epoch(2)
    empty.truncate(empty.agreement(leader))
    empty.copy(leader, 15)
    assert [(s.epoch, s.start) for s in empty.spans] == [(0, 0), (1, 10)]


def test_the_end_of_an_epoch() -> None:
    log = written(written(Log(), 1, 10), 4, 5)
    asked = (-1, 0, 1, 3, 4, 9)
    ends = [(-1, -1), (0, 0), (1, 10), (1, 10), (-1, -1), (-1, -1)]
    assert [log.end_of_epoch(epoch) for epoch in asked] == ends


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(0, 50), st.booleans()), min_size=1, max_size=30),
    st.integers(0, 2000),
    st.integers(0, 400),
)
def test_times_and_sizes_are_those_of_the_records(
    appends: list[tuple[int, int, bool]], asked_ms: int, from_offset: int
) -> None:
    log, plain, now_ms, sizes = Log(), [], 0, []
    stream = log.begin_epoch(0)
    for count, gap_ms, as_batch in appends:
        if as_batch:
            data = encode_batch([(None, b"v", now_ms + n) for n in range(count)])
            stream.append_batch(data, header(data))
            sizes += [len(data)] + [0] * (count - 1)
        else:
            stream.append_run(count, now_ms * 1000, 1000, 70, 0)
            sizes += [70] * count
        plain += [now_ms + n for n in range(count)]
        now_ms += gap_ms
    log.end = stream.end
    expected = next(((n, t) for n, t in enumerate(plain) if t >= asked_ms), (-1, -1))
    found, time_us = log.first_at_or_after(asked_ms * 1000, log.end)
    assert (found, time_us // 1000) == expected
    assert log.size_between(0, log.end) == sum(sizes)
    start = min(from_offset, log.end)
    stop = stream.fit(start, log.end, 500)
    assert stop == log.end or sum(sizes[start:stop]) <= 500


def test_a_stream_with_very_many_runs_is_thinned_and_keeps_offsets_sizes_and_nearly_times() -> None:
    log = Log()
    stream = log.begin_epoch(0)
    times = []
    for n in range(ENTRIES_MAX + 10):
        first_us = n * 50_000 + n % 7
        stream.append_run(3, first_us, 1000 + n % 5, 100, 0)
        times += [first_us + i * (1000 + n % 5) for i in range(3)]
    log.end = stream.end
    assert len(stream.base) < ENTRIES_MAX and stream.end == len(times)
    assert log.size_between(0, log.end) == len(times) * 100
    assert all(abs(log.time_at(offset) - times[offset]) < 60_000 for offset in range(0, len(times), 997))
