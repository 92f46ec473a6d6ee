-- How urgent a run is among those of its resource group; `queue` has had the column all along.
ALTER TABLE runs ADD COLUMN priority smallint NOT NULL DEFAULT 0;
