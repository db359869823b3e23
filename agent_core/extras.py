"""How an extra of this package is installed: the one wording of every error that asks for it. Pure."""


def how_to_install(extra: str) -> str:
    """The command, by a path: on PyPI the name `countersign` belongs to another project.

    Args:
        extra: Its name, as in pyproject.toml.
    """
    return f"install the extra {extra!r} from your clone: pip install '/path/to/the/clone[{extra}]'"
