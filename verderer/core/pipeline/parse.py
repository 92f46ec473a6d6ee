"""Reads a pipeline: bytes in, a checked `Pipeline` or every problem out.

It is a pure function of the bytes, so what it returns may be cached by them.
"""

from __future__ import annotations

from verderer.core.pipeline.build import build_pipeline
from verderer.core.pipeline.checks import check_pipeline
from verderer.core.pipeline.fields import PIPELINE
from verderer.core.pipeline.reading.document import compose
from verderer.core.pipeline.reading.problems import Problems
from verderer.core.pipeline.reading.text import decode
from verderer.core.pipeline.spec import Pipeline


def parse(data: bytes) -> Pipeline:
    """Read the YAML of one pipeline. Total: any bytes give a pipeline or `Invalid`.

    Raises:
        Invalid: with a `Problem` for everything found: line, column and path of the field, what
            was expected, and the nearest valid spelling or the remedy. What cannot be read as
            YAML within the limits has one problem.
    """
    text = decode(data)
    problems = Problems(text)
    root = compose(text, problems)
    problems.mark("", root.place)
    raw = PIPELINE.read(root, "", problems)
    pipeline = build_pipeline(raw or {})
    if raw is not None:
        check_pipeline(pipeline, problems)
    problems.raise_if_any("the pipeline")
    return pipeline
