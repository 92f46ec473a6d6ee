-- Resource groups, who may use them, and the ledger of what is reserved in each.

CREATE TYPE grant_kind AS ENUM ('default', 'optional');

CREATE TABLE resource_groups (
    id            integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name          text NOT NULL CHECK (name ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
    title         text NOT NULL DEFAULT '',
    every_cluster boolean NOT NULL DEFAULT false,   -- those that join later, too
    labels        jsonb NOT NULL DEFAULT '{}',      -- what a run's labels must say
    queue_order   text NOT NULL DEFAULT 'fair' CHECK (queue_order IN ('fair', 'fifo')),
    version       integer NOT NULL DEFAULT 1,       -- rises with every change by a person
    created_at    timestamptz NOT NULL DEFAULT now(),
    retired_at    timestamptz
);
CREATE UNIQUE INDEX resource_groups_name ON resource_groups (name) WHERE retired_at IS NULL;

CREATE TABLE resource_group_clusters (
    resource_group_id integer NOT NULL REFERENCES resource_groups ON DELETE CASCADE,
    cluster_id        integer NOT NULL REFERENCES clusters ON DELETE CASCADE,
    PRIMARY KEY (resource_group_id, cluster_id)
);
CREATE INDEX resource_group_clusters_cluster ON resource_group_clusters (cluster_id);

CREATE TABLE grants (
    project_group_id  integer NOT NULL REFERENCES project_groups ON DELETE CASCADE,
    resource_group_id integer NOT NULL REFERENCES resource_groups ON DELETE CASCADE,
    kind              grant_kind NOT NULL,
    expires_at        timestamptz CHECK (expires_at IS NULL OR kind = 'optional'),
    granted_by        text NOT NULL,
    granted_at        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (project_group_id, resource_group_id)
);
CREATE UNIQUE INDEX grants_default ON grants (project_group_id) WHERE kind = 'default';
CREATE INDEX grants_resource_group ON grants (resource_group_id);

-- What is reserved, in milli-units or bytes: for a whole group in the row of project 0, and for
-- each project in it. `target` is a lower quota on its way: the quota follows what is given back
-- down to it, so that it is never below what is reserved. `recent` is the mean of what was
-- reserved, older moments counting less, at the moment `as_of`.
CREATE TABLE ledger (
    resource_group_id integer NOT NULL REFERENCES resource_groups ON DELETE CASCADE,
    project_id        integer NOT NULL,
    resource          text NOT NULL,
    quota             bigint CHECK (quota >= 0),
    target            bigint CHECK (target >= 0 AND target < quota),
    reserved          bigint NOT NULL DEFAULT 0 CHECK (reserved >= 0),
    recent            double precision NOT NULL DEFAULT 0,
    as_of             timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (resource_group_id, project_id, resource),
    CONSTRAINT never_over_quota CHECK (reserved <= quota)
) WITH (fillfactor = 50);

-- One row. Whoever changes what the tables above allow raises it; whoever gives out work holds it
-- meanwhile, so that nothing is given out under rules that are over.
CREATE TABLE governance (
    one     boolean PRIMARY KEY DEFAULT true CHECK (one),
    version bigint NOT NULL DEFAULT 1
);
INSERT INTO governance DEFAULT VALUES;

-- No foreign keys: these rows are written by the thousand, in transactions that hold the rules.
ALTER TABLE runs ADD COLUMN resource_group_id integer NOT NULL DEFAULT 1;
ALTER TABLE queue ADD COLUMN resource_group_id integer NOT NULL DEFAULT 1;
ALTER TABLE attempts ADD COLUMN resource_group_id integer;   -- null: from before there were groups

-- Why the steps of one shape, project and resource group wait; takes the place of `holds`.
CREATE TABLE lane_holds (
    project_id        integer NOT NULL REFERENCES projects ON DELETE CASCADE,
    shape_id          integer NOT NULL REFERENCES shapes ON DELETE CASCADE,
    resource_group_id integer NOT NULL,
    reasons           jsonb NOT NULL,
    since             timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (project_id, shape_id, resource_group_id)
);

-- What people ask for that somebody has to decide.
CREATE TYPE approval_state AS ENUM
    ('requested', 'approved', 'denied', 'withdrawn', 'expired');

CREATE TABLE approvals (
    id                integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind              text NOT NULL CHECK (kind IN ('access', 'quota')),
    project_group_id  integer NOT NULL REFERENCES project_groups ON DELETE CASCADE,
    resource_group_id integer NOT NULL REFERENCES resource_groups ON DELETE CASCADE,
    detail            jsonb NOT NULL DEFAULT '{}',   -- quota: {resource: amount}
    reason            text NOT NULL DEFAULT '',
    until             timestamptz,                   -- for how long it is wanted
    state             approval_state NOT NULL DEFAULT 'requested',
    requested_by      text NOT NULL,
    requested_at      timestamptz NOT NULL DEFAULT now(),
    decided_by        text NOT NULL DEFAULT '',
    decided_at        timestamptz,
    note              text NOT NULL DEFAULT '',
    CHECK ((decided_at IS NULL) = (state = 'requested'))
);
CREATE UNIQUE INDEX approvals_open ON approvals (kind, project_group_id, resource_group_id)
    WHERE state = 'requested';
CREATE INDEX approvals_state ON approvals (state, id DESC);

-- Every installation starts with one group of all clusters, which the first project group uses.
INSERT INTO resource_groups (id, name, title, every_cluster)
    OVERRIDING SYSTEM VALUE VALUES (1, 'everything', 'Everything', true);
SELECT setval(pg_get_serial_sequence('resource_groups', 'id'), 1);
INSERT INTO grants (project_group_id, resource_group_id, kind, granted_by)
    SELECT id, 1, 'default', 'system:migration' FROM project_groups;
