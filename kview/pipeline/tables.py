"""Asks Spark for the figures of a report."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import DataFrame, SparkSession

from kview.model.report import Period
from kview.model.report_tables import TableName
from kview.pipeline import fact_figures, local_facts
from kview.pipeline.answer_rows import Rows
from kview.pipeline.answers import Answers
from kview.pipeline.figures import Figures, Filters
from kview.pipeline.local_figures import PartitionFigures, SecondFigures, fit
from kview.pipeline.periods import Share
from kview.pipeline.rollup_columns import rows_of

AT_ONCE = 3
"""Queries that run at the same time. Planning one takes as long as running it."""

MOST_PARTITIONS = 200
MOST_INCIDENTS = 1_000

MOST_STEPS = 1_440
"""The most steps of the table `throughput`: a day of minutes."""

MOST_THROUGHPUT_ROWS = 60_000

LEAST_STEPS = 60
"""With fewer steps of a minute than this, steps are shorter, so that a plot shows a course."""

SHORT_STEPS_S = (15, 5, 1)
STEPS_S = (60, 300, 900, 3_600, 21_600, 86_400)


def step_s_of(length_s: int) -> int:
    """Return the length of a step such that a period has LEAST_STEPS to MOST_STEPS, if possible."""
    if length_s < LEAST_STEPS * STEPS_S[0]:
        return next((step for step in SHORT_STEPS_S if length_s / step >= LEAST_STEPS), SHORT_STEPS_S[-1])
    return next((step for step in STEPS_S if length_s / step <= MOST_STEPS), STEPS_S[-1])


def period_of(
    spark: SparkSession,
    counted: Sequence[Share],
    filters: Filters,
    step_s: int,
    threshold_ms: int,
    price_per_gb: float,
    on_figures: Callable[[int, int], None],
) -> Period:
    """Return the tables about what counts of some recordings. Raises whatever Spark raises.

    `on_figures` is called with the number of figures that are known, and of all.
    """
    figures = Figures(spark, counted, filters)

    def of_facts(
        table: str, here: Callable[[], Rows], there: Callable[[], DataFrame | None]
    ) -> Callable[[], DataFrame | Rows | None]:
        rows = rows_of(counted, (table,))
        if not rows:
            return lambda: None
        return here if rows <= local_facts.MOST_ROWS else there

    pool = ThreadPoolExecutor(AT_ONCE, "kview-figures")
    if fit(counted):
        # These come first in the pool, so that what waits for them does not keep them from being made.
        of_seconds: Callable[[], SecondFigures | Figures] = pool.submit(
            SecondFigures, counted, filters
        ).result
        of_partitions: Callable[[], PartitionFigures | Figures] = pool.submit(
            PartitionFigures, counted, filters
        ).result
    else:
        of_seconds = of_partitions = lambda: figures
    queries: dict[str, Callable[[], DataFrame | Rows | None]] = {
        "lags": of_facts(
            "group_lags",
            lambda: local_facts.group_lags(counted, filters.groups, threshold_ms),
            lambda: fact_figures.group_lags(figures, filters.groups, threshold_ms),
        ),
        "findings": of_facts(
            "findings", lambda: local_facts.findings(counted), lambda: fact_figures.findings(figures)
        ),
        "incidents": of_facts(
            "incidents",
            lambda: local_facts.incidents(counted, MOST_INCIDENTS),
            lambda: fact_figures.incidents(figures, MOST_INCIDENTS),
        ),
        "elections": of_facts(
            "elections",
            lambda: local_facts.elections(counted, filters.topics),
            lambda: fact_figures.elections(figures, filters.topics),
        ),
        "sizes": of_facts(
            "sizes",
            lambda: local_facts.sizes(counted, filters.topics),
            lambda: fact_figures.sizes(figures, filters.topics),
        ),
        "sums": lambda: of_seconds().sums(),
        "percentiles": lambda: of_seconds().percentiles(),
        "hottest": lambda: of_seconds().hottest(),
        "partitions": lambda: of_partitions().partitions(MOST_PARTITIONS),
        "traffic": lambda: of_partitions().traffic(),
    }
    found: dict[str, Rows] = {}
    total = len(queries) + 1

    def answer(name: str) -> None:
        found[name] = _rows(queries[name]())
        on_figures(len(found), total)

    on_figures(0, total)
    with pool:
        for done in [pool.submit(answer, name) for name in queries]:
            done.result()
    answers = Answers(counted, found, step_s, price_per_gb)
    topics = answers.topics_by_records()
    steps = sum(-(-share.seconds.length_s // step_s) + 1 for share in counted)
    shown = topics[: max(1, MOST_THROUGHPUT_ROWS // steps)]
    answers.cut_off(TableName.THROUGHPUT, len(shown), len(topics))
    throughput = _rows(of_seconds().throughput(shown, step_s))
    figures.forget()
    on_figures(total, total)
    return Period(
        since_ms=min(share.seconds.from_s for share in counted) * 1000,
        until_ms=max(share.seconds.until_s for share in counted) * 1000,
        tables=answers.tables(throughput),
        notes=tuple(answers.notes),
    )


def _rows(answer: DataFrame | Rows | None) -> Rows:
    if answer is None or isinstance(answer, list):
        return answer or []
    rows: Rows = answer.toArrow().to_pylist()
    return rows
