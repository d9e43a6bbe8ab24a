"""What is wrong with a recording, or with the folder for one, as sentences."""

from collections.abc import Mapping

from kview.errors import ErrorKind
from kview.language.error_words import SEE_LOG, ErrorWords

_ANOTHER_FOLDER = "record to another folder"

WORDS: Mapping[ErrorKind, ErrorWords] = {
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
        "recording has stopped because of a bug in kview ({bug})", SEE_LOG
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
}
