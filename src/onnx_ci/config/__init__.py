"""Config text into records: schema, errors with paths, JSON schema."""
