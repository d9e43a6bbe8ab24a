"""What Java learns beside the start of the live job."""

from pyspark.sql import SparkSession

from kview.pipeline.ahead import learn, rehearse


def test_this_spark_has_all_that_is_learnt_ahead(spark: SparkSession) -> None:
    # Where something is missing the job starts all the same, but late: nothing else would tell.
    learn()
    rehearse(spark)
