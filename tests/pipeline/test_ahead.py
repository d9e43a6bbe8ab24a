"""What Java loads and compiles ahead while the live job starts."""

from pyspark.sql import SparkSession

from kview.pipeline.ahead import learn, rehearse


def test_this_spark_has_all_that_is_learnt_ahead(spark: SparkSession) -> None:
    # If something is missing, the job still starts, only later. No other test would notice.
    learn()
    rehearse(spark)
