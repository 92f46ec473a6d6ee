"""Page tokens: where the next page of a search begins.

The form is MLflow's own, since some clients make them up; nobody gains anything by a forged one,
because what may be seen is decided anew for every page.
"""

from __future__ import annotations

import base64
import binascii
import json

from verderer.core.errors import Invalid
from verderer.core.tracking.limits import INT64_MAX


def page_token(offset: int) -> str:
    """Write the token of the page that begins after `offset` results."""
    return base64.b64encode(json.dumps({"offset": offset}).encode()).decode()


def parse_page_token(token: str | None) -> int:
    """Read where a page begins; 0 without a token.

    Raises:
        Invalid: it is not such a token.
    """
    if not token:
        return 0
    try:
        decoded = json.loads(base64.b64decode(token.encode(), validate=True))
    except (binascii.Error, ValueError, RecursionError) as e:
        raise Invalid("Invalid page token, could not decode it") from e
    offset = decoded.get("offset") if isinstance(decoded, dict) else None
    if not isinstance(offset, int) or isinstance(offset, bool) or not 0 <= offset <= INT64_MAX // 2:
        raise Invalid("Invalid page token, it names no offset")
    return offset
