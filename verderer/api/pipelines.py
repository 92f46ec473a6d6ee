"""/api/v1/pipelines: check a document without running it, and the schema that editors use."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import get, post
from litestar.openapi.spec import Example
from litestar.params import Body

from verderer.core.access import Action
from verderer.core.pipeline.schema import pipeline_schema
from verderer.wire.users import ValidateIn, ValidationOut
from verderer.wire.validation import validate as check

MAX_BODY = 11 * 1024 * 1024
"""Bytes: the reader of documents refuses what is too long in words of its own."""
_WRONG = Example(
    summary="A typing mistake",
    value={"pipeline": "metadata: {name: hello}\nsteps:\n  - name: greet\n    comand: [echo]\n"},
)


@post(
    "/pipelines/validate",
    opt={"action": Action.RUN_READ},
    tags=["pipelines"],
    summary="Check a pipeline",
    status_code=200,
    request_max_body_size=MAX_BODY,
    sync_to_thread=True,
)
def validate(data: Annotated[ValidateIn, Body(examples=[_WRONG])]) -> ValidationOut:
    """Every problem with its line, column and remedy, or what a run of it would consist of."""
    return check(data.pipeline.encode(), data.parameters)


@get(
    "/pipelines/schema",
    opt={"public": "an editor asks for it without a credential; it is the same everywhere"},
    tags=["pipelines"],
    summary="The JSON Schema of a pipeline",
    sync_to_thread=False,
)
def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of the document, for completion while writing."""
    return pipeline_schema()


ROUTES = (validate, schema)
