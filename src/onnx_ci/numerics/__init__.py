"""Pure numpy: parity, goldens, paired latency. No files, no sessions, no clock of its own."""
