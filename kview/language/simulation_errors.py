"""What is wrong with a simulated cluster, a fault or a lesson, as sentences."""

from collections.abc import Mapping

from kview.errors import ErrorKind
from kview.language.error_words import RESTARTED, SEE_LOG, ErrorWords

_TOPIC_LETTERS = "use letters, digits, '.', '_' and '-', at most {longest} of them"

WORDS: Mapping[ErrorKind, ErrorWords] = {
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
        "the simulated cluster could not start (exit code {code})", SEE_LOG
    ),
    ErrorKind.CLUSTER_STARTING: ErrorWords(
        "the simulated cluster is still starting", "try again in a moment"
    ),
    ErrorKind.CLUSTER_ENDED: ErrorWords("the simulated cluster exited", RESTARTED),
    ErrorKind.CLUSTER_KILLED: ErrorWords("the simulated cluster was killed ({signal})", RESTARTED),
    ErrorKind.CLUSTER_EXITED: ErrorWords(
        "the simulated cluster exited unexpectedly (exit code {code})", RESTARTED
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
}
