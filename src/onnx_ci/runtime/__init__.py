"""What a service may import: contract validator, session opener, variant router."""
