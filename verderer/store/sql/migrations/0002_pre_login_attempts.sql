-- How often somebody tried to log in lately, by account and by origin. The keys are keyed hashes,
-- since people type passwords into the wrong field. Not logged: a crash may forget them.
CREATE UNLOGGED TABLE login_attempts (
    key   bytea PRIMARY KEY CHECK (length(key) = 16),
    since timestamptz NOT NULL,
    n     integer NOT NULL CHECK (n >= 0)
) WITH (fillfactor = 50);
CREATE INDEX login_attempts_since ON login_attempts (since);
