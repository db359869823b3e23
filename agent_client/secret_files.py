"""Reads files of secrets. An error shows none, not even one that was given in the place of a file's name."""

from pathlib import Path


def read_secrets(file: Path, setting: str) -> str:
    """The text of a file.

    Args:
        file: Its path, as the setting says.
        setting: A flag's or a variable's name, for the error.

    Raises:
        ValueError: If it can't be read, with the cause and the next step. Only an absolute path is shown.
    """
    if file == Path():  # an empty variable, as an EnvironmentFile may have it
        raise ValueError(f"{setting} is empty; name the file in it, or do not set it at all")
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        cause = (error.strerror if isinstance(error, OSError) else None) or "it is no text"
    if file.is_absolute() and not any(character.isspace() or character == "=" for character in str(file)):
        raise ValueError(f"{file}: {cause}; check {setting}")
    raise ValueError(
        f"{cause}; {setting} must say where they are, best by an absolute path. What it says is not shown: it may be "
        "one of them"
    )
