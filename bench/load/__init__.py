"""The frugal other side: what submits, asks and seeds."""
