"""Benchmarks. `kview.tui` comes before Textual, because it sets how often Textual paints."""

import kview.tui  # noqa: F401
