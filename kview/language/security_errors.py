"""The words for errors of TLS, logins, security settings and profiles."""

from kview.errors import ErrorKind
from kview.language.error_words import SEE_LOG, ErrorWords

_GIVE_FILE = "give it as --command-config FILE"

WORDS: dict[ErrorKind, ErrorWords] = {
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
        "the certificate of {where} is not valid", SEE_LOG, "the certificates of {where} are not valid"
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
    ErrorKind.CONFIG_KEY_UNKNOWN: ErrorWords(
        "{file} has the key {key!r}, which kview does not know", "use one of {known}"
    ),
    ErrorKind.CONFIG_KEY_OUTSIDE: ErrorWords(
        "{file} has the key {key!r} outside a profile", "write it under the [clusters.NAME] that it is for"
    ),
    ErrorKind.CONFIG_TABLE_UNKNOWN: ErrorWords(
        "{file} has the key {key!r}, which kview does not know",
        "at the top of this file there can only be profiles: [clusters.NAME]",
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
}
