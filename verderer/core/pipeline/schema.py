"""The JSON Schema of the pipeline document, for editors and for programs that write pipelines.

It is made of the tables that the parser reads by. What spans several fields (needs, cycles,
references, requests above limits) only the parser can say.

`docs/reference/pipeline.schema.json` is this module's `as_json()`.
"""

from __future__ import annotations

import json
from typing import Any, Final

from verderer.core.pipeline.fields import PIPELINE

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def pipeline_schema() -> dict[str, Any]:
    """The schema as a new JSON-like value (draft 2020-12)."""
    return {
        "$schema": DIALECT,
        "$id": "urn:verderer:pipeline:1",
        "title": "Verderer pipeline",
        "description": "A graph of steps to run on a cluster, as written in YAML.",
        **PIPELINE.schema(),
    }


def as_json() -> str:
    """The schema as the published file has it, with a final newline."""
    return json.dumps(pipeline_schema(), indent=2, ensure_ascii=False) + "\n"
