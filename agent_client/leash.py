"""Runs a command that must not outlive whoever started it: `python leash.py <parent's pid> <command …>`.

A script and not a function for a forked child, because the parent has threads. It becomes the
command, so nothing of it stays. Linux only: elsewhere the command is just run.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
"""From <linux/prctl.h>: the signal that this process gets when its parent dies; it survives exec."""


def main(parent: int, command: list[str]) -> None:
    """Become the command, with SIGTERM due at the parent's death."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it died before the signal was set
            raise SystemExit(f"process {parent}, which started this one, is gone")
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
