"""How much may travel at once, and how long things wait if nobody says otherwise."""

MAX_VALUE_BYTES = 1_500_000
"""The largest single value that is sent (Temporal refuses 2 MB)."""

MAX_PROMPT_BYTES = MAX_VALUE_BYTES // 3
"""The largest prompt that is taken, so that it travels on with what comes of it."""

MAX_ARGUMENTS_BYTES = 1_900_000
"""The most that the arguments of one child, activity or run may weigh together: the 2 MB count for all of them."""

MAX_TASK_BYTES = 3_000_000
"""The most that one workflow task may issue (gRPC refuses 4 MB)."""

DEADLINE_S = 30 * 86_400.0
"""How long a question waits unless its session's options say otherwise."""

CYCLE_OVERRUN_S = 86_400.0
"""A cycle that lasts longer counts as stuck, if its session's start says nothing else."""
