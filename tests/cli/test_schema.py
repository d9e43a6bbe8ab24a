"""`kview schema`."""

import json
import subprocess
import sys

from kview.plain.schema import json_schema
from tests.cli.commands import ROOT, run_kview


def test_it_prints_the_schema_and_nothing_else() -> None:
    done = run_kview("schema")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == json_schema()


def test_it_loads_neither_spark_nor_arrow_nor_the_screen() -> None:
    script = (
        "import sys\n"
        "from kview.cli.group import kview\n"
        "kview(['schema'], standalone_mode=False)\n"
        "sys.stderr.write(' '.join(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, encoding="utf-8", check=True, cwd=ROOT
    )
    loaded = done.stderr.split()
    assert "msgspec" in loaded
    assert not {"pyspark", "pyarrow", "textual"} & set(loaded)
