"""What Countersign costs, beside a bare Temporal workflow and its closest peer. Nothing here is part of the package."""
