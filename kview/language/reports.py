"""Reports in words: figures, what is worth knowing first, and notes about the figures."""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from typing import NamedTuple

from kview.language import nouns, words
from kview.model.report import Note, NoteKind, Report
from kview.model.units import UNKNOWN

When = Callable[[int], str]
"""Writes a time (epoch ms)."""

_MOST_DIGITS = 4

_NOTES: Mapping[NoteKind, str] = {
    NoteKind.STILL_WRITTEN: "{recording} is still being written: the report covers it up to observation"
    " {sequence}.",
    NoteKind.NOT_CLOSED: "{recording} was not closed properly. The report covers it up to its last complete"
    " observation ({sequence}).",
    NoteKind.TORN: "{recording} ends in the middle of an observation ({bytes} bytes). The report covers it up"
    " to its last complete observation ({sequence}).",
    NoteKind.LEFT_OUT: "{recording} cannot be read ({reason}) and was left out.",
    NoteKind.SEGMENT_DAMAGED: "Segment {segment} of {recording} is damaged and was left out ({file}:"
    " {reason}).",
    NoteKind.SEGMENT_GONE: "Segment {segment} of {recording} is missing, so the report does not cover it.",
    NoteKind.ROLLED_UP_ONLY: "Segment {segment} of {recording} is {reason}. The report uses what an earlier"
    " report had kept of it.",
    NoteKind.FACTS_INCOMPLETE: "{recording} has no incidents, findings and lags in some of its segments.",
    NoteKind.OVERLAP: "{recording} begins before {other}, a recording of the same cluster, has ended. No"
    " second is counted twice: {seconds} s of {recording} were left out (up to a whole minute). If they are"
    " of two clusters with the same id, report on them one at a time.",
    NoteKind.GAP: "{recording} has {seconds} s without observations (gaps: {gaps}).",
    NoteKind.CLOCK_SET_BACK: "During {recording} the clock was set back (times: {times}). If a second occurs"
    " twice, the later one counts.",
    NoteKind.NOT_KEPT: "The roll-ups could not be kept in {folder} ({reason}), so the next report takes as"
    " long as this one. --cache DIR names another folder.",
    NoteKind.CUT_OFF: "{table} shows only the {rows} busiest of {total} rows.",
    NoteKind.OUTSIDE: "{recording} has nothing from this period.",
    NoteKind.WHOLE_MINUTES: "The report counts whole minutes, so the period begins {earlier_s} s earlier and"
    " ends {later_s} s later than asked for.",
    NoteKind.NO_MATCH: "None of the {kind} in this period has a name that matches {patterns}.",
    NoteKind.EMPTY: "{recording} has no complete second.",
}


def note(about: Note) -> str:
    """Return a note as a sentence."""
    return _NOTES[about.kind].format_map(
        {name: f"{value:,}" if isinstance(value, int) else value for name, value in about.values.items()}
    )


def change(share: float, is_new: bool) -> str:
    """Return by how much a figure has changed: `+39 %`; `new` if it was 0."""
    if is_new:
        return "new"
    return words.NONE if math.isnan(share) else f"{share * 100:+,.0f} %"


def lengths_differ(before_ms: int, now_ms: int) -> str:
    """Return that two periods are not equally long."""
    before, now = (words.duration(length_ms, tenths=False) for length_ms in (before_ms, now_ms))
    return f"before is {before} long, now is {now}: compare rates and shares, not totals."


def more_notes(number: int) -> str:
    """Return that there are more notes like those above."""
    return f"… and {words.plural(number, 'more note')} of this kind: --format json has all of them."


def percent(share: float) -> str:
    """Return a share of 0 to 1 in per cent, never rounded to 100 or 0: `99.982 %`, `100 %`, `43 %`."""
    if share != share:
        return words.NONE
    if share in (0.0, 1.0):
        return f"{share * 100:.0f} %"
    missing = min(share, 1 - share) * 100
    digits = max(0, 1 - math.floor(math.log10(missing)))
    if digits > _MOST_DIGITS:
        return "> 99.9999 %" if share > 0.5 else "< 0.0001 %"
    return f"{share * 100:.{digits}f} %"


def money(value: float) -> str:
    """Return a sum of money with two digits, or with more where it is small: `12.40`, `0.0031`."""
    if not 0 < abs(value) < 0.01:
        return f"{value:,.2f}"
    return f"{value:.{1 - math.floor(math.log10(abs(value)))}f}"


def ratio(value: float) -> str:
    """Return a ratio: `1.3`, `12`, `0.04`."""
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.1f}" if abs(value) >= 0.1 else f"{value:.2g}"


def times(report: Report, zone: tzinfo | None) -> When:
    """Return how the times of a report are written: in `zone`, and without the day if it is about one day.

    None is the machine's own zone.
    """
    ends = [report.period.since_ms, report.period.until_ms - 1]
    if report.against is not None:
        ends += [report.against.since_ms, report.against.until_ms - 1]
    days = {words.day(at_ms, zone) for at_ms in ends if at_ms > UNKNOWN}

    def when(at_ms: int) -> str:
        if days == {words.day(at_ms, zone)}:
            return words.clock(at_ms, zone, tenths=False)
        return words.moment(at_ms, zone)

    return when


class _Begun(NamedTuple):
    """What an incident began with: whom it hit, what happened to them, as a name and as a verb, and where."""

    who: str
    name: str
    verb: str
    where: str = ""


def _begun(kind: str, cause: str, brokers: str, controllers: str, racks: str) -> _Begun:
    if kind == "brokers":
        ids = [int(broker) for broker in brokers.split(",") if broker]
        named = nouns.some_brokers(ids) if ids else "a broker"
        of = [rack for rack in racks.split(",") if rack]
        where = f" ({'rack' if len(of) == 1 else 'racks'} {nouns.listed(of)})" if of and len(ids) > 1 else ""
        what = ("left the cluster", "left the cluster") if cause == "stopped" else ("silent", "fell silent")
        return _Begun(named, *what, where)
    if kind == "quorum":
        active = [int(controller) for controller in controllers.split(",") if controller]
        if not active:
            return _Begun("no controller", "could act", "could act")
        return _Begun(nouns.controllers(active), "without a majority", "had no majority")
    if cause == "frozen":
        return _Begun("watermarks", "frozen", "froze")
    return _Begun("partitions", "without a leader", "lost their leaders")


def incident_title(kind: str, cause: str, brokers: str, controllers: str, racks: str) -> str:
    """Return what an incident began with: `broker 4 silent`, `brokers 4 and 5 silent (rack R2)`.

    `racks` are those of the brokers. Other brokers of them may have been up.
    """
    who, name, _, where = _begun(kind, cause, brokers, controllers, racks)
    return f"{who} {name}{where}"


def incident_subject(
    kind: str, cause: str, brokers: str, controllers: str, racks: str, back_ms: int = UNKNOWN
) -> str:
    """Return the same as the beginning of a sentence: `broker 4 fell silent`, `broker 4 was silent for 12 s`.

    `back_ms` is when all of them were back, from the beginning, UNKNOWN if they did not come back, or if that
    is not known. Several need not have been away for all of that time.
    """
    who, _, verb, where = _begun(kind, cause, brokers, controllers, racks)
    if kind == "brokers" and back_ms > 0:
        length = words.duration(back_ms)
        away = "out of the cluster" if cause == "stopped" else "silent"
        verb = f"were {away}, all back after {length}" if "," in brokers else f"was {away} for {length}"
    return f"{who} {verb}{where}"


def fenced(first_ms: int, all_ms: int, brokers: int) -> str:
    """Return when the first and the last of some brokers were fenced: `+9.1 s`, `+9.1 s to 14 s`.

    `all_ms` is UNKNOWN as long as some of them were not.
    """
    first = f"+{words.duration(first_ms)}"
    if all_ms == UNKNOWN and brokers > 1:
        return f"{first}, not all"
    last = words.duration(all_ms)
    return first if all_ms == UNKNOWN or f"+{last}" == first else f"{first} to {last}"


def incidents_line(total: int, longest_ms: int, still_open: int, is_longest_open: bool) -> str:
    """Return how many incidents there were, how long the longest one lasted, and how many had not ended."""
    if total == 1:
        lasted = "still open at the end" if still_open else f"which lasted {words.duration(longest_ms)}"
        return f"1 incident, {lasted}"
    least = "at least " if is_longest_open else ""
    were = "one was" if still_open == 1 else "some were"
    still = f"; {were} still open at the end" if still_open else ""
    return f"{words.plural(total, 'incident')}; the longest lasted {least}{words.duration(longest_ms)}{still}"


def of_cluster(name: str, cluster: str) -> str:
    """Return a topic or a group with its cluster, unless that is ''."""
    return f"{name} of {cluster}" if cluster else name


def incident_line(
    what: str,
    when: str,
    lasted_ms: int,
    is_open: bool,
    led_ms: int,
    is_only_by_return: bool,
    waited_ms: int,
    cluster: str = "",
) -> str:
    """Return what happened in an incident, when, how long it lasted, and how long it hurt.

    `led_ms` and `waited_ms` may be UNKNOWN. `is_only_by_return` says that no other broker took over a
    partition. `cluster` is '' if the report is about one cluster only.
    """
    length = words.duration(lasted_ms)
    parts = [f"{when} {what}" + (f" in {cluster}" if cluster else "")]
    if led_ms > 0:
        when_back = ", and not before the return" if is_only_by_return else ""
        parts.append(f"all partitions were led again after {words.duration(led_ms)}{when_back}")
    if waited_ms > 0:
        parts.append(f"acks=all writes waited up to {words.duration(waited_ms)}")
    parts.append(f"still open at the end, after at least {length}" if is_open else f"over after {length}")
    return "; ".join(parts)


EVERY_TOPIC = "every topic, all the time"
IN_TIME_SEEN = "in the time that was seen"


def on_average(rate: float) -> str:
    """Return the rate of records that came in."""
    return f"{words.rate(rate)} per second on average"


def longest(lasted_ms: int, is_open: bool) -> str:
    """Return how long the longest incident lasted."""
    return f"the longest: {words.at_least(words.duration(lasted_ms), is_open)}"


def about_line(kind: str, names: Sequence[str]) -> str:
    """Return of which topics or groups a report is: `topics: invoice, payment`."""
    shown = ", ".join(names[:MOST_NAMED])
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return f"{kind}: {shown}{more}"


MOST_NAMED = 5


def unavailable_line(topic: str, seconds: int, share: float, others: int, is_silent: bool) -> str:
    """Return how long the worst topic was unavailable.

    `share` is that of its partitions' time with a leader or, if `is_silent`, with a leader that answered.
    """
    more = f" ({words.plural(others, 'more topic')} too)" if others else ""
    length = words.duration(seconds * 1000, tenths=False)
    if is_silent:
        answered = f"its leaders answered {percent(share)} of the time"
        return f"{topic} had leaders that did not answer for {length}{more}; {answered}"
    return f"{topic} had partitions without a leader for {length}, {percent(share)} available{more}"


def min_isr_line(topic: str, seconds: int, others: int) -> str:
    """Return how long the worst topic refused acks=all writes because it was under min ISR."""
    more = f" ({words.plural(others, 'more topic')} too)" if others else ""
    length = words.duration(seconds * 1000, tenths=False)
    return f"{topic} was under min.insync.replicas for {length}{more}: acks=all writes were refused"


def gone_line(records: int) -> str:
    """Return that records were lost in elections."""
    return f"at least {words.plural(records, 'record')} that only an old leader had {_are(records)} gone"


def lost_line(group: str, records: int) -> str:
    """Return that a group lost records to retention."""
    return f"{group} lost {words.plural(records, 'record')}, deleted before it had read them"


def others_lost_line(groups: int, records: int) -> str:
    """Return that groups which are not named lost records to retention."""
    return f"{words.plural(groups, 'more group')} lost {words.plural(records, 'record')} in the same way"


def behind_line(group: str, behind_ms: int, lag: int, above_ms: int, threshold_ms: int) -> str:
    """Return how far the worst group was behind, and for how long it was above the threshold."""
    threshold = words.duration(threshold_ms, tenths=False)
    records = f" (at most {words.plural(lag, 'record')})" if lag >= 0 else ""
    above = f"and more than {threshold} behind for {words.duration(above_ms)} in all"
    return f"{group} was up to ≈{words.duration(behind_ms)} behind{records}, {above}"


def rate_line(mean: float, most: int, most_at: str, out: float, cluster: str = "") -> str:
    """Return a cluster's throughput, with its name if there are several."""
    name = f"{cluster}: " if cluster else ""
    peak = f"; at most {most:,} came in within one second ({most_at})" if most >= 0 else ""
    read = "" if math.isnan(out) else f" and {words.rate(out)} out"
    return f"{name}on average {words.rate(mean)} records/s in{read}{peak}"


def more_clusters_line(clusters: int, records: int) -> str:
    """Return what came into the clusters that are not named."""
    return f"{words.plural(clusters, 'more cluster')}: {words.plural(records, 'record')} in"


def racks_line(size_bytes: int, share: float, cost: str) -> str:
    """Return what went from one rack to another."""
    price = f", at a cost of {cost}" if cost else ""
    return (
        f"followers copied ≈{words.size(size_bytes)} between racks ({percent(share)} of replication){price}"
    )


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


NOTHING_WRONG = "no incidents: in the time observed, every partition had a leader that answered"
NO_MATCH = "nothing matches a pattern that was given (see Notes)"
NO_FACTS = "incidents and lags are missing for all or part of this period (see Notes)"

_STAGES: Mapping[str, str] = {
    "start": "starting Spark",
    "roll_up": "rolling up the recordings",
    "figures": "adding up the figures",
    "page": "drawing the page",
}


def progress(stage: str, done: int, total: int) -> str:
    """Return what a report is doing: `rolling up the recordings, 3 of 12`."""
    return f"{_STAGES[stage]}, {done:,} of {total:,}" if total else _STAGES[stage]


def being_made(lasted: str) -> str:
    """Return that a report is being made, and for how long."""
    return f"report underway, {lasted}"


def tasks(stages: int, done: int, total: int) -> str:
    """Return how far Spark's jobs are: `12 of 40 tasks in 2 stages`."""
    return f"{done:,} of {words.plural(total, 'task')} in {words.plural(stages, 'stage')}"
