"""Which models, targets and shards there are, as a matrix."""
