"""Commands about resource groups, project groups and approvals."""
