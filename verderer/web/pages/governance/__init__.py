"""Pages of governance: resource groups, who may use them, what was asked for, and teams."""
