"""All answers to what the screen asks on demand."""

from typing import Any, cast

from kview.model.decoded import DecodeAnswer, DecodeRequest
from kview.model.inspection import (
    A,
    DirectoriesAnswer,
    DirectoriesRequest,
    FirstRecordAnswer,
    FirstRecordRequest,
    InspectionFailure,
    InspectionFailureKind,
    ProducersAnswer,
    ProducersRequest,
    Question,
    QuotasAnswer,
    QuotasRequest,
    RecordsAnswer,
    RecordsRequest,
    SettingsAnswer,
    SettingsRequest,
)
from kview.model.search import SearchAnswer, SearchPlan, SearchPlanRequest, SearchRequest
from kview.model.tail import TailAnswer, TailRequest

Answer = (
    RecordsAnswer
    | SearchPlan
    | SearchAnswer
    | SettingsAnswer
    | DirectoriesAnswer
    | FirstRecordAnswer
    | ProducersAnswer
    | QuotasAnswer
    | DecodeAnswer
    | TailAnswer
)

_ANSWERS: dict[type, Any] = {
    RecordsRequest: RecordsAnswer,
    SearchPlanRequest: SearchPlan,
    SearchRequest: SearchAnswer,
    SettingsRequest: SettingsAnswer,
    DirectoriesRequest: DirectoriesAnswer,
    FirstRecordRequest: FirstRecordAnswer,
    ProducersRequest: ProducersAnswer,
    QuotasRequest: QuotasAnswer,
    DecodeRequest: DecodeAnswer,
    TailRequest: TailAnswer,
}


def unanswered(question: Question[A], kind: InspectionFailureKind) -> A:
    """Return the answer that there is none, and why."""
    return cast(A, _ANSWERS[type(question)](question, failure=InspectionFailure(kind)))
