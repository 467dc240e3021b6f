"""The fault matrix: kind of tree x habit of the agent x moment x way to end.

The suite runs a covering array (every pair of values at least once); `python -m tests.matrix` runs the
full product.
"""
