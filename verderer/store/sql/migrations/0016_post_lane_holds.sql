-- `lane_holds` has taken its place.
DROP TABLE holds;
