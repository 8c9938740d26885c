"""Finding where a graph first goes wrong: its inner values in one run, the parts of it that are run alone, repros."""
