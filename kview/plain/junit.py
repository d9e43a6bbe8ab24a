"""The outcome of a check as JUnit XML, which CI systems show as tests: one for each kind, and one for each
finding."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from xml.etree import ElementTree as Xml

from kview.derive.checks.outcome import Outcome
from kview.language import checks, glyphs
from kview.model.checks import CheckFinding, CheckKind, NotJudged

SUITE = "kview check"
CLASS = "kview.check"


def junit(outcomes: Mapping[str, Outcome | str]) -> bytes:
    """Return the outcomes of checking clusters, by name, as an XML file in UTF-8. Where there is no outcome,
    there is the reason.

    Names come from a cluster and may contain what XML forbids: a `?` takes the place of such characters. A
    finding that --fail-on does not heed is a test that passes, with its level and text as its output.
    """
    root = Xml.Element("testsuites")
    root.extend(
        _unchecked(outcome, name) if isinstance(outcome, str) else _suite(outcome, name)
        for name, outcome in outcomes.items()
    )
    Xml.indent(root)
    written: bytes = Xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _unchecked(why: str, name: str) -> Xml.Element:
    """Return the suite of a cluster that could not be checked: one test, which could not be run."""
    suite = Xml.Element(
        "testsuite",
        {
            "name": glyphs.printable(f"{SUITE} {name}"),
            "tests": "1",
            "failures": "0",
            "errors": "1",
            "skipped": "0",
        },
    )
    case = _case("checked")
    Xml.SubElement(case, "error", {"message": glyphs.printable(why)})
    suite.append(case)
    return suite


def _suite(outcome: Outcome, name: str) -> Xml.Element:
    cases = list(_cases(outcome))
    failed = sum(case.find("failure") is not None for case in cases)
    skipped = sum(case.find("skipped") is not None for case in cases)
    errors = sum(case.find("error") is not None for case in cases)
    suite = Xml.Element(
        "testsuite",
        {
            "name": glyphs.printable(f"{SUITE} {name}"),
            "timestamp": datetime.fromtimestamp(outcome.at_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S"),
            "time": f"{outcome.watched_ms / 1000:.3f}",
            "tests": str(len(cases)),
            "failures": str(failed),
            "errors": str(errors),
            "skipped": str(skipped),
        },
    )
    suite.extend(cases)
    return suite


def _cases(outcome: Outcome) -> Iterator[Xml.Element]:
    judgement = outcome.judgement
    for finding in judgement.findings:
        yield _finding(outcome, finding)
    for item in judgement.not_judged:
        yield _not_judged(outcome, item)
    concerned = {finding.kind for finding in judgement.findings}
    concerned |= {kind for item in judgement.not_judged for kind in item.kinds}
    for kind in CheckKind:
        if kind not in concerned:
            yield _case(str(kind))


def _case(name: str) -> Xml.Element:
    return Xml.Element("testcase", {"classname": CLASS, "name": glyphs.printable(name)})


def _finding(outcome: Outcome, finding: CheckFinding) -> Xml.Element:
    case = _case(checks.label(finding.key))
    text = glyphs.printable(checks.sentence(finding, outcome.at_ms))
    if outcome.rules.fails(finding):
        Xml.SubElement(case, "failure", {"type": finding.level, "message": text})
    else:
        Xml.SubElement(case, "system-out").text = f"{finding.level}: {text}"
    return case


def _not_judged(outcome: Outcome, item: NotJudged) -> Xml.Element:
    """Return a test that could not be carried out if that makes the check fail, else one that was skipped."""
    case = _case(checks.not_judged_label(item))
    text = glyphs.printable(checks.not_judged(item))
    if outcome.rules.fails_unjudged(item):
        Xml.SubElement(case, "error", {"type": item.why, "message": text})
    else:
        Xml.SubElement(case, "skipped", {"message": text})
    return case
