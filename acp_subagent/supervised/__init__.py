"""Supervision: one child behind a chain of runs, whatever protocol it speaks."""
