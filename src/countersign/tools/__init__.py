"""`strands.tools` by our name."""
