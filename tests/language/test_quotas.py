"""Which quotas hold for a group's member, whose client id is known and whose user is not."""

import pytest

from kview.language.quotas import limit, of_member
from kview.model.inspection import Quota, QuotaKey

CONSUME, REQUEST, PRODUCE = QuotaKey.CONSUMER, QuotaKey.REQUEST, QuotaKey.PRODUCER


def quota(key: str, value: float, **entity: str | None) -> Quota:
    return Quota(
        tuple(sorted((kind.replace("_", "-"), name) for kind, name in entity.items())), ((key, value),)
    )


DEFAULT = quota(CONSUME, 1e6, client_id=None)
OF_APP = quota(CONSUME, 2e6, client_id="app")
OF_OTHER = quota(CONSUME, 3e6, client_id="other")
OF_ALICE = quota(CONSUME, 4e6, user="alice")
OF_ALICE_APP = quota(CONSUME, 5e6, user="alice", client_id="app")
OF_ALICE_OTHER = quota(CONSUME, 6e6, user="alice", client_id="other")
OF_USERS = quota(CONSUME, 7e6, user=None)
OF_USERS_APP = quota(CONSUME, 8e6, user=None, client_id="app")
SHARE = quota(REQUEST, 50.0, client_id=None)
PRODUCED = quota(PRODUCE, 1.0, client_id="app")
OF_IP = quota(QuotaKey.CONNECTIONS, 1.0, ip=None)


@pytest.mark.parametrize(
    ("quotas", "said"),
    [
        ([], "none"),
        ([OF_OTHER, PRODUCED, OF_IP], "none"),
        ([DEFAULT, OF_OTHER], "1.0 MB/s (default)"),
        ([DEFAULT, OF_APP], "2.0 MB/s"),
        ([DEFAULT, SHARE], "1.0 MB/s (default), requests 50 % (default)"),
        ([DEFAULT, OF_ALICE], "1.0 MB/s (default), or its user's, if any"),
        ([OF_APP, OF_ALICE_APP], "2.0 MB/s, or its user's, if any"),
        ([OF_APP, OF_ALICE_OTHER], "2.0 MB/s"),
        ([OF_ALICE], "its user's, if any"),
        ([OF_APP, OF_USERS], "7.0 MB/s (default)"),
        ([OF_APP, OF_USERS, OF_USERS_APP], "8.0 MB/s"),
    ],
)
def test_the_first_that_holds_for_any_user(quotas: list[Quota], said: str) -> None:
    """In Kafka's order (ClientQuotaManager): what names a user comes before what names only a client id."""
    assert of_member(quotas, "app") == said


def test_limits_have_units() -> None:
    assert [limit(key, 1_024.5) for key in QuotaKey] == [
        "1.0 kB/s",
        "1.0 kB/s",
        "1,024 %",
        "1,024/s",
        "1,024/s",
    ]
    assert limit(REQUEST, 0.4) == "0.4 %"
