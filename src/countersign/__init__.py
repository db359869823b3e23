"""Countersign's public names; the rooms behind them are linked in beside this file.

Nothing is decided or done here: this package only re-exports.
"""

__version__ = "0.1.0"
