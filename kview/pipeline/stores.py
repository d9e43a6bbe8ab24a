"""What Spark needs to read recordings from a store itself, as the workers of a cluster do."""

from collections.abc import Iterable, Mapping
from urllib.parse import parse_qs, unquote, urlsplit

from pyspark.sql import SparkSession

from kview.errors import BadUse, ErrorKind
from kview.pipeline.spark_internals import hadoop_version, knows_scheme
from kview.recording.places import Place

S3A = "s3a"

ENDPOINT_IN_ENVIRONMENT = "AWS_ENDPOINT_URL"
"""The variable that pyarrow takes the address of an S3 store from. Hadoop does not know it."""


def store_settings(places: Iterable[Place], environment: Mapping[str, str]) -> dict[str, str]:
    """Return Spark's settings for the buckets of some recordings: what their URLs and the environment say
    about keys, region and address."""
    settings = {}
    for place in places:
        if place.is_remote and place.spark_url.startswith(f"{S3A}://"):
            settings.update(_of_bucket(place, environment.get(ENDPOINT_IN_ENVIRONMENT, "")))
    return settings


def _of_bucket(place: Place, endpoint: str) -> dict[str, str]:
    prefix = f"spark.hadoop.fs.s3a.bucket.{urlsplit(place.spark_url).netloc}"
    credentials, has_user, _ = urlsplit(place.url).netloc.rpartition("@")
    options = {name: values[-1] for name, values in parse_qs(urlsplit(place.url).query).items()}
    if given := options.get("endpoint_override"):
        endpoint = given if "://" in given else f"{options.get('scheme', 'https')}://{given}"
    found: dict[str, str] = {}
    if has_user:
        key, _, secret = credentials.partition(":")
        found |= {f"{prefix}.access.key": unquote(key), f"{prefix}.secret.key": unquote(secret)}
    if endpoint:
        found |= {f"{prefix}.endpoint": endpoint, f"{prefix}.path.style.access": "true"}
    if region := options.get("region"):
        found[f"{prefix}.endpoint.region"] = region
    return found


def check_stores(spark: SparkSession, places: Iterable[Place]) -> None:
    """Raise BadUse if Spark has no jars for the store of a recording."""
    schemes = dict.fromkeys(urlsplit(place.spark_url).scheme for place in places if place.is_remote)
    for scheme in schemes:
        if not knows_scheme(spark, scheme):
            if scheme == S3A:
                raise BadUse(ErrorKind.SPARK_LACKS_S3, version=hadoop_version(spark))
            raise BadUse(ErrorKind.SPARK_LACKS_STORE, scheme=scheme)
