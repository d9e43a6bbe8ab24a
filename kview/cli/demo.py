"""`kview demo`: list the demos, play one on the dashboard, or check it without a screen."""

from typing import TYPE_CHECKING, Any

import click

from kview.cli.display_options import display_of, display_options
from kview.errors import BadUse
from kview.run.settings import Display

if TYPE_CHECKING:
    from kview.school.checking import Played


INCIDENT = "incident"
"""The demo whose fault the seed chooses."""


@click.command()
@click.argument("name", required=False)
@click.option(
    "--check",
    is_flag=True,
    help="Play the demo without a screen, as fast as the simulated cluster runs. Exits with 1 if something"
    " that the demo expects does not happen.",
)
@click.option(
    "--seed",
    type=int,
    metavar="N",
    help="For incident: the seed that chooses the fault, so that a class gets the same one.",
)
@display_options
@click.pass_context
def demo(ctx: click.Context, /, name: str | None, check: bool, seed: int | None, **flags: Any) -> None:
    """List the demos, or play one on a simulated cluster: on the screen, or without one with --check.

    A demo shows, step by step, how a simulated cluster behaves. Your own are TOML files in the folder that
    `kview config` shows; a file with the name of one of kview's demos replaces it.
    """
    if name is None and check:
        raise click.UsageError("--check needs the name of a demo; `kview demo` lists them")
    if name is None:
        _list()
        return
    _refuse_unknown(name)
    if not check:
        play(ctx, name, seed, display_of(ctx, flags))
    elif name == INCIDENT:
        _check_incident(1 if seed is None else seed)
    else:
        _check(name)


def play(ctx: click.Context, name: str, seed: int | None, display: Display) -> None:
    """Play a demo on the dashboard, and exit. Raises BadUse if there is no such demo, or no terminal."""
    _refuse_unknown(name)
    if name != INCIDENT:
        from kview.school.files import lesson_of

        lesson_of(name)  # A wrong file is reported before anything starts.
    from kview.run.terminal import streams_are_terminals

    if not streams_are_terminals():
        raise click.UsageError(f"a demo needs a terminal; `kview demo {name} --check` plays it without one")
    from kview.run.simulating import simulate

    ctx.exit(simulate([], display, name, seed))


def _refuse_unknown(name: str) -> None:
    """Raise BadUse if there is no demo of this name."""
    from kview.school.files import lesson_files, unknown_lesson

    known = tuple(dict.fromkeys((*lesson_files(), INCIDENT)))
    if name not in known:
        raise unknown_lesson(name, known)


def _list() -> None:
    from kview.language.errors import sentence
    from kview.language.glyphs import printable
    from kview.school.files import lesson_files, read_lesson
    from kview.school.words.lessons import ABOUT_INCIDENT, listed

    wrong, lessons = [], {}
    for name, path in lesson_files().items():
        try:
            lessons[name] = read_lesson(path)
        except BadUse as error:
            wrong.append(sentence(error))
    rows = [(name, lesson.title, lesson.minutes, lesson.about) for name, lesson in lessons.items()]
    lines = listed([*rows, (INCIDENT, *ABOUT_INCIDENT)])
    for line in lines:
        click.echo(printable(line))
    for line in wrong:
        click.echo(f"kview: {printable(line)}", err=True)
    if wrong:
        raise SystemExit(BadUse.exit_code)


def _check(name: str) -> None:
    from kview.language.glyphs import printable
    from kview.school.checking import play
    from kview.school.files import lesson_of
    from kview.school.words.lessons import result

    steps = failures = took_ms = 0
    for played in play(lesson_of(name)):
        steps, took_ms = steps + 1, took_ms + played.took_ms
        for line in _failures(played):
            failures += 1
            click.echo(printable(line))
    click.echo(printable(result(name, steps, failures, took_ms)))
    if failures:
        raise SystemExit(1)


def _failures(played: "Played") -> list[str]:
    from kview.school.words.lessons import refused, unmet

    return [
        refused(failure.step, failure.expected, failure.refused)
        if failure.refused is not None
        else unmet(failure.step, failure.expected, failure.seen)
        for failure in played.failed
    ]


def _check_incident(seed: int) -> None:
    from kview.language.glyphs import printable
    from kview.school.drills import check
    from kview.school.words.lessons import drilled

    hidden = 0
    for drill, debriefing in check(seed):
        hidden += not debriefing.is_visible
        symptoms = [(sighting.symptom, sighting.after_ms, sighting.value) for sighting in debriefing.seen]
        for line in drilled(drill.fault.name, debriefing.cause, symptoms):
            click.echo(printable(line))
    if hidden:
        raise SystemExit(1)
