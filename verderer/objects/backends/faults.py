"""Says in our own words what a backend's error means, for which object, and what to do about it.

The backend's text is never passed on as it is: it can be pages long and may quote a request. What
helps is kept in `detail["cause"]`, one line with credentials removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    UnauthenticatedError,
)

from verderer.core.errors import Conflict, Fault, NotFound, VerdererError

_CAUSE_LENGTH = 300
_SIGNED = re.compile(r"(X-Amz-(?:Signature|Credential|Security-Token)=)[^&\s\"]*", re.IGNORECASE)
_IN_THE_WAY = re.compile(r"ObjectParentIsFile|ExistingObjectIsDirectory|os error (20|21)\b")
_CODE = re.compile(r"<Code>(\w{1,64})</Code>")


@dataclass(frozen=True, slots=True)
class Symptom:
    """Text that a backend's error holds, and what it means."""

    pattern: re.Pattern[str]
    message: str
    hint: str
    retry_after_s: float
    setting: str
    """The setting that is wrong; empty where waiting may help."""


def _symptom(
    pattern: str, message: str, hint: str, retry_after_s: float = 5.0, *, setting: str = ""
) -> Symptom:
    return Symptom(re.compile(pattern), message, hint, retry_after_s, setting)


# First match wins, so the particular stands before the general.
_SYMPTOMS = (
    _symptom(
        r"os error 28\b|StorageFull|No space left|XMinioStorageFull|InsufficientStorage|\b507\b",
        "the object store is full",
        "free space on the disk that holds the objects, or point [objects] url at a larger store",
        30.0,
    ),
    _symptom(
        r"os error 122\b|QuotaExceeded",
        "the object store's quota is used up",
        "raise the quota of the user or bucket that holds the objects",
        30.0,
    ),
    _symptom(
        r"os error (30|13|1)\b|Permission denied|Read-only file system",
        "the object store's directory cannot be written or read",
        "give the server's user read and write access to the directory in [objects] url",
        30.0,
        setting="objects.url",
    ),
    _symptom(
        r"NoSuchBucket",
        "the bucket does not exist",
        "create the bucket, or run `verderer doctor --fix`",
        30.0,
        setting="objects.url",
    ),
    _symptom(
        r"InvalidAccessKeyId|SignatureDoesNotMatch|\b401\b|ExpiredToken|InvalidToken",
        "the object store does not accept our credentials",
        "check access_key and secret_key in [objects], and this machine's clock",
        30.0,
        setting="objects.access_key",
    ),
    _symptom(
        r"AccessDenied|\b403\b",
        "our credentials may not do this in the bucket",
        "allow s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket on the bucket",
        30.0,
        setting="objects.access_key",
    ),
    _symptom(
        r"PermanentRedirect|AuthorizationHeaderMalformed|\b301\b",
        "the bucket is in another region",
        "set region in [objects] to the bucket's region",
        30.0,
        setting="objects.region",
    ),
    _symptom(
        r"SlowDown|\b503\b|\b429\b|TooManyRequests",
        "the object store asks us to slow down",
        "wait; if it persists, ask the store's operator for a higher request rate",
        5.0,
    ),
    _symptom(
        r"dns error|Connect|error sending request|TimedOut|timed out|Connection|os error 111\b",
        "the object store cannot be reached",
        "check endpoint in [objects], the network, and allow_http when the endpoint has no TLS",
        2.0,
    ),
)


@dataclass(frozen=True, slots=True)
class Translator:
    """Turns a backend's errors into ours; knows the secrets that no message may hold."""

    secrets: tuple[str, ...] = field(default=(), repr=False)

    @contextmanager
    def over(self, action: str, key: str) -> Iterator[None]:
        """Translate whatever is raised inside, as the failure of `action` on `key`.

        Raises:
            NotFound: there is no such object.
            Conflict: there is one already, or an object stands where a folder is needed.
            Fault: everything else.
        """
        try:
            yield
        except VerdererError:
            raise
        except (BaseError, OSError, ValueError) as error:
            raise self.translate(error, action, key) from error

    def translate(self, error: Exception, action: str, key: str) -> VerdererError:
        """The error of our own tree that `error` amounts to."""
        text = str(error)
        if isinstance(error, FileNotFoundError) and "NoSuchBucket" not in text:
            return NotFound(f"there is no object {key!r}")
        if _IN_THE_WAY.search(text):
            if action != "write":
                return NotFound(f"there is no object {key!r}")
            return Conflict(
                f"object {key!r} would stand where another object or folder is",
                hint="a file and a folder cannot have the same name; rename one of them",
                code="key_in_the_way",
            )
        if isinstance(error, AlreadyExistsError):
            return Conflict(f"object {key!r} exists already", code="object_exists")
        return self._fault(error, text, action, key)

    def _fault(self, error: Exception, text: str, action: str, key: str) -> Fault:
        if isinstance(error, PermissionDeniedError | UnauthenticatedError) and not text:
            text = "AccessDenied"
        found = next((one for one in _SYMPTOMS if one.pattern.search(text)), None)
        message = found.message if found else "the object store answered with an error"
        return Fault(
            f"cannot {action} object {key!r}: {message}",
            hint=found.hint if found else "see the cause; `verderer doctor` tests the object store",
            retry_after_s=found.retry_after_s if found else 2.0,
            detail=self._detail(key, text, found),
        )

    def _detail(self, key: str, text: str, found: Symptom | None) -> dict[str, str]:
        setting = {"setting": found.setting} if found and found.setting else {}
        return {"key": key, "cause": self.cause(text), **setting}

    def cause(self, text: str) -> str:
        """One bounded line of a backend's error text, without credentials."""
        lines = text.strip().splitlines()
        first = lines[0].strip() if lines else ""
        if (code := _CODE.search(text)) and code[1] not in first:
            first = f"{code[1]}: {first}"
        for secret in self.secrets:
            first = first.replace(secret, "***")
        return _SIGNED.sub(r"\1***", first)[:_CAUSE_LENGTH]
