"""Scripts about reading: from followers, and by time within compressed batches."""

from kview.simulate.records import encode_batch
from tests.differential.play import Play, produced
from tests.serve import questions as q
from tests.simulate.client_batches import recompressed

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
"""In the order of their numbers in a batch's attributes."""

AFTER_MS = (0, 5_000, 3_000, 9_000, 7_000)
"""The times of a batch's records after its first one, which need not be in order."""

ASKED_MS = (0, 1, 3_001, 6_000, 9_000, 9_001, 24_000, 26_000, 29_001)
BATCHES_APART_MS = 20_000
LARGEST = -3
AGO_MS = 60_000


def follower_fetch(play: Play) -> None:
    """Followers serve consumers of version 11 and later up to the high watermark that they know."""
    t = play.topic("t", [[0, 1]])
    play.see("error", play.produce(0, t, ["one", "two", "three"]))
    play.until(lambda: q.fetch(play.at(1), t, 0)[1] == 3, "the follower has heard of the high watermark")
    play.see("at the follower", play.values(1, t))
    play.see("v10 at the follower", q.fetch(play.at(1), t, 0, version=10)[0])
    play.see("beyond the end", q.fetch(play.at(1), t, 4)[0])
    play.see("at the end", q.fetch(play.at(1), t, 3)[:2])
    play.see("with the epoch", q.fetch(play.at(1), t, 0, epoch=0)[:2])
    play.see("with a newer epoch", q.fetch(play.at(1), t, 0, epoch=1)[0])
    play.see("at a broker without a replica", q.fetch(play.at(2), t, 0)[0])
    play.see("offsets at the follower", q.list_offset(play.at(1), t, -1))
    play.crash(0)
    play.until_leader(t, 1)
    play.see("with the old epoch", q.fetch(play.at(1), t, 0, epoch=0)[0])
    play.see("with the new epoch", q.fetch(play.at(1), t, 0, epoch=1)[:2])
    play.start(0)
    play.up(0)
    play.until_isr(t, 0, 1)
    play.until(lambda: q.fetch(play.at(0), t, 0)[1] == 3, "the follower has heard of the high watermark")
    play.see("at the old leader", play.values(0, t))
    play.see("with the old epoch at the old leader", q.fetch(play.at(0), t, 0, epoch=0)[0])


def offsets_by_time(play: Play) -> None:
    """ListOffsets by time finds the record within its batch, whatever the codec."""
    for number, codec in enumerate(CODECS):
        _by_time(play, number, codec)


def _by_time(play: Play, number: int, codec: str) -> None:
    t = play.topic(codec, [[0, 1]])
    begin_ms = play.lab.now_ms() - AGO_MS
    for after_ms in (0, BATCHES_APART_MS):
        answer = play.send(0, t, (), batch=batch(number, begin_ms + after_ms))
        play.until(answer.arrived, "an answer")
        play.see(f"{codec}: error", produced(answer))
    play.until(lambda: q.fetch(play.at(0), t, 0)[1] == 2 * len(AFTER_MS), "both batches are committed")
    found = {ms: q.list_offset(play.at(0), t, begin_ms + ms) for ms in ASKED_MS}
    play.see(f"{codec}: by time", found)
    play.see(f"{codec}: largest timestamp", q.list_offset(play.at(0), t, LARGEST))
    play.see(f"{codec}: at the follower", q.list_offset(play.at(1), t, begin_ms)[0])
    data = q.fetch(play.at(0), t, 0)[2]
    play.see(f"{codec}: stored as", data[22] & 7)


def batch(codec: int, begin_ms: int) -> bytes:
    """Return a batch of five records as a client would compress it."""
    plain = encode_batch([(None, b"value " * 50, begin_ms + after_ms) for after_ms in AFTER_MS])
    return recompressed(plain, codec)


SCRIPTS = (follower_fetch, offsets_by_time)
