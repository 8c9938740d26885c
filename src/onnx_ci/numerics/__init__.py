"""Pure numpy: parity figures and verdicts, paired latency."""
