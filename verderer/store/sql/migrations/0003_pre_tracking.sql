-- What training code reports about itself: experiments, tracked runs, parameters, metrics, models.
-- "Tracked run" is a run in the sense of MLflow; `runs` holds runs of pipelines. Times that
-- clients give are milliseconds since 1970, kept as they came.

CREATE TYPE tracking_status AS ENUM ('RUNNING', 'SCHEDULED', 'FINISHED', 'FAILED', 'KILLED');
CREATE TYPE tracking_model_status AS ENUM ('PENDING', 'READY', 'FAILED');

CREATE TABLE tracking_experiments (
    id         bigint PRIMARY KEY CHECK (id > 0),
    project_id integer NOT NULL REFERENCES projects,
    name       text NOT NULL CHECK (length(name) BETWEEN 1 AND 500),
    created_ms bigint NOT NULL,
    updated_ms bigint NOT NULL,
    deleted_at timestamptz
);
-- A deleted experiment keeps its name until it is restored, as MLflow's clients expect.
CREATE UNIQUE INDEX tracking_experiments_name ON tracking_experiments (project_id, name);

CREATE TABLE tracking_experiment_tags (
    experiment_id bigint NOT NULL REFERENCES tracking_experiments ON DELETE CASCADE,
    key           text NOT NULL,
    value         text NOT NULL,
    PRIMARY KEY (experiment_id, key)
);

CREATE TABLE tracking_runs (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    uid           uuid NOT NULL,
    experiment_id bigint NOT NULL REFERENCES tracking_experiments ON DELETE CASCADE,
    project_id    integer NOT NULL REFERENCES projects,
    name          text NOT NULL,
    user_name     text NOT NULL,
    status        tracking_status NOT NULL DEFAULT 'RUNNING',
    start_ms      bigint NOT NULL,
    end_ms        bigint,
    deleted_at    timestamptz,
    run_id        bigint REFERENCES runs ON DELETE SET NULL,   -- the step that made it
    step_idx      integer,
    attempt       smallint
);
CREATE UNIQUE INDEX tracking_runs_uid ON tracking_runs (uid);
CREATE INDEX tracking_runs_experiment ON tracking_runs (experiment_id, start_ms DESC, uid);
CREATE INDEX tracking_runs_project ON tracking_runs (project_id, id DESC);
CREATE INDEX tracking_runs_step ON tracking_runs (run_id, step_idx) WHERE run_id IS NOT NULL;

CREATE TABLE tracking_params (
    tracked_id bigint NOT NULL REFERENCES tracking_runs ON DELETE CASCADE,
    key        text NOT NULL,
    value      text NOT NULL,
    PRIMARY KEY (tracked_id, key)
);

CREATE TABLE tracking_tags (
    tracked_id bigint NOT NULL REFERENCES tracking_runs ON DELETE CASCADE,
    key        text NOT NULL,
    value      text NOT NULL,
    PRIMARY KEY (tracked_id, key)
);

-- One metric of one run, and its latest sample: of the highest step, then time, then value.
CREATE TABLE tracking_series (
    id         bigint GENERATED ALWAYS AS IDENTITY (CACHE 50),
    tracked_id bigint NOT NULL REFERENCES tracking_runs ON DELETE CASCADE,
    key        text NOT NULL,
    step       bigint NOT NULL,
    at_ms      bigint NOT NULL,
    value      double precision NOT NULL,
    PRIMARY KEY (tracked_id, key)
) WITH (fillfactor = 60);

-- Samples as they came, up to 72 of one metric in a row: a third of the space and a tenth of the
-- work of one row each, and small enough never to leave the table's own pages. The same sample may
-- be here twice when a client repeats a request; readers take it once. No foreign key: it would
-- look up the series once more for every row, in the hottest statement there is.
CREATE TABLE tracking_points (
    series_id bigint NOT NULL,
    steps     bigint[] NOT NULL,
    times_ms  bigint[] NOT NULL,
    samples   double precision[] NOT NULL,
    CHECK (cardinality(steps) = cardinality(times_ms)
           AND cardinality(steps) = cardinality(samples))
);
ALTER TABLE tracking_points
    ALTER steps SET STORAGE MAIN, ALTER times_ms SET STORAGE MAIN, ALTER samples SET STORAGE MAIN;
CREATE INDEX tracking_points_series ON tracking_points (series_id);

CREATE TABLE tracking_datasets (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    experiment_id bigint NOT NULL REFERENCES tracking_experiments ON DELETE CASCADE,
    name          text NOT NULL,
    digest        text NOT NULL,
    source_type   text NOT NULL,
    source        text NOT NULL,
    schema        text,
    profile       text
);
CREATE UNIQUE INDEX tracking_datasets_name ON tracking_datasets (experiment_id, name, digest);

CREATE TABLE tracking_inputs (
    tracked_id bigint NOT NULL REFERENCES tracking_runs ON DELETE CASCADE,
    dataset_id bigint NOT NULL REFERENCES tracking_datasets ON DELETE CASCADE,
    context    text,                      -- the value of the tag mlflow.data.context
    tags       jsonb NOT NULL,            -- all of them, [[key, value], …]
    PRIMARY KEY (tracked_id, dataset_id)
);

CREATE TABLE tracking_models (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    uid           uuid NOT NULL,
    experiment_id bigint NOT NULL REFERENCES tracking_experiments ON DELETE CASCADE,
    project_id    integer NOT NULL REFERENCES projects,
    tracked_id    bigint REFERENCES tracking_runs ON DELETE SET NULL,   -- the run that made it
    name          text NOT NULL,
    model_type    text NOT NULL DEFAULT '',
    status        tracking_model_status NOT NULL DEFAULT 'PENDING',
    created_ms    bigint NOT NULL,
    updated_ms    bigint NOT NULL,
    deleted_at    timestamptz
);
CREATE UNIQUE INDEX tracking_models_uid ON tracking_models (uid);
CREATE INDEX tracking_models_experiment ON tracking_models (experiment_id, created_ms DESC, uid);

CREATE TABLE tracking_model_params (
    model_id bigint NOT NULL REFERENCES tracking_models ON DELETE CASCADE,
    key      text NOT NULL,
    value    text NOT NULL,
    PRIMARY KEY (model_id, key)
);

CREATE TABLE tracking_model_tags (
    model_id bigint NOT NULL REFERENCES tracking_models ON DELETE CASCADE,
    key      text NOT NULL,
    value    text NOT NULL,
    PRIMARY KEY (model_id, key)
);

CREATE TABLE tracking_model_metrics (
    model_id   bigint NOT NULL REFERENCES tracking_models ON DELETE CASCADE,
    tracked_id bigint NOT NULL REFERENCES tracking_runs ON DELETE CASCADE,
    key        text NOT NULL,
    step       bigint NOT NULL,
    at_ms      bigint NOT NULL,
    value      double precision NOT NULL,
    dataset    text,
    digest     text,
    PRIMARY KEY (model_id, key, at_ms, step, tracked_id)
);

-- Models that a run read or made.
CREATE TABLE tracking_run_models (
    tracked_id bigint NOT NULL REFERENCES tracking_runs ON DELETE CASCADE,
    model_id   bigint NOT NULL REFERENCES tracking_models ON DELETE CASCADE,
    made       boolean NOT NULL,           -- false: read
    step       bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tracked_id, model_id, made, step)
);
