"""First config and workflows, and what is missing on this machine."""
