"""The log file, especially if it cannot be written."""

import logging
import os
import subprocess
import sys
from pathlib import Path

from kview.run.log import MOST_MESSAGES, REPEATED_WITHIN_S, Repeats
from tests.cli.commands import ROOT


def test_what_does_not_fit_on_the_disk_is_dropped_quietly(tmp_path: Path) -> None:
    program = """if True:
        import logging
        from kview.config.log import log_path
        from kview.run.log import log_file, start_log
        log_path().parent.mkdir(parents=True)
        log_path().symlink_to("/dev/full")
        start_log()
        logging.getLogger("kview").warning("nobody reads this")
        print(log_file())
    """
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(str(tmp_path)) and done.stderr == ""


def test_nothing_from_a_cluster_reaches_the_log_raw(tmp_path: Path) -> None:
    program = r"""if True:
        import logging
        from kview.config.log import log_path
        from kview.run.log import start_log
        start_log()
        try:
            raise ValueError("\x1b]0;x\x07 a\n2026-01-01 00:00:00,000 1 ERROR kview: forged\r\u202e\x9b")
        except ValueError:
            logging.getLogger("kview").exception("topic \x1b[31m\nred")
        print(log_path().read_text())
    """
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    lines = done.stdout.rstrip("\n").split("\n")
    assert all(line.isprintable() for line in lines)
    assert lines[0].endswith("ERROR kview: topic ?[31m?red")
    assert all(line.startswith("  ") for line in lines[1:]), "no line looks like another entry"
    assert any("forged" in line for line in lines[1:])


def test_a_broker_that_stays_down_does_not_fill_the_log() -> None:
    clock = [0.0]
    kept = Repeats(lambda: clock[0])

    def lines(name: str, *messages: str) -> list[str]:
        records = [logging.LogRecord(name, logging.ERROR, "", 0, text, None, None) for text in messages]
        return [record.getMessage() for record in records if kept.filter(record)]

    lost, other = "Connection lost: refused", "Connection lost: reset"
    assert lines("kafka.net.connection", lost, lost, other, lost, other) == [lost, other]
    assert lines("kafkaesque", lost, lost) == [lost, lost], "only loggers that are known to repeat themselves"
    clock[0] = REPEATED_WITHIN_S["kafka"] + 1
    assert lines("kafka.net.connection", lost, lost) == [f"{lost} (2 more like this)"]
    for number in range(MOST_MESSAGES + 1):
        lines("kafka", str(number))
    assert lines("kafka", "0") == ["0"], "forgotten, because so many others came"
