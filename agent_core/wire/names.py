"""Names on the wire: workflows, activities, signals, updates, queries, search attributes."""

PROTOCOL = 1

SESSION_WORKFLOW = "AgentSession"
CYCLE_WORKFLOW = "AgentCycle"
MODEL_ACTIVITY = "countersign.call_model"
STEP_ACTIVITY = "countersign.run_step"
READ_CYCLE_ACTIVITY = "countersign.read_cycle"
SEARCH_ATTRIBUTES_ACTIVITY = "countersign.search_attributes"
OUR_ACTIVITIES = "countersign."
"""How the types of these begin; the type of a tool's activity is the tool's name."""

RESPOND_SIGNAL = "respond"
PROMPT_SIGNAL = "prompt"
STOP_SIGNAL = "stop"
ANSWER_UPDATE = "answer"
INVOKE_UPDATE = "invoke"
CLOSE_UPDATE = "close"
INTERRUPTS_QUERY = "interrupts"
STATUS_QUERY = "status"
TRANSCRIPT_QUERY = "transcript"
AUDIT_QUERY = "audit"

MEMO_QUESTIONS = "countersign_questions"
SEARCH_AGENT = "CountersignAgent"
SEARCH_STATUS = "CountersignStatus"
SEARCH_PENDING = "CountersignPending"
SEARCH_APPROVERS = "CountersignApprovers"
SEARCH_DEADLINE = "CountersignDeadline"

INVOKING = "invoking"
"""The heartbeat that a tool's activity has recorded before it begins to run the tool."""

WORKER_READY = "countersign worker ready: agents "
"""Begins the line on standard error with which a worker says that it serves: their names follow, then "; " and more."""


def cycle_id(session_id: str, cycle: int) -> str:
    """The workflow id of a session's cycle."""
    return f"{session_id}/cycle-{cycle}"
