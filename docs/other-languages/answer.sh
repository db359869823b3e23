#!/bin/sh
# Starts a session of the janitor and answers its question: curl (and jq) against Temporal's HTTP API.
#
#     sh answer.sh FOLDER SESSION_ID
set -eu
folder=$1 session_id=$2
queue=${COUNTERSIGN_TASK_QUEUE:-countersign}
namespace=${TEMPORAL_HTTP:-http://localhost:7243}/api/v1/namespaces/${TEMPORAL_NAMESPACE:-default}
session=$namespace/workflows/$session_id

say() { # unlike echo, leaves backslashes alone
    printf '%s\n' "$*"
}

send() { # send URL JSON
    curl --silent --show-error --fail-with-body "$1" --json "$2"
}

# 1. Start. An id that the namespace remembers is refused (HTTP 409).
start=$(jq --null-input --arg queue "$queue" --arg prompt "Delete files older than 5 days in $folder" '{
    workflowType: {name: "AgentSession"},
    taskQueue: {name: $queue},
    workflowIdReusePolicy: "WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE",
    input: [{protocol: 1, agent: "janitor", prompt: $prompt}]
}')
send "$session" "$start" >/dev/null
say "started $session_id"

# 2. Look until there is a question.
until question=$(send "$session/query/interrupts" '{}' | jq --exit-status '.queryResult[0][0]'); do
    sleep 0.2
done
say "asked:" "$(printf '%s' "$question" | jq --compact-output '[.name, (.calls[] | .tool, .input)]')"

# 3. What waits, over all sessions: needs no worker. The list lags behind by a moment.
waiting='WorkflowType = "AgentSession" AND ExecutionStatus = "Running" AND CountersignPending > 0'
until curl --silent --get "$namespace/workflows" --data-urlencode "query=$waiting" |
    jq --exit-status --arg id "$session_id" 'any(.executions[]?; .execution.workflowId == $id)' >/dev/null; do
    sleep 0.2
done
say "listed $session_id"

# 4. A signal can't say no: an answer to no question ends up in the audit trail, as refused.
send "$session/signal/respond" '{"input": [{"interruptResponse": {"interruptId": "int-0", "response": "y"}}]}' >/dev/null
until code=$(send "$session/query/audit" '{}' |
    jq --exit-status 'first(.queryResult[0][] | select(.event == "refused")) | .detail.code'); do
    sleep 0.2
done
say "recorded: $code"

# 5. An update can. One update id per decision, the same for every re-send.
answer() { # answer UPDATE_ID DIGEST
    update=$(printf '%s' "$question" | jq --arg update_id "$1" --arg digest "$2" '{
        waitPolicy: {lifecycleStage: "UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED"},
        request: {meta: {updateId: $update_id}, input: {args: [{
            interruptResponse: {interruptId: .id, response: "y"},
            digest: $digest, responder: {id: "ana"}, comment: "sent by curl"
        }]}}
    }')
    send "$session/update/answer" "$update" | # a refusal, too, has HTTP status 200
        jq --compact-output '.outcome | .success[0]? // (.failure | [.applicationFailureInfo.type, .message])'
}
say "refused:" "$(answer "$session_id-click-1" "not-what-I-saw")"
say "accepted:" "$(answer "$session_id-click-2" "$(printf '%s' "$question" | jq --raw-output .digest)")"
say "again:" "$(answer "$session_id-click-2" "the first outcome counts, even after the end")"

# 6. The result: the last event of the history, waited for.
until result=$(curl --silent --show-error --get "$session/history" --data waitNewEvent=true \
    --data historyEventFilterType=HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT |
    jq --exit-status --compact-output '.history.events[0] |
        .workflowExecutionCompletedEventAttributes.result[0] // .eventType'); do
    sleep 0.2
done
say "result:" "$result"
