"""`kview connect PROFILE` and `kview config`: what is read, and what is shown of it."""

from pathlib import Path
from typing import Any

import click
import pytest

from kview.cli.connect import connect, of_profile
from kview.cli.display_options import display_of
from kview.cli.targets import target_of
from kview.config.profiles import read_config
from kview.config.schema_registry import SchemaRegistry
from tests.cli.commands import run_here
from tests.observe.fake_broker import FakeBroker
from tests.secured.settings import login, token_client
from tests.served import Served

PASSWORD = "xyzzy-1f3a"

PROD = """
[clusters.prod]
servers = "{servers}"
command-config = "prod.properties"
map = ["kafka:9092=localhost:9092"]
interval = "2s"

[clusters.stage]
servers = "{servers}"
[clusters.stage.properties]
security.protocol = "PLAINTEXT"
client.id = "me"
"""

CONNECT = '[clusters.a]\nservers = "a:1"\nconnect-url = "https://c:8083"\n'

ON_FINDING = '[clusters.a]\nservers = "a:1"\non-finding = %s\n'

REGISTRY = '[clusters.a]\nservers = "a:1"\n'
REGISTRY_URL = 'schema-registry-url = "https://r:8081/api"\n'

PROPERTIES = """
security.protocol=SASL_PLAINTEXT
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="bob" \\
  password="${env:PW}";
"""


class Home:
    """A configuration folder."""

    def __init__(self, folder: Path) -> None:
        self.config = folder / "kview" / "config.toml"
        self.config.parent.mkdir()
        self.environment = {"XDG_CONFIG_HOME": str(folder), "PW": PASSWORD}

    def kview(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, standard output and standard error of a command."""
        done = run_here(*arguments, environment=self.environment)
        assert PASSWORD not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    (home.config.parent / "prod.properties").write_text(PROPERTIES)
    return home


def test_without_an_argument_the_profiles_are_listed(home: Home) -> None:
    code, out, error = home.kview("connect")
    assert (code, out) == (2, "")
    assert f"there are no profiles in {home.config}: give HOST:PORT, or add a profile" in error
    home.config.write_text(PROD.format(servers="a:9092,b:9092"))
    assert home.kview("connect") == (0, "prod   a:9092,b:9092\nstage  a:9092,b:9092\n", "")


def test_a_profile_is_connected_to_and_its_unused_keys_are_named(home: Home) -> None:
    with FakeBroker() as broker:
        home.config.write_text(PROD.format(servers=broker.address))
        code, out, error = home.kview("connect", "stage", "--once", "--interval", "100ms")
    assert code == 0
    assert "  stage  1 broker" in out and str(broker.address) not in out.splitlines()[0]
    assert error == f"kview: kview does not use these settings in {home.config}: client.id\n"


def test_a_command_config_is_used_and_the_flag_counts_more(home: Home) -> None:
    with FakeBroker() as broker:
        home.config.write_text(PROD.format(servers=broker.address))
        code, _, error = home.kview("connect", "prod", "--once")
        assert code == 3
        empty = home.config.parent / "empty.properties"
        empty.write_text("")
        code, out, _ = home.kview("connect", "prod", "--once", "--command-config", str(empty))
        assert (code, "  prod  1 broker" in out) == (0, True)
    assert f"{broker.address}" in error


def test_config_says_which_files_are_read_and_what_is_in_force(home: Home) -> None:
    home.config.write_text(PROD.format(servers="a:9092"))
    code, out, error = home.kview("config")
    assert (code, error) == (0, "")
    rows = dict(line.strip().split(None, 1) for line in out.splitlines() if line.strip() and "[" not in line)
    assert rows["config.toml"] == str(home.config)
    assert (rows["interval"], rows["username"], rows["password"]) == ("2s", "bob", "***")
    assert rows["map"] == "kafka:9092=localhost:9092"
    assert "not used              client.id" in out
    code, one, _ = home.kview("config", "prod")
    assert code == 0 and "sasl.mechanism        PLAIN" in one and "client.id" not in one


def test_what_is_called_for_findings_is_shown_without_secrets_and_can_be_tried(home: Home) -> None:
    told = home.config.parent / "told"
    home.config.write_text(
        '[clusters.a]\nservers = "a:1"\non-finding = "http://127.0.0.1:1/${env:PW}"\non-finding-hold = "2m"\n'
        f'[clusters.b]\nservers = "b:1"\non-finding = ["sh", "-c", \'cat > "$0"\', "{told}", "${{env:PW}}"]\n'
        '[clusters.c]\nservers = "c:1"\n'
    )
    _, out, _ = home.kview("config", "a")
    rows = dict(line.split(None, 1) for line in out.splitlines())
    assert rows["on-finding"] == "http://127.0.0.1:1/…"
    assert (rows["on-finding-severity"], rows["on-finding-hold"]) == ("warn and risk", "2m")
    code, out, error = home.kview("config", "a", "--try-on-finding")
    assert (code, out) == (2, "")
    assert error.startswith("kview: http://127.0.0.1:1/… was called, and failed (Connection refused)")
    tried = "sh was called: b: a test of on-finding; nothing has happened\n"
    assert home.kview("config", "b", "--try-on-finding")[:2] == (0, tried)
    assert '"cluster":"b"' in told.read_text() and '"change":"test"' in told.read_text()
    for arguments in (["c"], []):
        code, _, error = home.kview("config", *arguments, "--try-on-finding")
        assert code == 2 and "give a profile that has on-finding" in error
    code, out, _ = home.kview("config", "--help-on-finding")
    assert code == 0 and "events.pagerduty.com" in out and "SLACK" in out


def test_a_profile_that_cannot_be_used_does_not_hide_the_others(home: Home) -> None:
    home.config.write_text(PROD.format(servers="a:9092"))
    del home.environment["PW"]
    code, out, _ = home.kview("config")
    assert code == 0
    assert "the environment variable PW is not set" in out
    assert "[clusters.stage]" in out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[clusters.a]\nservers="a:1"\nintervall="1s"\n', "'intervall', which kview does not know: did"),
        ('[clusters.a]\nservers="a:1"\nzzz="1s"\n', "'zzz', which kview does not know: use one of"),
        ('theme = 3\n', "'theme' outside a profile: write it under the [clusters.NAME]"),
        ('themes = 3\n', "'themes', which kview does not know: at the top of this file there can only be"),
        ('[cluster.a]\nservers = "a:1"\n', "'cluster', which kview does not know: did you mean clusters?"),
        ('[clusters.a]\nmap = []\n', "'a' in {file} has no servers that can be used: give it a text"),
        ('[clusters.a]\nservers = "a:1"\ninterval = 2\n', 'no interval that can be used: give it a text'),
        ('[clusters.a]\nservers = "a:1"\nmap = "x"\n', "has no map that can be used: give it a list"),
        ('[clusters]\na = "a:1"\n', "it has other things than [clusters.NAME] and [display]"),
        (f'[clusters.a]\nservers = "a:1"\n"{PASSWORD}\n', "cannot be used (not TOML at line 3"),
        ('[clusters.b]\nservers = "a:1"\n', "there is no profile named 'a' in"),
        ('[clusters.a]\nservers = "a:1"\ncolour = "red"\n', 'give it a colour, such as "#d08770"'),
        ('[clusters.a]\nservers = "a"\n', "'a' has no port"),
        (ON_FINDING % "[]", "no on-finding that can be used: give it a command with its arguments as a list"),
        (ON_FINDING % "3", "no on-finding that can be used: give it a command"),
        (ON_FINDING % '"page me"', "no on-finding that can be used"),
        (ON_FINDING % f'"http://u:{PASSWORD}@h/"', "no on-finding that can be used"),
        ('[clusters.a]\nservers = "a:1"\non-finding-hold = "5m"\n', "no on-finding that can be used"),
        (ON_FINDING % "['a']" + "on-finding-hold = '5'", "no on-finding-hold that can be used: give"),
        (ON_FINDING % "['a']" + "on-finding-severity = 'calm'", 'that can be used: give it "warn" (which'),
        ('[clusters.a]\nservers = "a:1"\nmap = ["x"]\n', "'x' is not a pair of addresses"),
        ('[clusters.a]\nservers = "a:1"\ninterval = "soon"\n', "'soon' is not a valid duration"),
        ('[clusters.a]\nservers = "a:1"\nconnect-ulr = "http://c"\n', "did you mean connect-url?"),
        ('[clusters.a]\nservers = "a:1"\nconnect-url = 8083\n', "no connect-url that can be used: give it"),
        ('[clusters.a]\nservers = "a:1"\nconnect-user = "bob"\n', "has no connect-url that can be used"),
        *[
            (f'[clusters.a]\nservers = "a:1"\nconnect-url = "{url}"\n', "has no connect-url that can be used")
            for url in (
                "", "c:8083", "ftp://c", "http://", "http://c:port", "http://[::1", f"http://bob:{PASSWORD}@c",
                f"http://c?key={PASSWORD}", "http://c/#a", "http://c/ HTTP/1.1", "http://c/\\u000dX: y", "http://ü",
            )
        ],
        (CONNECT + 'connect-user = "bob"\n', "no connect-password that can be used: give it the password"),
        (CONNECT + 'connect-user = "b:b"\nconnect-password = "x"\n', "has no connect-user that can be used"),
        (CONNECT + f'connect-password = "{PASSWORD}"\n', "has no connect-user that can be used"),
        (CONNECT + 'connect-user = "bob"\nconnect-password = "${env:NO}"\n', "variable NO is not set"),
        (REGISTRY + f'schema-registry-url = "http://u:{PASSWORD}@r"\n', "no schema-registry-url that can"),
        (REGISTRY + 'decoder.orders = "thrift:a"\n', "no decoder that can be used: give it a table"),
        (REGISTRY + 'key-decoder.orders = "avro:no.avsc"\n', "no.avsc"),
        *[
            (f'{REGISTRY}mask{mask}\n', "that can be used: give it a table by topic, such as mask.")
            for mask in (
                ' = "all"', " = []", ".orders = []", ".orders = 7", ".orders = true", ".orders = [7]",
                ".orders = {}", '."or[ders" = "all"', '."" = "all"', '."or ders" = "all"',
                *(f'.orders = ["key", "{text}"]' for text in (
                    "", "vaule.email", "Value", "values", "customer.email", "$.email", "value..email",
                    "value.email.", "value.a[3]", "value.a**", "value. email", "value.(a|b)", "value/email",
                    "**.**a", "ALL", "header.a", "value.em\\u0000ail",
                )),
            )
        ],
        (REGISTRY + 'mask.orders.eu = ["vaule.email"]\n', "has no mask.orders.eu that can be used: give it"),
        (REGISTRY + f'schema-registry-password = "{PASSWORD}"\n', "has no schema-registry-url that can"),
        (REGISTRY + f'{REGISTRY_URL}schema-registry-user = "bob"\n', "has no schema-registry-password that"),
        (REGISTRY + f'{REGISTRY_URL}schema-registry-token = "a b{PASSWORD}"\n', "no schema-registry-token"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_the_file_is_said(home: Home, text: str, said: str) -> None:
    home.config.write_text(text)
    code, out, error = home.kview("connect", "a")
    assert (code, out) == (2, "")
    assert said.format(file=home.config) in error


def test_what_is_secret_in_on_finding_is_not_shown_and_counts_only_where_it_is_called(home: Home) -> None:
    for url in (f"https://h?token={PASSWORD}", f"https://h/{PASSWORD}", f"https://h:1?{PASSWORD}/x"):
        home.config.write_text(ON_FINDING % f'"{url}"')
        code, out, _ = home.kview("config", "a")
        assert code == 0 and "on-finding            https://h" in out and PASSWORD not in out
    home.config.write_text(ON_FINDING % '"https://h/${env:NO}"')
    code, _, error = home.kview("connect", "a", "--once")
    assert code == 2 and "variable NO is not set" in error
    code, _, error = home.kview("check", "a", "--for", "1s")
    assert code == 3 and "variable" not in error
    home.config.write_text(ON_FINDING % '"https://h"')
    code, _, error = home.kview("connect", "a", "--quiet", "--once")
    assert code == 2 and "--quiet needs" in error


def test_a_profile_is_checked_with_its_settings(home: Home) -> None:
    with Served("--brokers", "3", "--no-traffic", "--topic", "orders:1:3") as cluster:
        home.config.write_text(PROD.format(servers=cluster.bootstrap))
        code, out, error = home.kview("check", "stage", "--for", "1s")
        assert code == 1 and "min_isr_1" in out and out.rstrip().splitlines()[-1].startswith("not healthy")
        assert "client.id" in error, "a property that is not used is said"
        code, out, error = home.kview("check", "prod", "--for", "1s")
        assert (code, out) == (3, "") and "kafka-acls" not in error
    code, out, error = home.kview("check", "prud")
    assert (code, out) == (2, "") and "prud" in error and "prod, stage" in error


def test_a_configuration_folder_that_cannot_be_entered_is_bad_use(home: Home) -> None:
    home.environment["XDG_CONFIG_HOME"] = "/" + 300 * "x"
    code, out, err = home.kview("connect", "prod")
    assert (code, out) == (2, "")
    assert "config.toml cannot be read (File name too long)" in err


@pytest.mark.parametrize("name", ["", "a:9092", "a,b"])
def test_a_profile_that_reads_like_a_server_is_bad_use(home: Home, name: str) -> None:
    home.config.write_text(f'[clusters."{name}"]\nservers = "localhost:9092"\n')
    code, out, error = home.kview("connect")
    assert (code, out) == (2, "")
    assert f"has a profile named {name!r}, which would be taken for a server" in error


def test_what_files_hold_is_shown_without_what_a_terminal_would_obey(home: Home) -> None:
    home.config.write_text('[clusters."a\\u001b[31m\\nb"]\nservers = "a:1"\n')
    for arguments in (["connect"], ["config"]):
        code, out, _ = home.kview(*arguments)
        assert code == 0 and "a?[31m?b" in out and "\x1b" not in out
    hostile = home.config.parent / "hostile.properties"
    hostile.write_text(login("PLAIN", "al\x1bice\x07", "pw") + "ssl.fo\\u001bo=1\n")
    code, out, _ = home.kview("config", "a:1", "--command-config", str(hostile))
    assert code == 0 and "al?ice?" in out and "ssl.fo?o" in out


def test_what_may_be_secret_in_the_address_of_a_token_endpoint_is_hidden(home: Home) -> None:
    file = home.config.parent / "client.properties"
    file.write_text(token_client("http://me:hush@localhost:1/t?key=hush", "kview", PASSWORD))
    code, out, _ = home.kview("config", "a:1", "--command-config", str(file))
    assert code == 0 and "http://***@localhost:1/t?***" in out and "hush" not in out


def test_the_rest_api_of_connect_is_shown_without_its_password(home: Home) -> None:
    (home.config.parent / "secret").write_text(f"{PASSWORD}\n")
    for password in ("${env:PW}", "${file:secret}", PASSWORD):
        home.config.write_text(f'{CONNECT}connect-user = "bob"\nconnect-password = "{password}"\n')
        code, out, _ = home.kview("config", "a")
        rows = dict(line.split(None, 1) for line in out.splitlines())
        assert code == 0 and rows["connect-url"] == "https://c:8083"
        assert (rows["connect-user"], rows["connect-password"]) == ("bob", "***")
    home.config.write_text(CONNECT.replace("https://c:8083", "${env:URL}"))
    home.environment["URL"] = "http://[::1]:8083/connect/"
    _, out, _ = home.kview("config", "a")
    assert "connect-url           http://[::1]:8083/connect\n" in out and "connect-user" not in out


def test_the_schema_registry_is_shown_without_its_secrets(home: Home) -> None:
    (home.config.parent / "order.avsc").write_text('"string"')
    decoders = 'decoder."or.ders" = "avro:order.avsc"\nkey-decoder.orders = "plain"\n'
    home.config.write_text(f'{REGISTRY}{REGISTRY_URL}schema-registry-token = "${{env:PW}}"\n{decoders}')
    code, out, _ = home.kview("config", "a")
    rows = dict(line.split(None, 1) for line in out.splitlines())
    assert code == 0 and rows["schema-registry-url"] == "https://r:8081/api"
    assert rows["schema-registry-token"] == "***"
    assert (rows["decoder.or.ders"], rows["key-decoder.orders"]) == ("avro:order.avsc", "plain")


def test_masks_are_shown(home: Home) -> None:
    home.config.write_text(
        f'{REGISTRY}mask."pay.*" = "all"\nmask.orders.eu = ["key", "value.items[].Card_No", "email"]\n'
    )
    code, out, _ = home.kview("config", "a")
    rows = dict(line.split(None, 1) for line in out.splitlines())
    assert (code, rows["mask.pay.*"]) == (0, "all")
    assert rows["mask.orders.eu"] == "key, value.items.cardno, **.email"


def test_the_flag_for_another_registry_does_not_take_the_login_along(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.config.write_text(f'{REGISTRY}{REGISTRY_URL}schema-registry-token = "{PASSWORD}"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", home.environment["XDG_CONFIG_HOME"])
    registry = target_of("a", registry_url="http://other:1/").security_now().registry
    assert registry == SchemaRegistry("http://other:1")
    code, _, error = home.kview("connect", "a", "--schema-registry-url", f"http://bob:{PASSWORD}@r")
    assert code == 2 and 'give the address of a server, such as "https://registry:8081"' in error


def test_what_connect_would_refuse_is_refused(home: Home) -> None:
    file = home.config.parent / "client.properties"
    file.write_text("security.protocol=SSL\nssl.truststore.certificates=-----BEGIN CERTIFICATE-----x\n")
    code, out, error = home.kview("config", "a:1", "--command-config", str(file))
    assert (code, out) == (2, "") and "ssl.truststore.certificates, is complete" in error
    file.write_bytes(b"\0\1\2")
    code, out, error = home.kview("config", "a:1", "--command-config", str(file))
    assert (code, out) == (2, "") and f"{file} is not a properties file" in error


def test_config_lists_the_actions_and_a_wrong_key_file_is_bad_use(home: Home) -> None:
    code, out, _ = home.kview("config")
    assert code == 0 and "keys.toml" in out
    keys = home.config.with_name("keys.toml")
    keys.write_text('sort = "f6"\n')
    code, out, _ = home.kview("config", "--keys")
    assert code == 0 and any(line.split()[:2] == ["sort", "F6"] for line in out.splitlines())
    keys.write_text('\nsort = "y"\n')
    code, out, error = home.kview("config", "--keys")
    assert (code, out) == (2, "")
    assert f"{keys}, line 2: sort and copy both use the key y: give one of them another" in error


def test_display_holds_for_every_cluster_unless_a_profile_or_a_flag_says_otherwise(home: Home) -> None:
    def used(text: str, *words: str) -> dict[str, Any]:
        home.config.write_text(text)
        context = click.Context(connect)
        context.args = connect.parse_args(context, [*words])
        profile = read_config(home.config).clusters.get("a")
        own = {} if profile is None else of_profile(context, profile)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_CONFIG_HOME", home.environment["XDG_CONFIG_HOME"])
            shown = display_of(context, context.params, own)
        return {
            "theme": shown.theme,
            "interval": shown.interval_ms,
            "mouse": not shown.no_mouse,
            "ignored": shown.ignore_groups,
            "included": [":".join(pattern) for pattern in shown.metrics_include],
        }

    kept = '[display]\ntheme = "light"\ninterval = "5s"\nmouse = false\nignore-group = ["a*"]\n'
    assert used("", "h:1") == {"theme": "", "interval": 1_000, "mouse": True, "ignored": (), "included": []}
    everywhere = {"theme": "light", "interval": 5_000, "mouse": False, "ignored": ("a*",), "included": []}
    assert used(kept, "h:1") == everywhere
    profile = '\n[clusters.a]\nservers = "h:1"\ninterval = "2s"\nmetrics-include = ["topic:a"]\n'
    assert used(kept + profile, "a") == {**everywhere, "interval": 2_000, "included": ["topic:a"]}
    flags = ("--interval", "1s", "--theme", "dark", "--ignore-group", "b")
    said = {"theme": "dark", "interval": 1_000, "mouse": False, "ignored": ("b",), "included": ["topic:a"]}
    assert used(kept + profile, "a", *flags) == said


def test_a_wrong_display_is_named_and_help_is_there(home: Home) -> None:
    home.config.write_text("[display]\nthemes = 1\n")
    code, out, error = home.kview("connect", "h:1", "--once")
    assert (code, out) == (2, "") and "the key 'themes', which kview does not know" in error
    home.config.write_text('[display]\ninterval = "3x"\n')
    code, _, error = home.kview("connect", "h:1", "--once")
    assert code == 2 and "'3x' is not a valid duration" in error
    home.config.write_text('[clusters.a]\nservers = "h:1"\nmetrics-exclude = ["a*"]\n')
    code, _, error = home.kview("connect", "a", "--once")
    assert code == 2 and "metrics-exclude" in error and 'a list, such as ["group:console-*"]' in error
    assert "--metrics" not in error and error.count("\n") == 1
    assert home.kview("connect", "--help")[0] == 0
    home.config.write_text('[display]\ntheme = "light"\nmouse = false\n')
    code, out, _ = home.kview("config")
    assert code == 0 and "[display]\n  theme                 light\n  mouse                 no\n" in out
