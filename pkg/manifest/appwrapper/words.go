package appwrapper

import (
	"fmt"
	"time"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// States of v1beta1.
const (
	statePending   = "Pending"
	stateRunning   = "Running"
	stateHolding   = "RunningHoldCompletion"
	stateCompleted = "Completed"
	stateFailed    = "Failed"
	stateDeleted   = "Deleted"
)

// statusV1beta1 words the view as MCAD does.
func statusV1beta1(old map[string]any, v View) map[string]any {
	state, steps := words(v)
	log := readLog(old)
	if v.Record != nil && v.Record.Phase == workload.Queued && v.Record.Attempt > 1 {
		log = noteRequeue(log, v)
	}
	log = extend(log, steps, v.Now)
	status := map[string]any{
		"state": state, "queuejobstate": steps[len(steps)-1].kind, "conditions": writeLog(log),
		"controllerfirsttimestamp": micro(firstSeen(v)), "canrun": false, "filterignore": true,
		"pending": v.Pods.Pending, "running": v.Pods.Running, "Succeeded": v.Pods.Succeeded, "failed": v.Pods.Failed,
	}
	if message := warnings(v); message != "" {
		status["message"] = message
	}
	r := v.Record
	if r == nil {
		return status
	}
	status["canrun"] = r.Holding && !r.Phase.Final() && r.Phase != workload.Evicting && r.Phase != workload.Cancelling
	status["systempriority"] = r.Priority
	status["totalcpu"] = amount(r.Workload, resource.CPU)
	status["totalmemory"] = amount(r.Workload, resource.Memory)
	status["totalgpu"] = amount(r.Workload, "nvidia.com/gpu")
	status["numberOfRequeueings"] = r.Attempt - 1
	status["sender"] = "before ScheduleNext - setHOL"
	if !r.Times.Dispatched.IsZero() {
		status["controllerfirstdispatchtimestamp"] = micro(r.Times.Dispatched)
		status["sender"] = "before manageQueueJob - afterEtcdDispatching"
	} else if first, kept := old["controllerfirstdispatchtimestamp"]; kept {
		status["controllerfirstdispatchtimestamp"] = first
	}
	return status
}

func firstSeen(v View) time.Time {
	if v.Record != nil {
		return v.Record.Times.Submitted
	}
	return v.Created
}

func warnings(v View) string {
	message := ""
	for _, warning := range v.Warnings {
		message += warning + ". "
	}
	if len(message) > 0 {
		message = message[:len(message)-1]
	}
	return message
}

// words returns the state and the conditions that lead to it in the current
// attempt.
func words(v View) (string, []entry) {
	seen := firstSeen(v)
	init := entry{kind: "Init", at: seen}
	switch {
	case v.Rejected != nil:
		return stateFailed, []entry{init, {"Failed", "Rejected", v.Rejected.Message, time.Time{}}}
	case v.Record == nil:
		return "", []entry{init}
	}
	r := v.Record
	queueing := entry{kind: "Queueing", reason: "AwaitingHeadOfLine", at: seen}
	head := entry{kind: "HeadOfLine", reason: "FrontOfQueue.", at: r.Times.Admitted}
	dispatched := entry{kind: "Dispatched", reason: "AppWrapperRunnable", at: r.Times.Dispatched}
	running := entry{kind: "Running", reason: "PodsRunning", at: r.Times.Running}
	started := []entry{init, queueing, head}
	if !r.Times.Dispatched.IsZero() {
		started = append(started, dispatched)
	}
	if !r.Times.Running.IsZero() {
		started = append(started, running)
	}
	switch r.Phase {
	case workload.Queued:
		return statePending, waiting(r, init, queueing, head)
	case workload.Admitted:
		return statePending, started
	case workload.Dispatched, workload.Running:
		if reason := r.Reason; reason != nil {
			started[len(started)-1].message = reason.Message
		}
		return stateRunning, started
	case workload.Evicting:
		reason := cause(r)
		if r.Reason != nil && r.Reason.Kind == workload.ReasonNotReady {
			reason = "MinPodsNotRunning"
		}
		return statePending, append(started, entry{kind: "PreemptCandidate", reason: reason, message: why(r)})
	}
	state, last := lastWords(v)
	return state, append(started, last)
}

// lastWords returns the state and the last condition of a workload that has ended, or is
// being cancelled.
func lastWords(v View) (string, entry) {
	r := v.Record
	end := func(kind, reason, message string) entry { return entry{kind, reason, message, r.Times.Finished} }
	switch r.Phase {
	case workload.Succeeded:
		if v.Pods.Pending+v.Pods.Running > 0 {
			return stateHolding, end("RunningHoldCompletion", "SomeItemsCompleted", why(r))
		}
		return stateCompleted, end("Completed", "PodsCompleted", why(r))
	case workload.Failed:
		if r.Reason != nil && r.Reason.Kind == workload.ReasonRefused {
			return stateFailed, end("Failed", "ItemCreationFailure.", why(r))
		}
		return stateFailed, end("Failed", cause(r), why(r))
	}
	if r.Reason != nil && r.Reason.Kind == workload.ReasonMaxRunTime {
		limit := time.Duration(r.Life.MaxRunTime) / time.Second
		return stateFailed, end("PreemptCandidate", "DispatchDeadlineExceeded",
			fmt.Sprintf("Dispatch deadline exceeded. allowed to run for %d seconds", limit))
	}
	return stateDeleted, end("Deleted", cause(r), why(r))
}

// waiting words why a workload is in its queue.
func waiting(r *workload.Record, init, queueing, head entry) []entry {
	if r.Reason == nil {
		return []entry{init, queueing}
	}
	switch kind := r.Reason.Kind; {
	case kind == workload.ReasonBehindHead || kind == workload.ReasonPending:
		queueing.message = r.Reason.Message
		return []entry{init, queueing}
	case kind == workload.ReasonQuota || kind == workload.ReasonNeverFits && r.Reason.Quota != nil:
		return []entry{init, queueing, head, {
			kind: "Backoff", reason: "quota limit exceeded",
			message: "Insufficient quota and/or resources to dispatch AppWrapper. " + r.Reason.Message,
		}}
	}
	return []entry{init, queueing, head, {
		kind: "Backoff", reason: "AppWrapperNotRunnable.",
		message: "Insufficient resources to dispatch AppWrapper. " + r.Reason.Message,
	}}
}

func cause(r *workload.Record) string {
	if r.Reason == nil {
		return "Unknown"
	}
	return string(r.Reason.Kind)
}

func why(r *workload.Record) string {
	if r.Reason == nil {
		return ""
	}
	return r.Reason.Message
}
