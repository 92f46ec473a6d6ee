"""`artifacts/list` and `mlflow-artifacts/…`: files of runs and models, through this server."""

from __future__ import annotations

from typing import Any

from litestar import Response
from litestar.response import Stream

from verderer.api.mlflow import listing
from verderer.api.mlflow.errors import NotSupported
from verderer.api.mlflow.route import Call, endpoint
from verderer.core.access import Action
from verderer.core.errors import Conflict, Invalid, NotFound
from verderer.core.tracking.artifact_path import (
    SCHEME,
    Address,
    check_path,
    decode_once,
    model_root,
    parse_address,
    run_root,
)
from verderer.objects.keys import tracked_key, tracked_prefix
from verderer.objects.serving import download as read_object
from verderer.objects.serving import receive
from verderer.usecases.tracking import artifacts, look_up
from verderer.usecases.tracking.artifacts import Owned

MAX_ARTIFACT = 1 << 40
"""Bytes of one file."""

_ROUTE = b"/mlflow-artifacts/artifacts/"


async def list_of_run(call: Call) -> object:
    """What lies in a run's folder, or in one inside it."""
    uid = call.asked("run_id") or call.asked("run_uuid")
    run, _ = await look_up.read_run(call.ctx, call.caller, uid)
    address = Address(run.experiment, run.uid, False, _folder(call.asked("path")))
    return await _listed(call, address, run_root(run.experiment, run.uid))


async def list_of_model(call: Call) -> object:
    """The same for a logged model."""
    model = await look_up.read_model(call.ctx, call.caller, call.part("model_id"))
    folder = _folder(call.asked("artifact_directory_path"))
    address = Address(model.experiment, model.uid, True, folder)
    return await _listed(call, address, model_root(model.experiment, model.uid))


async def list_by_address(call: Call) -> object:
    """What lies at an address; names are given without their folder."""
    path = (call.asked("path") or "").removeprefix(SCHEME)
    owned = await artifacts.readable(call.ctx, call.caller, parse_address(path))
    found = await listing.list_folder(call.objects, _prefix(owned))
    return {"files": [_file(one, one.name) for one in found]}


async def download(call: Call) -> object:
    """One file, or a range of it."""
    owned = await artifacts.readable(call.ctx, call.caller, _address(call))
    if not owned.address.path:
        raise Invalid("this is the address of a folder")
    headers = call.request.headers
    try:
        found = await read_object(
            call.objects,
            _key(owned),
            range_header=headers.get("range", ""),
            if_none_match=headers.get("if-none-match", ""),
        )
    except NotFound as e:
        raise NotFound(f"No such artifact: {owned.address.path!a}") from e
    if found.body is None:
        return Response(b"", status_code=found.status, headers=dict(found.headers))
    return Stream(found.body, status_code=found.status, headers=dict(found.headers))


async def upload(call: Call) -> object:
    """Write one file, over what was there."""
    owned = await artifacts.writable(call.ctx, call.caller, _address(call))
    if not owned.address.path:
        raise Invalid("this is the address of a folder")
    declared = call.request.headers.get("content-length", "")
    if declared and not declared.isdigit():
        raise Invalid("Content-Length must be a number")
    try:
        await receive(
            call.objects,
            _key(owned),
            call.request.stream(),
            limit=MAX_ARTIFACT,
            declared=int(declared) if declared else None,
        )
    except Conflict as e:
        raise Invalid(f"{owned.address.path!a} would stand where another file or folder is") from e
    return {}


async def delete(call: Call) -> object:
    """Remove a file, or a folder with all that is in it."""
    owned = await artifacts.writable(call.ctx, call.caller, _address(call))
    removed = 0
    if owned.address.path and await call.objects.head(_key(owned)) is not None:
        await call.objects.delete(_key(owned))
        removed = 1
    removed += await listing.delete_folder(call.objects, _prefix(owned))
    await artifacts.note_deleted(call.ctx, call.caller, owned, files=removed)
    return {}


async def no_multipart(_: Call) -> object:
    """Clients fall back to a plain upload when they read this sentence."""
    raise NotSupported("Multipart upload is not supported for the current artifact repository")


async def no_presigned(_: Call) -> object:
    """The same for downloads."""
    raise NotSupported("Presigned download is not supported for the current artifact repository")


def _address(call: Call) -> Address:
    """The artifact that the address names, out of the bytes as they were sent."""
    raw: Any = call.request.scope.get("raw_path") or b""
    _, found, tail = bytes(raw).partition(b"?")[0].partition(_ROUTE)
    if not found:
        raise Invalid("Invalid path: only the artifact's own part may be encoded")
    return parse_address(decode_once(tail))


def _folder(path: str | None) -> str:
    return check_path((path or "").removesuffix("/"))


def _owner(owned: Owned) -> str:
    return f"m-{owned.address.owner}" if owned.address.of_model else owned.address.owner


def _key(owned: Owned) -> str:
    address = owned.address
    return tracked_key(owned.project, address.experiment, _owner(owned), address.path)


def _prefix(owned: Owned) -> str:
    address = owned.address
    return tracked_prefix(owned.project, address.experiment, _owner(owned), address.path)


async def _listed(call: Call, address: Address, root: str) -> object:
    owned = await artifacts.readable(call.ctx, call.caller, address)
    found = await listing.list_folder(call.objects, _prefix(owned))
    folder = f"{address.path}/" if address.path else ""
    return {"root_uri": root, "files": [_file(one, folder + one.name) for one in found]}


def _file(found: listing.Listed, path: str) -> dict[str, object]:
    if found.size is None:
        return {"path": path, "is_dir": True}
    return {"path": path, "is_dir": False, "file_size": found.size}


_READ, _WRITE = Action.TRACKING_READ, Action.TRACKING_WRITE
_FILES = "/mlflow-artifacts/artifacts"

ROUTES = (
    endpoint("GET", "/mlflow/artifacts/list", _READ, list_of_run),
    endpoint(
        "GET",
        "/mlflow/logged-models/{model_id:str}/artifacts/directories",
        _READ,
        list_of_model,
    ),
    endpoint("GET", _FILES, _READ, list_by_address),
    endpoint("GET", f"{_FILES}/{{path:path}}", _READ, download),
    endpoint("PUT", f"{_FILES}/{{path:path}}", _WRITE, upload, max_body=None),
    endpoint("DELETE", f"{_FILES}/{{path:path}}", _WRITE, delete),
    *(
        endpoint("POST", f"/mlflow-artifacts/mpu/{verb}/{{path:path}}", _WRITE, no_multipart)
        for verb in ("create", "complete", "abort")
    ),
    endpoint("GET", "/mlflow-artifacts/presigned/{path:path}", _READ, no_presigned),
    endpoint("POST", "/mlflow/artifacts/presigned-upload-url", _WRITE, no_presigned),
    endpoint("POST", "/mlflow/artifacts/presigned-download-url", _READ, no_presigned),
)
