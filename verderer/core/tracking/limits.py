"""How much of what a client may send; the numbers are those that MLflow's own clients expect."""

from __future__ import annotations

MAX_EXPERIMENT_NAME = 500
MAX_KEY = 250
"""Characters of a metric's, parameter's or tag's key."""
MAX_PARAM_VALUE = 6_000
"""Characters; longer values are cut, as MLflow cuts them."""
MAX_TAG_VALUE = 8_000
"""Characters; longer values are cut."""
MAX_EXPERIMENT_TAG_VALUE = 20_000
MAX_MODEL_NAME = 250
MAX_RUN_NAME = MAX_TAG_VALUE

MAX_METRICS = 1_000
"""In one request."""
MAX_PARAMS = 100
MAX_TAGS = 100
MAX_ENTITIES = 1_000
"""Metrics, parameters and tags together."""
MAX_DATASETS = 1_000

MAX_DATASET_NAME = 500
MAX_DATASET_DIGEST = 36
MAX_DATASET_SCHEMA = 1_048_575
MAX_DATASET_SOURCE = 65_535
MAX_DATASET_PROFILE = 16_777_215
MAX_INPUT_TAG_KEY = 255
MAX_INPUT_TAG_VALUE = 500

MAX_PAGE_RUNS = 50_000
"""What a client may ask for; a page holds at most `PAGE_RUNS` and says how to go on."""
PAGE_RUNS = 10_000
MAX_PAGE_EXPERIMENTS = 50_000
PAGE_EXPERIMENTS = 5_000
PAGE_MODELS = 1_000
PAGE_SAMPLES = 25_000
MAX_HISTORY = 1_000_000
"""Samples given at once to a client that asks for no pages."""
MAX_RUNS_IN_BULK = 100
MAX_SAMPLES_IN_BULK = 25_000
MAX_SAMPLES_PER_RUN = 2_500

MAX_FILTER = 20_000
"""Characters of a search's filter."""
MAX_COMPARISONS = 100
MAX_ORDERINGS = 20

INT64_MAX = (1 << 63) - 1
INT64_MIN = -(1 << 63)
