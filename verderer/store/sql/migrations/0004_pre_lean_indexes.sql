-- Indexes that a change of state does not have to touch.

-- "Alive" by the column that changes once: from assigned to running no index is written any more.
DROP INDEX attempts_desired;
CREATE INDEX attempts_desired ON attempts (cluster_id, revision) WHERE ended_at IS NULL;
DROP INDEX attempts_one_live;
-- Two attempts of a step never run at the same time.
CREATE UNIQUE INDEX attempts_one_live ON attempts (step_id) WHERE ended_at IS NULL;

-- Nobody asks by it: runs that are not over are found by project and state.
DROP INDEX runs_live;
