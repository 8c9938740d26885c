"""Seeded faults in exported graphs, and which of them the gate finds: see benchmarks/sensitivity.py."""
