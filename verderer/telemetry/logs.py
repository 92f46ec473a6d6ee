"""One line per event on standard error: key=value for people, JSON for machines.

What libraries write through the standard library's `logging` takes the same road.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any, Literal, TextIO

import structlog
from structlog.typing import Processor

from verderer.telemetry.redaction import redact

Format = Literal["auto", "json", "text"]

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
# They say at every request what our own lines say better.
_QUIET = ("uvicorn.access", "httpx", "httpx2", "httpcore", "httpcore2")


def configure(
    *,
    role: str,
    format: Format = "auto",  # noqa: A002 it is what the setting is called
    level: str = "info",
    stream: TextIO | None = None,
    colours: bool | None = None,
) -> None:
    """Set the process's log up, once, at its start; a second call replaces the first.

    `role` and the process id stand in every line. `auto` writes text to a terminal and JSON to
    anything else. `colours` are for text alone; None colours a terminal.
    """
    out = stream or sys.stderr
    terminal = out.isatty()
    text = format == "text" or (format == "auto" and terminal)
    threshold = logging.getLevelNamesMapping()[level.upper()]
    processors: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
        _Identity(role, os.getpid()),
        redact,
        *_renderers(text=text, colours=terminal if colours is None else colours),
    ]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.WriteLoggerFactory(out),
        cache_logger_on_first_use=False,
    )
    _capture_standard_logging(threshold)


class _Identity:
    """Adds who is speaking, after the values of the event, which may not replace it."""

    def __init__(self, role: str, pid: int) -> None:
        self._who = {"role": role, "pid": pid}

    def __call__(
        self, _logger: object, _method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        event.update(self._who)
        return event


def _renderers(*, text: bool, colours: bool) -> list[Processor]:
    if text:
        return [
            _printable,
            structlog.dev.ConsoleRenderer(colors=colours, pad_event_to=0, sort_keys=False),
        ]
    return [_named_for_machines, structlog.processors.JSONRenderer(serializer=_json)]


def _printable(_logger: object, _method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Escape line ends and terminal commands, so that a value cannot forge a line."""
    return {
        key: _CONTROL.sub(_escape, value)
        if isinstance(value, str) and key not in ("exception", "stack")
        else value
        for key, value in event.items()
    }


def _escape(found: re.Match[str]) -> str:
    return found.group().encode("unicode_escape").decode("ascii")


def _named_for_machines(
    _logger: object, _method: str, event: MutableMapping[str, Any]
) -> Mapping[str, Any]:
    """Put time, level and event first: a person reads JSON lines too."""
    first = {key: event.pop(key) for key in ("timestamp", "level", "event") if key in event}
    return {**first, **event}


def _json(value: object, **_: object) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False, separators=(",", ":"))
    # JSON leaves these as they are; some readers end a line at them, and terminals obey them.
    return _CONTROL.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


class _ToStructlog(logging.Handler):
    """Hands the standard library's records over."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            structlog.get_logger().log(
                record.levelno, record.getMessage(), logger=record.name, exc_info=record.exc_info
            )
        except Exception:  # noqa: BLE001 a broken log line must not break its writer
            self.handleError(record)


def _capture_standard_logging(threshold: int) -> None:
    root = logging.getLogger()
    for handler in list(root.handlers):
        if isinstance(handler, _ToStructlog):
            root.removeHandler(handler)
    root.addHandler(_ToStructlog())
    root.setLevel(threshold)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(threshold, logging.WARNING))
    logging.captureWarnings(capture=True)
