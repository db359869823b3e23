"""The work that all contenders do, said in a prompt: so many calls of `count`, then perhaps one that is asked about."""


def prompt(cycles: int, *, asks: bool = False) -> str:
    """The prompt for so many cycles of a model call and a call of `count`.

    Args:
        cycles: How many.
        asks: Whether a call of `guarded`, which a person has to approve, comes after them.
    """
    return f"{cycles} {'asks' if asks else 'ends'}"


def next_call(said: str, done: int) -> str | None:
    """The tool that the model asks for when so many calls are done; None ends the turn."""
    cycles, then = said.split()
    if done < int(cycles):
        return "count"
    return "guarded" if then == "asks" and done == int(cycles) else None
