"""A Java client's properties file, as it is written for Kafka's own tools."""

import traceback
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates as pkcs12

from kview.config import client_properties
from kview.config.client_properties import LoginModule, NotJaas, parse_jaas
from kview.config.properties import parse_properties
from kview.config.secret import Secret
from kview.config.security import PLAINTEXT, Mechanism, OAuth, Protocol
from kview.errors import BadUse
from kview.language.errors import sentence
from tests.errors import raises_saying
from tests.secured.certificates import Authority, encryption
from tests.secured.settings import login, read, security, token_client, trusting


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=1", {"a": "1"}),
        ("a = 1 ", {"a": "1 "}),
        ("a:1\nb 2", {"a": "1", "b": "2"}),
        ("# no\n! no\n\n  a=1", {"a": "1"}),
        ("a=1,\\\n   2\\\n\t3", {"a": "1,23"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=\\u00e4\\t\\:\\=\\q", {"a": "ä\t:=q"}),
        ("a\\ b=1\r\nc\\==2\rd", {"a b": "1", "c=": "2", "d": ""}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b=c:d", {"a": "b=c:d"}),
    ],
)
def test_properties_are_read_as_java_reads_them(text: str, values: dict[str, str]) -> None:
    assert parse_properties(text) == values


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("a.b.M required;", {}),
        ('M required username="x" password="y";', {"username": "x", "password": "y"}),
        ("M REQUIRED username=x password='y z' ;", {"username": "x", "password": "y z"}),
        ('M required password="a\\"b\\\\c;=";', {"password": 'a"b\\c;='}),
    ],
)
def test_a_login_module_is_read_as_java_reads_it(text: str, options: dict[str, str]) -> None:
    assert parse_jaas(text) == LoginModule("M", options)


@pytest.mark.parametrize(
    "text", ["", "M", "M required", "M username=x;", 'M required username="x;', "M required a b;"]
)
def test_other_texts_are_not_login_modules(text: str) -> None:
    with pytest.raises(NotJaas):
        parse_jaas(text)


def test_without_any_setting_a_connection_is_plaintext(tmp_path: Path) -> None:
    assert read(tmp_path, "").security == PLAINTEXT


def test_a_login_with_a_password(tmp_path: Path) -> None:
    hard = 'p"w\\d =:#ä'
    found = security(tmp_path, login("SCRAM-SHA-256", "bob", hard))
    assert found.protocol is Protocol.SASL_PLAINTEXT
    assert found.tls is None
    assert found.login is not None
    assert (found.login.mechanism, found.login.user) == (Mechanism.SCRAM_SHA_256, "bob")
    assert found.login.password.reveal() == hard


def test_client_credentials(tmp_path: Path) -> None:
    found = security(tmp_path, token_client("https://idp/token", "me", "shh"))
    assert found.login is not None
    assert found.login.oauth == OAuth("https://idp/token", "me", Secret("shh"))
    by_keys = security(
        tmp_path,
        "security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\n"
        "sasl.oauthbearer.token.endpoint.url=https://idp/token\n"
        "sasl.oauthbearer.client.credentials.client.id=me\n"
        "sasl.oauthbearer.client.credentials.client.secret=shh\nsasl.oauthbearer.scope=kafka\n",
    )
    assert by_keys.login is not None
    assert by_keys.login.oauth == OAuth("https://idp/token", "me", Secret("shh"), "kafka")


def test_secrets_come_from_variables_and_files(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("from a file\n")
    (tmp_path / "more.properties").write_text("key = from a properties file")
    for reference, expected in (
        ("${env:PASSWORD}", "from a variable"),
        (f"${{file:{tmp_path / 'password'}}}", "from a file"),
        (f"${{file:{tmp_path / 'more.properties'}:key}}", "from a properties file"),
        ("${other:x}", "${other:x}"),
    ):
        text = login("PLAIN", "bob", reference)
        found = security(tmp_path, text, PASSWORD="from a variable")
        assert found.login is not None and found.login.password.reveal() == expected


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("${env:MISSING}", "the environment variable MISSING is not set"),
        ("${file:/nowhere/at-all}", "/nowhere/at-all cannot be read (No such file or directory)"),
        (f"${{file:/{300 * 'x'}:key}}", "x cannot be read (File name too long)"),
        ("${file:/etc/hostname:key}", "/etc/hostname has no key: check the key in ${file:PATH:KEY}"),
    ],
)
def test_a_secret_that_is_not_there(tmp_path: Path, reference: str, said: str) -> None:
    with raises_saying(BadUse, said.replace("$", r"\$").replace("(", r"\(").replace(")", r"\)")):
        security(tmp_path, login("PLAIN", "bob", reference))


def test_unknown_keys_are_named_and_nothing_else(tmp_path: Path) -> None:
    text = login("PLAIN", "bob", "pw") + "ssl.protocol=TLSv1.3\nclient.id=me\nsasl.kerberos.service.name=k\n"
    text += "sasl.login.callback.handler.class=com.example.Own\nssl.truststore.type=PEM\n"
    assert read(tmp_path, text).unused == ("client.id", "sasl.login.callback.handler.class", "ssl.protocol")
    assert read(tmp_path, token_client("http://x", "a", "b")).unused == ()


WRONG = {
    "security.protocol=TLS\n": "security.protocol in .* has a value that kview does not support: give one of",
    "security.protocol=SASL_SSL\nsasl.mechanism=LOGIN\n": "sasl.mechanism in .*: give one of PLAIN, SCRAM-",
    "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n": "has no username in sasl.jaas.config: add it",
    "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config=x y\n": "is not a login module",
    "security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\n": "has no sasl.oauthbearer.token.endpoint.url",
    "security.protocol=SSL\nssl.truststore.location=/nowhere.pem\n": "/nowhere.pem cannot be read",
    "security.protocol=SASL_SSL\n": "GSSAPI needs the Python package gssapi, .* pip install gssapi",
    "security.protocol=SASL_SSL\nsasl.mechanism=AWS_MSK_IAM\n": "AWS_MSK_IAM needs .* botocore",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_in_a_file_is_named(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Other packages may have brought them.
    monkeypatch.setattr(client_properties, "find_spec", lambda name: None)
    with raises_saying(BadUse, WRONG[text]):
        read(tmp_path, text)


def test_the_module_of_another_mechanism(tmp_path: Path) -> None:
    text = login("SCRAM-SHA-256", "bob", "pw").replace("SCRAM-SHA-256", "PLAIN")
    with raises_saying(BadUse, "ScramLoginModule, which is not for sasl.mechanism=PLAIN: use PlainLogin"):
        read(tmp_path, text)


def test_stores_are_told_apart_by_their_contents(tmp_path: Path) -> None:
    issued = Authority().issue("alice")
    store = tmp_path / "keys.pem"
    store.write_bytes(pkcs12(b"alice", issued.key, issued.certificate, [issued.authority], encryption("pw")))
    lines = f"security.protocol=SSL\nssl.keystore.type=JKS\nssl.keystore.location={store}\n"
    tls = security(tmp_path, lines + "ssl.keystore.password=pw\n").tls
    assert tls is not None and tls.identity is not None
    assert tls.identity.chain == issued.chain_pem
    for password in ("", "ssl.keystore.password=wrong\n"):
        with raises_saying(BadUse, "keys.pem cannot be opened with the password given for it"):
            security(tmp_path, lines + password)
    jks = tmp_path / "trust.p12"
    jks.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    with raises_saying(
        BadUse,
        "trust.p12 is a JKS store, which kview cannot read: convert it: keytool -importkeystore -srckeystore"
        " .*trust.p12 -destkeystore .* -deststoretype PKCS12",
    ):
        security(tmp_path, "security.protocol=SSL\n" + trusting(jks))
    jks.write_bytes(b"hello")
    with raises_saying(BadUse, "is neither PEM nor PKCS12"):
        security(tmp_path, "security.protocol=SSL\n" + trusting(jks))
    jks.write_text(issued.key_pem())
    with raises_saying(BadUse, "has no certificate"):
        security(tmp_path, "security.protocol=SSL\n" + trusting(jks))


SECRET = "xyzzy-1f3a"


def test_a_secret_is_shown_nowhere(tmp_path: Path) -> None:
    found = read(tmp_path, login("PLAIN", "bob", SECRET))
    assert found.security.login is not None
    password = found.security.login.password
    for shown in (
        repr(found),
        str(password),
        f"{password}",
        f"{password:>9}",
        repr([password]),
    ):
        assert SECRET not in shown
        assert "***" in shown
    assert SECRET in password.reveal()


@pytest.mark.parametrize(
    "text",
    [
        login("PLAIN", "", SECRET),
        login("PLAIN", "bob", SECRET).replace(";", ""),
        login("PLAIN", "bob", SECRET).replace("=PLAIN", "=SCRAM-SHA-256"),
        token_client("", "me", SECRET),
    ],
)
def test_no_error_quotes_a_secret(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadUse) as caught:
        read(tmp_path, text)
    assert SECRET not in sentence(caught.value)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
