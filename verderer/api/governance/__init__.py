"""Routes about resource groups, grants and approvals."""
