"""A real Kubernetes control plane on this machine, with KWOK's make-believe nodes."""
