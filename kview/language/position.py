"""What is known of the record at a committed offset: facts as words, and no guesses about its reader."""

from kview.language import decoded as schemas
from kview.language import glyphs, inspection, words
from kview.model.decoded import NOTES, DecodedRecord, DecodeFailureKind
from kview.model.inspection import RecordsAnswer, StartKind

NOT_THERE = "the group has no offset in this partition any more"
NOTHING_KNOWN = "the record can be read, so nothing here says why its reader does not go on"
FETCH_BYTES = 1 << 20
"""The default of a consumer's max.partition.fetch.bytes."""


def of_record(
    answer: RecordsAnswer, decoded: DecodedRecord, offset: int, is_explained: bool
) -> list[tuple[bool, str]]:
    """Return facts about the record at `offset`, each with whether it may be what is wrong.

    There are none while other records are shown. `is_explained` says whether something else holds the reader.
    """
    start = answer.request.start
    if answer.failure or start.kind is not StartKind.OFFSET or start.value != offset:
        return []
    facts = [
        (True, f"offset {words.count(damaged.offset)}: {inspection.damage(damaged)}")
        for damaged in answer.damage[:1]
        if not answer.records or damaged.offset <= answer.records[0].offset
    ]
    if not answer.records:
        return facts
    record = answer.records[0]
    for name, part in (("key", decoded.key), ("value", decoded.value)):
        if part is None or not part.failure:
            continue
        why = schemas.failure(part.failure, part)
        if schemas.is_data_failure(part):
            facts.append((True, f"its {name} {why} ({schemas.schema(part)})"))
        elif part.failure.kind is DecodeFailureKind.NO_SCHEMA and not schemas.is_doubtful(part):
            facts.append((True, f"its {name} cannot be decoded: {why}"))
        elif part.failure.kind in NOTES:
            is_explained = True  # it depends on the reader
            facts.append((False, f"its {name}: {why}"))
        elif not part.has_tree:
            is_explained = True  # nobody knows yet
            why += ", if a registry wrote it" if schemas.is_doubtful(part) else ""
            facts.append((False, f"its {name} is not decoded: {why}"))
    if record.offset > offset:
        why = "compaction, an aborted transaction or a transaction's marker"
        facts.append((False, f"offset {words.count(offset)} has no record ({why}): the next one is shown"))
    if record.size > FETCH_BYTES or record.least_size >= FETCH_BYTES:
        limit = (
            "more than max.partition.fetch.bytes by default, which counts it compressed; a broker sends a"
            " first batch whole nevertheless"
        )
        size = f"{'more than ' if record.masked else ''}{words.size(record.size)}"
        facts.append((False, f"the record has {size}, {limit}"))
    if not is_explained and not any(wrong for wrong, _ in facts):
        facts.append((False, NOTHING_KNOWN))
    producer = inspection.producer(record)
    about = [
        f"record {words.count(record.offset)}: {'masked' if record.masked else words.size(record.size)}",
        *([producer] if producer else []),
        *([words.plural(record.header_count, "header")] if record.header_count else []),
        *(["written in a transaction"] if record.transactional else []),
    ]
    return [*facts, (False, f" {glyphs.DOT} ".join(about))]
