"""What runs inside a job, on a node that has Python 3.6 or newer and nothing of ours."""
