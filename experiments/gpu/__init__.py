"""The papers' main experiments in small on this machine's GPUs: one module a paper, and what they share."""
