// Starts a session of the janitor and answers its question: Go's standard library against Temporal's HTTP API.
//
//	go run answer.go FOLDER SESSION_ID
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"time"
)

// Payloads travel as they are (base64), not as the API's shorthand, which changes some values.
const mediaType = "application/json+no-payload-shorthand"

const waiting = `WorkflowType = "AgentSession" AND ExecutionStatus = "Running" AND CountersignPending > 0`

type object = map[string]any

// payload is a Temporal payload; encoding/json writes []byte as base64.
type payload struct {
	Metadata map[string][]byte `json:"metadata"`
	Data     []byte            `json:"data"`
}

type payloads struct {
	Payloads []payload `json:"payloads"`
}

type question struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Digest string `json:"digest"`
	Calls  []struct {
		Tool  string          `json:"tool"`
		Input json.RawMessage `json:"input"` // shown as it came: no number loses digits
	} `json:"calls"`
}

type failure struct {
	Message string `json:"message"`
	Info    struct {
		Type string `json:"type"`
	} `json:"applicationFailureInfo"`
}

type event struct {
	Type      string `json:"eventType"`
	Completed struct {
		Result payloads `json:"result"`
	} `json:"workflowExecutionCompletedEventAttributes"`
}

func env(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func wrapped(value any) payloads {
	metadata := map[string][]byte{"encoding": []byte("json/plain")}
	return payloads{[]payload{{Metadata: metadata, Data: must(json.Marshal(value))}}}
}

// unwrap reads the one value of some payloads.
func unwrap(from payloads, into any) {
	if len(from.Payloads) != 1 {
		log.Fatalf("%d payloads instead of one", len(from.Payloads))
	}
	must(0, json.Unmarshal(from.Payloads[0].Data, into))
}

// call makes one request, a POST if there is a body, and ends the program if it fails.
func call(address string, body any, into any) {
	request := must(http.NewRequest(http.MethodGet, address, nil))
	if body != nil {
		request = must(http.NewRequest(http.MethodPost, address, bytes.NewReader(must(json.Marshal(body)))))
	}
	request.Header.Set("Content-Type", mediaType)
	request.Header.Set("Accept", mediaType)
	response := must(http.DefaultClient.Do(request))
	defer response.Body.Close()
	text := must(io.ReadAll(response.Body))
	if response.StatusCode != http.StatusOK {
		log.Fatalf("%s: %s %s", address, response.Status, text)
	}
	must(0, json.Unmarshal(text, into))
}

// asked waits for the first question.
func asked(session string) question {
	for ; ; time.Sleep(200 * time.Millisecond) {
		var answer struct{ QueryResult payloads }
		call(session+"/query/interrupts", object{}, &answer)
		var questions []question
		unwrap(answer.QueryResult, &questions)
		if len(questions) > 0 {
			return questions[0]
		}
	}
}

// listed waits until the session stands in the list of what waits, which lags behind by a moment.
func listed(namespace, id string) {
	for ; ; time.Sleep(200 * time.Millisecond) {
		var page struct {
			Executions []struct {
				Execution struct{ WorkflowID string }
			}
		}
		call(namespace+"/workflows?query="+url.QueryEscape(waiting), nil, &page)
		for _, found := range page.Executions {
			if found.Execution.WorkflowID == id {
				return
			}
		}
	}
}

// answer sends an answer. One update id per decision, the same for every re-send.
func answer(session, updateID string, given object) string {
	var reply struct {
		Outcome struct {
			Success payloads
			Failure *failure
		}
	}
	call(session+"/update/answer", object{
		"waitPolicy": object{"lifecycleStage": "UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED"},
		"request":    object{"meta": object{"updateId": updateID}, "input": object{"args": wrapped(given)}},
	}, &reply)
	if refusal := reply.Outcome.Failure; refusal != nil { // with HTTP status 200
		return refusal.Info.Type + ": " + refusal.Message // a code of the wire contract, and the reason
	}
	var accepted json.RawMessage
	unwrap(reply.Outcome.Success, &accepted)
	return string(accepted)
}

// result waits for the end of the session.
func result(session string) string {
	for {
		var page struct{ History struct{ Events []event } }
		call(session+"/history?waitNewEvent=true&historyEventFilterType=HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT", nil, &page)
		for _, last := range page.History.Events {
			if last.Type != "EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED" {
				return last.Type
			}
			var end struct {
				StopReason string `json:"stop_reason"`
				Cycles     int    `json:"cycles"`
			}
			unwrap(last.Completed.Result, &end)
			return fmt.Sprintf("%s after %d cycles", end.StopReason, end.Cycles)
		}
	}
}

func main() {
	folder, id := os.Args[1], os.Args[2]
	namespace := env("TEMPORAL_HTTP", "http://localhost:7243") + "/api/v1/namespaces/" + env("TEMPORAL_NAMESPACE", "default")
	session := namespace + "/workflows/" + url.PathEscape(id)

	call(session, object{
		"workflowType":          object{"name": "AgentSession"},
		"taskQueue":             object{"name": env("COUNTERSIGN_TASK_QUEUE", "countersign")},
		"workflowIdReusePolicy": "WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE",
		"input": wrapped(object{
			"protocol": 1, "agent": "janitor", "prompt": "Delete files older than 5 days in " + folder,
		}),
	}, &object{})
	fmt.Println("started", id)

	waits := asked(session)
	fmt.Println("asked:", waits.Name, waits.Calls[0].Tool, string(waits.Calls[0].Input))
	listed(namespace, id)
	fmt.Println("listed", id)

	yes := func(digest string) object {
		return object{
			"interruptResponse": object{"interruptId": waits.ID, "response": "y"},
			"digest":            digest, "responder": object{"id": "ana"}, "comment": "sent from Go",
		}
	}
	click := fmt.Sprintf("%s-%d", id, time.Now().UnixNano())
	fmt.Println("refused:", answer(session, click+"-0", yes("not-what-I-saw")))
	fmt.Println("accepted:", answer(session, click, yes(waits.Digest)))
	fmt.Println("again:", answer(session, click, yes(waits.Digest)))
	fmt.Println("result:", result(session))
}
