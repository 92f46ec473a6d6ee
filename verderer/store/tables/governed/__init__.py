"""Rows of governance: resource groups, grants, approvals, and the ledger of what is reserved."""
