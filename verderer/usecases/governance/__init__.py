"""What people do about resource groups: define them, grant them, ask for them, decide."""
