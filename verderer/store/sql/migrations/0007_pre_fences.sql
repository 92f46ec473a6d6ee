-- What an agent promises about work that may be rerun once its cluster is lost.

ALTER TABLE clusters
    ADD COLUMN stops_within_s double precision CHECK (stops_within_s >= 0),
    -- Since when every session has promised at least that; what was assigned earlier is not covered.
    ADD COLUMN promised_since timestamptz,
    -- The silence, by the heartbeat that it began with, whose work has been given up.
    ADD COLUMN fenced_seen_at timestamptz;
