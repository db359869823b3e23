"""What Countersign costs, measured against a bare Temporal workflow. Nothing here is part of the package."""
