-- Why clusters let attempts wait, what else there is to say of an end, and what others hold.

-- The newest reason of an attempt, written when it changes. It means something only while the
-- attempt is assigned or starting; nobody has to clear it when that is over.
CREATE TABLE attempt_waits (
    step_id  bigint NOT NULL REFERENCES steps ON DELETE CASCADE,
    number   smallint NOT NULL,
    code     text NOT NULL,
    message  text NOT NULL,
    numbers  jsonb NOT NULL DEFAULT '{}',
    hopeless boolean NOT NULL,
    since    timestamptz NOT NULL DEFAULT now(),    -- when this code was first told
    PRIMARY KEY (step_id, number)
);

-- What the cluster could tell of the reason behind the cause.
ALTER TABLE attempts ADD COLUMN finding text NOT NULL DEFAULT '';
-- A known sign of trouble among the last lines of a chunk.
ALTER TABLE log_chunks ADD COLUMN sign text NOT NULL DEFAULT '';
CREATE INDEX log_chunks_sign ON log_chunks (step_id, number) WHERE sign <> '';

-- `allocatable` is what the platform may use: others' share is taken off already. NULL: not known.
ALTER TABLE nodes
    ADD COLUMN used                jsonb,
    ADD COLUMN others              jsonb,
    ADD COLUMN device_memory       bigint,
    ADD COLUMN device_memory_free  bigint;
ALTER TABLE capacity
    ADD COLUMN others  bigint NOT NULL DEFAULT 0 CHECK (others >= 0),
    ADD COLUMN biggest bigint NOT NULL DEFAULT 0 CHECK (biggest >= 0);  -- of any node, others' too
