"""The struct of the document that `on-finding` gets."""

from typing import Annotated

from msgspec import Struct

from kview.derive.finding_changes import Change
from kview.model.events import Severity
from kview.plain.schema_fields import Text, meaning, moment
from kview.plain.schema_findings import Finding


class HookDocument(Struct, gc=False):
    """What a profile's on-finding gets: a finding that begins, gets worse or ends."""

    format: Annotated[int, meaning("The format's version, as in the other documents.")]
    at_ms: Annotated[int, moment("When it was decided, by the clock of kview's machine.")]
    cluster: Annotated[str, meaning("The profile's name.")]
    cluster_id: Annotated[str | None, meaning("The cluster's id.")]
    change: Annotated[
        Change,
        meaning(
            "What happened to the finding. One that tells of the past, such as lost records, never ends."
            " test: somebody tries on-finding, and nothing has happened."
        ),
    ]
    key: Annotated[
        str,
        meaning(
            "The same for all documents about a finding, from its beginning to its end: for tools that"
            " put them together, and at most 255 characters long. Brokers that are silent,"
            " then fenced or gone, keep one key."
        ),
    ]
    severity: Annotated[Severity, meaning("How urgent the cluster's worst finding is now.")]
    text: Text
    finding: Annotated[Finding, meaning("The finding. One that ends is as it was last.")]
