"""What a client asks about the server itself, and the answer at addresses that we do not have."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler

from verderer.api.mlflow.errors import HANDLERS, no_endpoint
from verderer.api.mlflow.route import Call, Method, endpoint, json_response, paths
from verderer.core.access import Action

MLFLOW_VERSION = "3.0.0"
"""The protocol that we speak: from 3.4 on, clients would send traces, which are not kept."""

_PUBLIC = {"public": "clients ask what the server can do before they authenticate"}
_INFO = {
    "store_type": "SqlStore",
    "workspaces_enabled": False,
    "trace_archival_enabled": False,
    "multipart_uploads_enabled": False,
    "multipart_downloads_enabled": False,
    "presigned_upload_run_id_supported": False,
    "presigned_upload_model_id_supported": False,
    "features_enabled": {"gateway": False},
}


async def about(request: Request[Any, Any, Any]) -> Response[bytes]:
    """`version` and `health`, in plain text."""
    word = str(request.path_params["word"])
    text = {"version": MLFLOW_VERSION, "health": "OK"}.get(word)
    if text is None:
        raise no_endpoint()
    return Response(text.encode(), media_type="text/plain")


async def info() -> Response[bytes]:
    """`server-info`: what the server can do."""
    return json_response(_INFO)


async def missing(_: Call) -> object:
    """Traces, registered models, gateways and whatever else MLflow may have."""
    raise no_endpoint()


# A path parameter catches what no longer name does; below these there are longer ones.
_METHODS: tuple[tuple[Method, Action], ...] = (
    ("GET", Action.TRACKING_READ),
    ("POST", Action.TRACKING_WRITE),
    ("PUT", Action.TRACKING_WRITE),
    ("PATCH", Action.TRACKING_WRITE),
    ("DELETE", Action.TRACKING_WRITE),
)
_CAUGHT = ("/mlflow", "/mlflow/runs", "/mlflow/experiments", "/mlflow/metrics", "/mlflow/artifacts")

ROUTES = (
    HTTPRouteHandler(
        ["/mlflow/{word:str}", "/mlflow/{project:str}/{word:str}"],
        http_method="GET",
        opt=_PUBLIC,
        include_in_schema=False,
        exception_handlers=HANDLERS,
        name="mlflow about",
    )(about),
    HTTPRouteHandler(
        paths("/mlflow/server-info"),
        http_method="GET",
        opt=_PUBLIC,
        include_in_schema=False,
        exception_handlers=HANDLERS,
        name="mlflow server-info",
    )(info),
    *(
        endpoint(method, f"{above}/{{rest:path}}", action, missing)
        for above in _CAUGHT
        for method, action in _METHODS
    ),
)
