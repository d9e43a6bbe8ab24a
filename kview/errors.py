"""The errors that a user can meet, as facts: a kind and its values.

    KviewError                 exit code 1
    ├── BadUse                 2: a flag, file or argument is wrong
    ├── ClusterUnreachable     3: no broker of the cluster could be asked
    └── CheckUnfinished        70: a check has no result, or could not write it

`kview.language.errors` turns an error into a sentence that says what was wrong and what to do. The command
line prints that sentence without a traceback. Any other exception is a bug and keeps its traceback.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar, Self, TypeAlias

from msgspec import Struct

ErrorValue: TypeAlias = str | int | float | tuple[str | tuple[str, str], ...]
"""A value of an error: a name, a number, a list of names, or a list of addresses, each with the value of the
FailureKind of its failure."""


class ErrorKind(StrEnum):
    """What went wrong.

    `kview.language.errors` has a sentence for each kind; its placeholders are the error's values.
    """

    # -- recordings
    NOT_A_RECORDING = "not a recording"
    NOT_A_KEPT_RECORDING = "not a kept recording"
    NO_MANIFEST = "no manifest"
    RECORDING_FORMAT = "recording format"
    FILE_DAMAGED = "file damaged"
    FILE_MISSING = "file missing"
    NOTHING_RECORDED = "nothing recorded"
    MOMENT_FORGOTTEN = "moment forgotten"
    NOT_A_RECORDING_NAME = "not a recording name"
    RECORDING_NAME_TAKEN = "recording name taken"
    FOLDER_HAS_RECORDING = "folder has recording"
    FOLDER_NOT_MADE = "folder not made"
    FOLDER_NOT_WRITABLE = "folder not writable"
    RECORDING_STOPPED = "recording stopped"
    RECORDING_FAILED = "recording failed"
    KEEPING_FAILED = "keeping failed"
    UPLOAD_UNFINISHED = "upload unfinished"
    NOT_AN_UPLOAD_TARGET = "not an upload target"
    UPLOAD_TARGET_UNREACHABLE = "upload target unreachable"
    NOT_A_STORE = "not a store"
    STORE_NEEDS_HADOOP = "store needs hadoop"
    STORE_UNREACHABLE = "store unreachable"

    # -- the simulated cluster and its world
    MORE_RACKS_THAN_BROKERS = "more racks than brokers"
    TOPIC_TWICE = "topic twice"
    TOO_MANY_PARTITIONS = "too many partitions"
    TOPIC_INCOMPLETE = "topic incomplete"
    TOPIC_NAME_WRONG = "topic name wrong"
    TOPIC_NAME_INTERNAL = "topic name internal"
    TOPIC_PARTITIONS_WRONG = "topic partitions wrong"
    TOPIC_REPLICAS_WRONG = "topic replicas wrong"
    TOPIC_REPLICAS_TOO_MANY = "topic replicas too many"
    NOT_A_SETTING = "not a setting"
    SETTING_MISSPELT = "setting misspelt"
    SETTING_UNKNOWN = "setting unknown"
    SETTING_NOT_A_NUMBER = "setting not a number"
    SETTING_OUT_OF_RANGE = "setting out of range"
    SETTING_NOT_A_CHOICE = "setting not a choice"
    LOG_DIRS_WRONG = "log dirs wrong"
    REPLICAS_WRONG = "replicas wrong"
    WORLD_WRONG = "world wrong"
    NODES_MISSING = "nodes missing"
    NODE_ID_WRONG = "node id wrong"
    NAME_TWICE = "name twice"
    CLIENT_WITHOUT_TOPIC = "client without topic"
    VALUE_IMPOSSIBLE = "value impossible"
    NO_MODEL = "no model"
    NOTHING_TO_COPY = "nothing to copy"
    TOO_MANY_BROKERS = "too many brokers"
    TOPIC_PARTLY_KNOWN = "topic partly known"
    NOTHING_TO_LOSE = "nothing to lose"
    TOPIC_WITHOUT_PARTITIONS = "topic without partitions"
    RECORDS_TOO_SMALL = "records too small"
    PORTS_OUT_OF_RANGE = "ports out of range"
    PORT_IN_USE = "port in use"
    PORT_NOT_ALLOWED = "port not allowed"
    LISTEN_TWICE = "listen twice"
    LISTEN_ONCE = "listen once"
    LISTEN_HOST_UNKNOWN = "listen host unknown"
    ADVERTISE_MISSING = "advertise missing"
    ADVERTISED_TOO_FEW = "advertised too few"
    ADVERTISED_TWICE = "advertised twice"
    NOT_ADVERTISABLE = "not advertisable"
    DATA_WITH_TRAFFIC = "data with traffic"
    DATA_NOT_EMPTY = "data not empty"
    DATA_IN_USE = "data in use"
    DATA_FORMAT = "data format"
    DATA_DAMAGED = "data damaged"
    DATA_OF_OTHER_BROKERS = "data of other brokers"
    DATA_OF_NEWER_RELEASE = "data of a newer release"
    DATA_NOT_OPENED = "data not opened"
    DATA_NOT_SAVED = "data not saved"
    HTTP_NOT_SERVED = "http not served"
    NOT_A_TOKEN = "not a token"
    NOT_A_CONTROL_SOCKET = "not a control socket"
    CLUSTER_NOT_READY = "cluster not ready"
    CLUSTER_NOT_STARTED = "cluster not started"
    CLUSTER_STARTING = "cluster starting"
    CLUSTER_ENDED = "cluster ended"
    CLUSTER_KILLED = "cluster killed"
    CLUSTER_EXITED = "cluster exited"
    CLUSTER_SILENT = "cluster silent"
    CLUSTER_BUSY = "cluster busy"
    CLUSTER_GARBLED = "cluster garbled"

    # -- faults
    COMMAND_MISSPELT = "command misspelt"
    COMMAND_UNKNOWN = "command unknown"
    COMMAND_INCOMPLETE = "command incomplete"
    LINE_TOO_LONG = "line too long"
    NOT_A_NODE_ID = "not a node id"
    NOT_A_LATENCY = "not a latency"
    API_UNKNOWN = "API unknown"
    API_WITHOUT_TOPICS = "API without topics"
    API_WITHOUT_ERRORS = "API without errors"
    NOT_AN_ERROR = "not an error"
    NOT_A_WHERE = "not a where"
    NOT_A_MOMENT = "not a moment"
    TOO_MANY_RULES = "too many rules"
    NOT_A_FOLDER = "not a folder"
    NOT_FILMED = "not filmed"
    NO_CLIENTS_HERE = "no clients here"
    NOT_A_TIME_TO_PASS = "not a time to pass"
    NODE_UNKNOWN = "node unknown"
    NODE_WITHOUT_FAULT = "node without fault"
    NODE_DOWN = "node down"
    NODE_FROZEN = "node frozen"
    NODE_ISOLATED = "node isolated"
    NODES_CUT = "nodes cut"
    NODES_CONNECTED = "nodes connected"
    SAME_NODE = "same node"
    NO_CUT = "no cut"
    DISKS_WORK = "disks work"
    NO_DISK_LEFT = "no disk left"
    RACK_UNKNOWN = "rack unknown"
    RACK_DOWN = "rack down"
    NO_ACTIVE_CONTROLLER = "no active controller"

    # -- adjustments
    PRODUCER_UNKNOWN = "producer unknown"
    GROUP_UNKNOWN = "group unknown"
    BROKER_UNKNOWN = "broker unknown"
    GROUP_WITHOUT_MEMBERS = "group without members"
    AMOUNT_OUT_OF_RANGE = "amount out of range"
    NOT_AN_AMOUNT = "not an amount"
    ADJUSTMENT_REFUSED = "adjustment refused"
    NO_CONTROLLER_TO_CHANGE = "no controller to change it"

    # -- lessons
    LESSON_UNKNOWN = "lesson unknown"
    LESSON_MISSPELT = "lesson misspelt"
    LESSON_GARBLED = "lesson garbled"
    LESSON_KEY_MISSPELT = "lesson key misspelt"
    LESSON_KEY_UNKNOWN = "lesson key unknown"
    LESSON_WRONG = "lesson wrong"

    # -- Spark
    NO_JAVA = "no java"
    NO_PYSPARK = "no pyspark"
    JAVA_NOT_STARTED = "java not started"
    JAVA_NOT_READY = "java not ready"
    JAVA_KILLED = "java killed"
    JAVA_OUT_OF_MEMORY = "java out of memory"
    JAVA_ENDED = "java ended"
    SPARK_FAILED = "spark failed"
    SPARK_DISK_FULL = "spark disk full"
    SPARK_NO_FOLDER = "spark no folder"
    SPARK_NOT_STARTED = "spark not started"
    SPARK_GARBLED = "spark garbled"
    SPARK_KILLED = "spark killed"
    SPARK_ENDED = "spark ended"
    SPARK_MASTER_UNREACHABLE = "spark master unreachable"
    SPARK_MASTER_WRONG = "spark master wrong"
    SPARK_NO_EXECUTOR = "spark no executor"
    SPARK_SETTING_WRONG = "spark setting wrong"
    SPARK_PACKAGES_MISSING = "spark packages missing"
    WORKERS_LACK_MODULES = "workers lack modules"
    WORKERS_LACK_PYTHON = "workers lack python"
    WORKERS_OTHER_PYTHON = "workers other python"
    REPORT_NEEDS_CACHE = "report needs cache"
    REPORT_OUT_OF_MEMORY = "report out of memory"
    REPORT_CANCELLED = "report cancelled"
    REPORT_NOTHING_KNOWN = "report nothing known"
    REPORT_PERIOD_BACKWARDS = "report period backwards"
    REPORT_PERIOD_TOO_LATE = "report period too late"
    REPORT_PERIOD_TOO_EARLY = "report period too early"
    REPORT_NEEDS_FOLDER = "report needs folder"
    REPORT_NEEDS_FILE = "report needs file"
    REPORT_NOT_A_FOLDER = "report not a folder"
    REPORT_NOT_A_FILE = "report not a file"
    REPORT_NOT_WRITABLE = "report not writable"
    REPORT_NOT_WRITTEN = "report not written"
    REPORT_NO_RECORDING = "report no recording"
    REPORT_NOT_STARTED = "report not started"
    REPORT_KILLED = "report killed"
    REPORT_ENDED = "report ended"
    REPORT_FAILED = "report failed"

    # -- reaching a cluster
    CONNECTION_REFUSED = "connection refused"
    NO_CONNECTION = "no connection"
    NO_ANSWER = "no answer"
    UNKNOWN_HOST = "unknown host"
    HTTP_SERVER = "http server"
    TLS_LISTENER = "tls listener"
    CLOSES_CONNECTIONS = "closes connections"
    NOT_A_BROKER = "not a broker"
    PLAINTEXT_LISTENER = "plaintext listener"
    CONTROLLER_LISTENER = "controller listener"
    CERTIFICATE_UNTRUSTED = "certificate untrusted"
    CERTIFICATE_FOR_ANOTHER_NAME = "certificate for another name"
    CERTIFICATE_EXPIRED = "certificate expired"
    CERTIFICATE_NOT_ACCEPTED = "certificate not accepted"
    CLIENT_CERTIFICATE_MISSING = "client certificate missing"
    CLIENT_CERTIFICATE_REFUSED = "client certificate refused"
    NO_COMMON_TLS = "no common tls"
    SASL_LISTENER = "sasl listener"
    LISTENER_WITHOUT_SASL = "listener without sasl"
    MECHANISM_NOT_OFFERED = "mechanism not offered"
    LOGIN_REFUSED = "login refused"
    TOKEN_REFUSED = "token refused"
    NO_TOKEN = "no token"
    TOKEN_CLIENT_REFUSED = "token client refused"
    LOGIN_FAILED = "login failed"
    NO_BOOTSTRAP_SERVER = "no bootstrap server"
    """Each bootstrap server failed in its own way."""
    ADVERTISED_UNREACHABLE = "advertised unreachable"
    """A bootstrap server answers, but no address that the cluster advertises does."""

    # -- security settings
    VARIABLE_NOT_SET = "variable not set"
    FILE_NOT_READ = "file not read"
    PROPERTY_MISSING = "property missing"
    PROPERTY_WRONG = "property wrong"
    JAAS_WRONG = "jaas wrong"
    LOGIN_MODULE_WRONG = "login module wrong"
    LOGIN_INCOMPLETE = "login incomplete"
    PACKAGE_MISSING = "package missing"
    STORE_IS_JKS = "store is jks"
    NOT_PROPERTIES = "not properties"
    STORE_UNKNOWN = "store unknown"
    STORE_NOT_OPENED = "store not opened"
    STORE_WITHOUT_CERTIFICATE = "store without certificate"
    STORE_WITHOUT_KEY = "store without key"
    AUTHORITIES_NOT_READ = "authorities not read"
    KEY_NOT_READ = "key not read"
    KEY_OF_ANOTHER_CERTIFICATE = "key of another certificate"

    # -- profiles
    PROFILE_WRONG = "profile wrong"
    HOOK_FAILED = "hook failed"
    CONFIG_WRONG = "config wrong"
    CONFIG_KEY_UNKNOWN = "config key unknown"
    CONFIG_KEY_OUTSIDE = "config key outside"
    CONFIG_TABLE_UNKNOWN = "config table unknown"
    CONFIG_KEY_MISSPELT = "config key misspelt"
    NO_PROFILES = "no profiles"
    PROFILE_UNKNOWN = "profile unknown"
    PROFILE_NAME_WRONG = "profile name wrong"
    MAP_WRONG = "map wrong"

    # -- the key file
    KEY_FILE_GARBLED = "key file garbled"
    KEY_LINE_WRONG = "key line wrong"
    KEY_FILE_HEADING = "key file heading"
    KEY_ACTION_UNKNOWN = "key action unknown"
    KEY_ACTION_MISSPELT = "key action misspelt"
    KEY_UNKNOWN = "key unknown"
    KEYS_CONFLICT = "keys conflict"

    # -- choices kept for a cluster
    CHOICES_DAMAGED = "choices damaged"
    CHOICES_NOT_KEPT = "choices not kept"

    # -- flags and arguments
    SERVER_EMPTY = "server empty"
    SERVER_IS_URL = "server is url"
    SERVER_WITHOUT_PORT = "server without port"
    SERVER_WITHOUT_BRACKETS = "server without brackets"
    SERVER_WITHOUT_HOST = "server without host"
    SERVER_PORT_WRONG = "server port wrong"
    NOT_A_TIME = "not a time"

    # -- metrics
    METRICS_PORT_IN_USE = "metrics port in use"
    METRICS_NOT_SERVED = "metrics not served"

    # -- output
    RECORDS_SWITCHED_OFF = "records switched off"
    TOPIC_NOT_THERE = "topic not there"
    RECORDS_NOT_READ = "records not read"
    FILTER_MASKED = "filter masked"
    OUTPUT_FAILED = "output failed"
    FILE_NOT_WRITTEN = "file not written"
    DISPLAY_WRONG = "display wrong"
    DISPLAY_NOT_KEPT = "display not kept"


class ErrorFacts(Struct, frozen=True, tag="error"):
    """An error as data, to compare it or to send it to another process. `error_of` converts it back."""

    kind: ErrorKind
    values: Mapping[str, ErrorValue]
    exit_code: int = 1


class KviewError(Exception):
    """An error that the user can do something about: a kind, and values by name."""

    exit_code: ClassVar[int] = 1

    def __init__(self, kind: ErrorKind, **values: ErrorValue) -> None:
        super().__init__(kind, values)
        self.kind = kind
        self.values = values

    @classmethod
    def of(cls, error: "KviewError") -> Self:
        """Return an error of this class, and so with its exit code, that has the kind and values of
        `error`."""
        return cls(error.kind, **error.values)

    @property
    def facts(self) -> ErrorFacts:
        """The error as data."""
        return ErrorFacts(self.kind, self.values, self.exit_code)

    def __str__(self) -> str:
        return " ".join([self.kind, *(f"{name}={value!r}" for name, value in self.values.items())])


class BadUse(KviewError):
    """Wrong input: a flag, an argument, a configuration file."""

    exit_code: ClassVar[int] = 2


class ClusterUnreachable(KviewError):
    """No broker of the cluster could be reached before there was any data."""

    exit_code: ClassVar[int] = 3


class CheckUnfinished(KviewError):
    """A check that has no result, or could not write it. It is not 1, which says that there are findings."""

    exit_code: ClassVar[int] = 70


def error_of(facts: ErrorFacts) -> KviewError:
    """Return the error that `facts` describes, of the class with that exit code."""
    classes: tuple[type[KviewError], ...] = (BadUse, ClusterUnreachable, CheckUnfinished)
    made = next((found for found in classes if found.exit_code == facts.exit_code), KviewError)
    return made(facts.kind, **facts.values)
