"""Properties files as they are written for Kafka's own tools, and the settings that kview reads from them."""

from pathlib import Path

from kview.config.client_properties import ClientProperties, read_client_properties
from kview.config.security import Security

MODULES = "org.apache.kafka.common.security"


def read(folder: Path, text: str, **environment: str) -> ClientProperties:
    """What kview reads from a file with this text."""
    path = folder / "client.properties"
    path.write_text(text, "latin-1")
    return read_client_properties(path, environment)


def security(folder: Path, text: str, **environment: str) -> Security:
    """The security settings in a file with this text."""
    return read(folder, text, **environment).security


def escaped(text: str) -> str:
    """A value as a properties file in Latin-1 writes it."""
    ascii_only = "".join(c if c.isascii() else f"\\u{ord(c):04x}" for c in text.replace("\\", "\\\\"))
    return ascii_only


def jaas(module: str, **options: str) -> str:
    """The line with sasl.jaas.config; `module` is the end of the class name."""
    quoted = {key: value.replace("\\", "\\\\").replace('"', '\\"') for key, value in options.items()}
    words = "".join(f' {key}="{value}"' for key, value in quoted.items())
    return "sasl.jaas.config=" + escaped(f"{MODULES}.{module} required{words};") + "\n"


def login(mechanism: str, user: str, password: str, protocol: str = "SASL_PLAINTEXT") -> str:
    """The lines for a login with a password."""
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    named = jaas(module, username=user, password=password)
    return f"security.protocol={protocol}\nsasl.mechanism={mechanism}\n{named}"


def trusting(path: Path) -> str:
    """The lines for a trust store in PEM."""
    return f"ssl.truststore.type=PEM\nssl.truststore.location={path}\n"


def token_client(url: str, client_id: str, client_secret: str) -> str:
    """The lines for OAUTHBEARER with client credentials."""
    options = jaas("oauthbearer.OAuthBearerLoginModule", clientId=client_id, clientSecret=client_secret)
    return (
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        f"sasl.oauthbearer.token.endpoint.url={url}\n{options}"
        "sasl.login.callback.handler.class="
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler\n"
    )
