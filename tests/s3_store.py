"""A small S3-compatible store with an empty bucket."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from pyarrow import fs

KEY, SECRET = "AKIAOFATEST", "sesame/open"
BUCKET = "recordings"


@contextmanager
def s3_store() -> Iterator[str]:
    """Run a store, and yield its address, HOST:PORT."""
    from moto.server import ThreadedMotoServer  # half a second for each process that collects tests

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    system(f"{host}:{port}").create_dir(BUCKET)
    yield f"{host}:{port}"
    server.stop()


def system(store: str) -> fs.S3FileSystem:
    return fs.S3FileSystem(
        access_key=KEY,
        secret_key=SECRET,
        region="eu-west-1",
        scheme="http",
        endpoint_override=store,
        allow_bucket_creation=True,
    )
