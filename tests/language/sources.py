"""kview's modules as syntax trees, for tests that look for what its code says."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import kview

ROOT = Path(kview.__file__).parent


@cache
def texts() -> dict[str, str]:
    """The text of every module, by its path below kview/."""
    return {str(path.relative_to(ROOT)): path.read_text() for path in sorted(ROOT.rglob("*.py"))}


def trees(pattern: str) -> Iterator[tuple[str, ast.Module]]:
    """The path and the syntax tree of every module whose text has a match: parsing all of them takes seconds,
    in each process that collects tests."""
    for name, text in texts().items():
        if re.search(pattern, text):
            yield name, _tree(name)


@cache
def _tree(name: str) -> ast.Module:
    return ast.parse(texts()[name])
