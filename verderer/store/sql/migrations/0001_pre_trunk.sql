-- People, clusters, runs and what the platform did with them.
-- Quantities are integers: milli-units, or bytes for memory and storage.

CREATE TYPE run_state AS ENUM
    ('queued', 'running', 'cancelling', 'succeeded', 'failed', 'cancelled');
CREATE TYPE step_state AS ENUM
    ('blocked', 'ready', 'active', 'succeeded', 'failed', 'cancelled', 'skipped');
CREATE TYPE attempt_state AS ENUM
    ('assigned', 'starting', 'running', 'stopping', 'succeeded', 'failed', 'cancelled', 'lost');
CREATE TYPE end_cause AS ENUM
    ('exit', 'signal', 'oom', 'timeout', 'cancelled', 'lost', 'start', 'output');
CREATE TYPE cluster_kind AS ENUM ('kubernetes', 'slurm', 'local');
CREATE TYPE role AS ENUM ('member', 'admin');

-- ---------------------------------------------------------------- people

CREATE TABLE users (
    id             integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email          text NOT NULL CHECK (email = lower(email) AND length(email) BETWEEN 3 AND 254),
    name           text NOT NULL DEFAULT '',
    password_hash  text,
    platform_admin boolean NOT NULL DEFAULT false,
    active         boolean NOT NULL DEFAULT true,
    must_change    boolean NOT NULL DEFAULT false,
    language       text NOT NULL DEFAULT '',
    created_at     timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX users_email ON users (email);

CREATE TABLE sessions (
    token_hash bytea PRIMARY KEY CHECK (length(token_hash) = 32),
    user_id    integer NOT NULL REFERENCES users ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT now(),
    seen_at    timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    origin     text NOT NULL DEFAULT '',
    agent      text NOT NULL DEFAULT ''
);
CREATE INDEX sessions_user ON sessions (user_id);
CREATE INDEX sessions_expiry ON sessions (expires_at);

CREATE TABLE api_tokens (
    id         integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id    integer NOT NULL REFERENCES users ON DELETE CASCADE,
    name       text NOT NULL,
    token_hash bytea NOT NULL UNIQUE CHECK (length(token_hash) = 32),
    hint       text NOT NULL,              -- first characters, to recognise it in a list
    read_only  boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    used_at    timestamptz,
    revoked_at timestamptz
);
CREATE INDEX api_tokens_user ON api_tokens (user_id);

CREATE TABLE projects (
    id         integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text NOT NULL CHECK (name ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
    title      text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX projects_name ON projects (name);

CREATE TABLE project_members (
    project_id integer NOT NULL REFERENCES projects ON DELETE CASCADE,
    user_id    integer NOT NULL REFERENCES users ON DELETE CASCADE,
    role       role NOT NULL,
    PRIMARY KEY (project_id, user_id)
);
CREATE INDEX project_members_user ON project_members (user_id);

-- ---------------------------------------------------------------- clusters

CREATE TABLE clusters (
    id              integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    cluster_id      text NOT NULL CHECK (cluster_id ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
    kind            cluster_kind NOT NULL,
    enabled         boolean NOT NULL DEFAULT true,
    credential_hash bytea CHECK (length(credential_hash) = 32),
    epoch           bigint NOT NULL DEFAULT 0,   -- rises with every agent session
    instance        text NOT NULL DEFAULT '',
    agent_version   text NOT NULL DEFAULT '',
    revision        bigint NOT NULL DEFAULT 0,   -- rises with every change of what it should run
    created_at      timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX clusters_name ON clusters (cluster_id);

-- Apart from `clusters`, whose row is locked while orders are written.
CREATE TABLE heartbeats (
    cluster_id integer PRIMARY KEY REFERENCES clusters ON DELETE CASCADE,
    seen_at    timestamptz NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE nodes (
    cluster_id  integer NOT NULL REFERENCES clusters ON DELETE CASCADE,
    name        text NOT NULL,
    ready       boolean NOT NULL,
    allocatable jsonb NOT NULL,
    labels      jsonb NOT NULL DEFAULT '{}',
    cpu_load    real,
    memory_free bigint,
    reported_at timestamptz NOT NULL,
    PRIMARY KEY (cluster_id, name)
);

-- What a cluster can give and what is promised out of it. `allocatable` may fall below `reserved`
-- when a node dies; a reservation is only ever made while it fits.
CREATE TABLE capacity (
    cluster_id  integer NOT NULL REFERENCES clusters ON DELETE CASCADE,
    resource    text NOT NULL,
    allocatable bigint NOT NULL CHECK (allocatable >= 0),
    largest     bigint NOT NULL CHECK (largest >= 0),    -- of any one ready node
    reserved    bigint NOT NULL DEFAULT 0 CHECK (reserved >= 0),
    PRIMARY KEY (cluster_id, resource)
) WITH (fillfactor = 50);

-- ---------------------------------------------------------------- runs

CREATE TABLE documents (
    sha256     bytea PRIMARY KEY CHECK (length(sha256) = 32),
    body       text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE runs (
    id              bigint PRIMARY KEY,
    project_id      integer NOT NULL REFERENCES projects,
    name            text NOT NULL,
    labels          jsonb NOT NULL DEFAULT '{}',
    document        bytea NOT NULL REFERENCES documents,
    parameters      jsonb NOT NULL DEFAULT '{}',
    state           run_state NOT NULL,
    steps           integer NOT NULL CHECK (steps > 0),
    open            integer NOT NULL CHECK (open BETWEEN 0 AND steps),   -- steps that are not over
    failed          integer NOT NULL DEFAULT 0 CHECK (failed >= 0),
    actor           text NOT NULL,
    user_id         integer REFERENCES users,
    idempotency_key text,
    cloned_from     bigint,
    created_at      timestamptz NOT NULL DEFAULT now(),
    started_at      timestamptz,
    ended_at        timestamptz,
    CHECK ((open = 0) = (state IN ('succeeded', 'failed', 'cancelled'))),
    CHECK ((ended_at IS NULL) = (open > 0))
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX runs_idempotency ON runs (project_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX runs_project ON runs (project_id, id DESC);
CREATE INDEX runs_project_state ON runs (project_id, state, id DESC);
CREATE INDEX runs_project_name ON runs (project_id, name, id DESC);
CREATE INDEX runs_live ON runs (id) WHERE open > 0;

-- What pages count, kept by whoever changes a run's state; spread over shards so that submitters
-- of one project do not wait for each other. A shard may be negative, the sum never is.
CREATE TABLE run_counters (
    project_id integer NOT NULL REFERENCES projects ON DELETE CASCADE,
    state      run_state NOT NULL,
    shard      smallint NOT NULL,
    n          bigint NOT NULL,
    PRIMARY KEY (project_id, state, shard)
) WITH (fillfactor = 50);

-- What a step asks for; a fleet knows some hundred of these, so steps name them.
CREATE TABLE shapes (
    id       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest   bytea NOT NULL UNIQUE CHECK (length(digest) = 32),
    requests jsonb NOT NULL,
    nodes    integer NOT NULL CHECK (nodes > 0)
);

CREATE SEQUENCE step_ids INCREMENT BY 1000;

CREATE TABLE steps (
    id         bigint PRIMARY KEY,
    run_id     bigint NOT NULL REFERENCES runs ON DELETE CASCADE,
    idx        integer NOT NULL CHECK (idx >= 0),
    name       text NOT NULL,
    template   smallint NOT NULL,
    matrix     jsonb,
    shape_id   integer NOT NULL REFERENCES shapes,
    state      step_state NOT NULL,
    waits      integer NOT NULL CHECK (waits >= 0),   -- needed steps that are not over
    attempts   smallint NOT NULL DEFAULT 0,
    failures   smallint NOT NULL DEFAULT 0,           -- since the last retry of the run
    note       text NOT NULL DEFAULT '',              -- why it was skipped or failed
    ready_at   timestamptz,
    started_at timestamptz,
    ended_at   timestamptz,
    CHECK ((state = 'blocked') = (waits > 0) OR state = 'cancelled' OR state = 'skipped')
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX steps_run ON steps (run_id, idx);

-- Edges of the graphs: `step_id` must be over before `successor_id` may start.
CREATE TABLE needs (
    step_id      bigint NOT NULL REFERENCES steps ON DELETE CASCADE,
    successor_id bigint NOT NULL REFERENCES steps ON DELETE CASCADE,
    PRIMARY KEY (step_id, successor_id)
);
CREATE INDEX needs_successor ON needs (successor_id);

-- Steps that wait for a place. `xid` lets a reader ask for what was written since it last looked,
-- without a gap: everything below the oldest transaction still running is there to be seen.
CREATE TABLE queue (
    step_id    bigint PRIMARY KEY REFERENCES steps ON DELETE CASCADE,
    run_id     bigint NOT NULL,
    project_id integer NOT NULL,
    shape_id   integer NOT NULL,
    priority   smallint NOT NULL DEFAULT 0,
    not_before timestamptz,
    ready_at   timestamptz NOT NULL DEFAULT now(),
    xid        xid8 NOT NULL DEFAULT pg_current_xact_id()
);
CREATE INDEX queue_xid ON queue (xid);
CREATE INDEX queue_run ON queue (run_id);

-- Why the steps of one shape in one project wait, cluster by cluster; written when it changes.
CREATE TABLE holds (
    project_id integer NOT NULL REFERENCES projects ON DELETE CASCADE,
    shape_id   integer NOT NULL REFERENCES shapes ON DELETE CASCADE,
    reasons    jsonb NOT NULL,
    since      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (project_id, shape_id)
);

CREATE TABLE attempts (
    step_id     bigint NOT NULL REFERENCES steps ON DELETE CASCADE,
    number      smallint NOT NULL CHECK (number > 0),
    cluster_id  integer NOT NULL REFERENCES clusters,
    state       attempt_state NOT NULL,
    revision    bigint NOT NULL,
    node        text NOT NULL DEFAULT '',
    assigned_at timestamptz NOT NULL DEFAULT now(),
    started_at  timestamptz,
    ended_at    timestamptz,
    cause       end_cause,
    exit_code   integer,
    signal      smallint,
    message     text NOT NULL DEFAULT '',
    PRIMARY KEY (step_id, number),
    CHECK ((cause IS NULL) = (ended_at IS NULL)),
    CHECK ((ended_at IS NOT NULL) = (state IN ('succeeded', 'failed', 'cancelled', 'lost')))
) WITH (fillfactor = 70);
-- The desired set of a cluster, by revision.
CREATE INDEX attempts_desired ON attempts (cluster_id, revision)
    WHERE state IN ('assigned', 'starting', 'running', 'stopping');
-- Two attempts of a step never run at the same time.
CREATE UNIQUE INDEX attempts_one_live ON attempts (step_id)
    WHERE state IN ('assigned', 'starting', 'running', 'stopping');

CREATE TABLE artifacts (
    step_id    bigint NOT NULL REFERENCES steps ON DELETE CASCADE,
    number     smallint NOT NULL,
    name       text NOT NULL,
    key        text NOT NULL,
    size       bigint NOT NULL,
    files      integer NOT NULL DEFAULT 1,
    sha256     text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (step_id, number, name)
);

CREATE TABLE log_chunks (
    step_id    bigint NOT NULL REFERENCES steps ON DELETE CASCADE,
    number     smallint NOT NULL,
    replica    smallint NOT NULL,
    sequence   integer NOT NULL,
    first_byte bigint NOT NULL,
    size       bigint NOT NULL,
    lines      integer NOT NULL,
    lost       bigint NOT NULL DEFAULT 0,
    first_at   timestamptz,
    last_at    timestamptz,
    sealed     boolean NOT NULL,
    complete   boolean NOT NULL DEFAULT false,
    PRIMARY KEY (step_id, number, replica, sequence)
);

-- ---------------------------------------------------------------- the house itself

-- Who leads. `epoch` rises with every new holder and fences what the old one still tries to write.
CREATE TABLE leases (
    name       text PRIMARY KEY,
    holder     text NOT NULL,
    epoch      bigint NOT NULL,
    expires_at timestamptz NOT NULL
);

-- One row for every change of state, in the transaction that made it.
CREATE TABLE audit (
    seq        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT now(),
    actor      text NOT NULL,                 -- user:ana@…, cluster:local, scheduler, …
    action     text NOT NULL,                 -- run.submitted, attempt.running, …
    project_id integer,
    run_id     bigint,
    step_idx   integer,
    attempt    smallint,
    object     text NOT NULL DEFAULT '',      -- when it is not a run or a part of one
    result     text NOT NULL DEFAULT 'ok',
    origin     text NOT NULL DEFAULT '',      -- address or program that it came from
    detail     jsonb
);
CREATE INDEX audit_run ON audit (run_id, seq) WHERE run_id IS NOT NULL;

CREATE TABLE instance (
    one        boolean PRIMARY KEY DEFAULT true CHECK (one),
    id         uuid NOT NULL DEFAULT gen_random_uuid(),
    created_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO instance DEFAULT VALUES;
