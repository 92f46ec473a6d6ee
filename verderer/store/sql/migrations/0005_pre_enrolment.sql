-- How an agent comes to speak for a cluster, and what it found when it looked around.

ALTER TABLE clusters
    ADD COLUMN retired_at timestamptz,              -- taken out for good; its name may come back
    ADD COLUMN unfit      text NOT NULL DEFAULT ''; -- the required check that fails; '' is none

-- A way in that works once.
CREATE TABLE join_tokens (
    id         integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    cluster_id integer NOT NULL REFERENCES clusters ON DELETE CASCADE,
    token_hash bytea NOT NULL UNIQUE CHECK (length(token_hash) = 32),
    hint       text NOT NULL,
    created_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    used_at    timestamptz,
    used_from  text NOT NULL DEFAULT ''
);
CREATE INDEX join_tokens_cluster ON join_tokens (cluster_id);

-- The agent's own key; only its public half is here.
CREATE TABLE agent_keys (
    cluster_id integer PRIMARY KEY REFERENCES clusters ON DELETE CASCADE,
    public_key bytea NOT NULL CHECK (length(public_key) = 32),
    signed_ms  bigint NOT NULL,                     -- of the newest request; none is taken twice
    changed_at timestamptz NOT NULL DEFAULT now()
);

-- What it shows at each request: short-lived, the next one overlaps.
CREATE TABLE agent_credentials (
    token_hash bytea PRIMARY KEY CHECK (length(token_hash) = 32),
    cluster_id integer NOT NULL REFERENCES clusters ON DELETE CASCADE,
    expires_at timestamptz NOT NULL
);
CREATE INDEX agent_credentials_cluster ON agent_credentials (cluster_id);

-- What the agent found beside its cluster, one row a check.
CREATE TABLE cluster_checks (
    cluster_id integer NOT NULL REFERENCES clusters ON DELETE CASCADE,
    name       text NOT NULL,
    place      smallint NOT NULL,                   -- in the agent's order
    level      text NOT NULL CHECK (level IN ('pass', 'warn', 'fail', 'unknown')),
    required   boolean NOT NULL,
    message    text NOT NULL,
    remedy     text NOT NULL DEFAULT '',
    checked_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (cluster_id, name)
);
