"""The parts of S3 that the data paths do not need: signatures and lifecycle documents."""
