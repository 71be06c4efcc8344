package appwrapper_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/manifest/appwrapper"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

var began = time.Unix(1_800_000_000, 0)

// at is a record in a phase, for a reason; what has come before has its moment.
func at(phase workload.Phase, attempt int, kind workload.ReasonKind, message string) *workload.Record {
	r := &workload.Record{Phase: phase, Attempt: attempt, Times: workload.Times{Submitted: began}}
	r.Life.MaxRunTime = workload.Duration(2 * time.Second)
	if kind != "" {
		r.Reason = &workload.Reason{Kind: kind, Message: message}
	}
	switch phase {
	case workload.Queued:
	case workload.Admitted:
		r.Times.Admitted, r.Holding = began, true
	default:
		r.Times.Admitted, r.Times.Dispatched, r.Times.Running, r.Holding = began, began, began, !phase.Final()
	}
	return r
}

// conditionsOf are the conditions of a status, each as its fields.
func conditionsOf(status map[string]any, fields ...string) []string {
	var all []string
	list, _ := status["conditions"].([]any)
	for _, item := range list {
		c, _ := item.(map[string]any)
		var parts []string
		for _, field := range fields {
			parts = append(parts, fmt.Sprint(c[field]))
		}
		all = append(all, strings.Join(parts, "/"))
	}
	return all
}

// The words, and the dots, that users of MCAD know.
func TestWordsOfMCAD(t *testing.T) {
	t.Parallel()
	const started = "Init/ Queueing/AwaitingHeadOfLine HeadOfLine/FrontOfQueue."
	const ran = started + " Dispatched/AppWrapperRunnable Running/PodsRunning"
	for name, c := range map[string]struct {
		view       appwrapper.View
		state      string
		conditions string
		message    string // of the last condition
	}{
		"no controller has it yet": {appwrapper.View{}, "", "Init/", ""},
		"behind others":            {appwrapper.View{Record: at(workload.Queued, 1, workload.ReasonBehindHead, "behind a")}, "Pending", "Init/ Queueing/AwaitingHeadOfLine", "behind a"},
		"no place":                 {appwrapper.View{Record: at(workload.Queued, 1, workload.ReasonFit, "2 more cpu")}, "Pending", started + " Backoff/AppWrapperNotRunnable.", "Insufficient resources to dispatch AppWrapper. 2 more cpu"},
		"no quota":                 {appwrapper.View{Record: at(workload.Queued, 1, workload.ReasonQuota, "1 more gpu")}, "Pending", started + " Backoff/quota limit exceeded", "Insufficient quota and/or resources to dispatch AppWrapper. 1 more gpu"},
		"admitted":                 {appwrapper.View{Record: at(workload.Admitted, 1, "", "")}, "Pending", started, ""},
		"running":                  {appwrapper.View{Record: at(workload.Running, 1, "", "")}, "Running", ran, ""},
		"preempted":                {appwrapper.View{Record: at(workload.Evicting, 1, workload.ReasonPreempted, "by b")}, "Pending", ran + " PreemptCandidate/" + string(workload.ReasonPreempted), "by b"},
		"not ready in time":        {appwrapper.View{Record: at(workload.Evicting, 1, workload.ReasonNotReady, "1 of 2")}, "Pending", ran + " PreemptCandidate/MinPodsNotRunning", "1 of 2"},
		"completed":                {appwrapper.View{Record: at(workload.Succeeded, 1, workload.ReasonJobEnded, "done")}, "Completed", ran + " Completed/PodsCompleted", "done"},
		"some pods still run": {appwrapper.View{Record: at(workload.Succeeded, 1, workload.ReasonJobEnded, "done"), Pods: appwrapper.Counts{Running: 1}}, "RunningHoldCompletion",
			ran + " RunningHoldCompletion/SomeItemsCompleted", "done"},
		"failed":         {appwrapper.View{Record: at(workload.Failed, 1, workload.ReasonJobEnded, "exit 1")}, "Failed", ran + " Failed/" + string(workload.ReasonJobEnded), "exit 1"},
		"not created":    {appwrapper.View{Record: at(workload.Failed, 1, workload.ReasonRefused, "port 0")}, "Failed", ran + " Failed/ItemCreationFailure.", "port 0"},
		"rejected":       {appwrapper.View{Rejected: &workload.Reason{Message: "no such queue"}}, "Failed", "Init/ Failed/Rejected", "no such queue"},
		"ran too long":   {appwrapper.View{Record: at(workload.Cancelled, 1, workload.ReasonMaxRunTime, "")}, "Failed", ran + " PreemptCandidate/DispatchDeadlineExceeded", "Dispatch deadline exceeded. allowed to run for 2 seconds"},
		"deleted":        {appwrapper.View{Record: at(workload.Cancelled, 1, workload.ReasonCancelled, "by her")}, "Deleted", ran + " Deleted/" + string(workload.ReasonCancelled), "by her"},
		"with a warning": {appwrapper.View{Record: at(workload.Running, 1, "", ""), Warnings: []string{"a does nothing", "b too"}}, "Running", ran, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.view.Created, c.view.Now = began, began.Add(time.Minute)
			status, _ := appwrapper.Status(appwrapper.V1beta1, nil, c.view)
			got := conditionsOf(status, "type", "reason")
			if status["state"] != c.state || strings.ReplaceAll(strings.Join(got, " "), "<nil>", "") != c.conditions {
				t.Errorf("%s: state %v with %q, want %s with %s", name, status["state"], got, c.state, c.conditions)
			}
			last := got[len(got)-1]
			if status["queuejobstate"] != last[:strings.Index(last, "/")] {
				t.Errorf("%s: queuejobstate %v, but the last condition is %s", name, status["queuejobstate"], last)
			}
			if messages := conditionsOf(status, "message"); strings.TrimPrefix(messages[len(messages)-1], "<nil>") != c.message {
				t.Errorf("%s: it says %q, want %q", name, messages[len(messages)-1], c.message)
			}
			if message := status["message"]; len(c.view.Warnings) > 0 && message != "a does nothing. b too." {
				t.Errorf("%s: message %v", name, message)
			}
		})
	}
}

// The numbers beside the words: what the gang asks for in all, and its pods by phase.
func TestNumbersOfMCAD(t *testing.T) {
	t.Parallel()
	record := at(workload.Running, 1, "", "")
	record.Priority = 9
	record.PodSets = []workload.PodSet{
		{Name: "head", Count: 1, Template: workload.Template{Requests: resource.List{"cpu": 2500, "memory": 4 << 30}}},
		{Name: "workers", Count: 3, Template: workload.Template{Requests: resource.List{"cpu": 1000, "memory": 1 << 30, "nvidia.com/gpu": 2}}},
	}
	view := appwrapper.View{Created: began, Now: began, Record: record, Pods: appwrapper.Counts{Pending: 1, Running: 2, Succeeded: 3, Failed: 4}}
	status, _ := appwrapper.Status(appwrapper.V1beta1, nil, view)
	for field, want := range map[string]string{
		"canrun": "true", "systempriority": "9", "totalcpu": "5500", "totalmemory": "7516192768", "totalgpu": "6",
		"pending": "1", "running": "2", "Succeeded": "3", "failed": "4",
	} {
		t.Run(field, func(t *testing.T) {
			if got := fmt.Sprint(status[field]); got != want {
				t.Errorf("%s is %s, want %s", field, got, want)
			}
		})
	}
}

// A gang that was preempted tells so in its log, with the cause, also when it waits
// and runs again; what it was told before stays.
func TestThePreemptionStaysInTheLog(t *testing.T) {
	t.Parallel()
	var status map[string]any
	for _, r := range []*workload.Record{
		at(workload.Running, 1, "", ""), at(workload.Evicting, 1, workload.ReasonPreempted, "preempted by b"),
		at(workload.Queued, 2, workload.ReasonFit, "2 more cpu"), at(workload.Running, 2, "", ""),
	} {
		status, _ = appwrapper.Status(appwrapper.V1beta1, status, appwrapper.View{Created: began, Record: r, Now: began.Add(time.Minute)})
	}
	const want = "Init Queueing HeadOfLine Dispatched Running PreemptCandidate Backoff Queueing HeadOfLine Backoff Dispatched Running"
	if got := strings.Join(conditionsOf(status, "type"), " "); got != want {
		t.Errorf("the log is %s, want %s", got, want)
	}
	if got := conditionsOf(status, "reason", "message"); got[6] != "PreemptionTriggered/preempted by b" || fmt.Sprint(status["numberOfRequeueings"]) != "1" {
		t.Errorf("the log is %q after %v requeueings", got, status["numberOfRequeueings"])
	}
}

// Phases and conditions of v1beta2, one condition per type.
func TestPhasesOfV1beta2(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		view              appwrapper.View
		phase, conditions string
	}{
		"no controller has it yet": {appwrapper.View{}, "Suspended", "QuotaReserved/False/Suspended"},
		"waits":                    {appwrapper.View{Record: at(workload.Queued, 1, workload.ReasonFit, "m")}, "Suspended", "QuotaReserved/False/" + string(workload.ReasonFit) + " ResourcesDeployed/False/Suspended"},
		"admitted":                 {appwrapper.View{Record: at(workload.Admitted, 1, "", "")}, "Resuming", "QuotaReserved/True/Resuming ResourcesDeployed/False/Resuming PodsReady/False/InsufficientPodsReady"},
		"running":                  {appwrapper.View{Record: at(workload.Running, 1, "", "")}, "Running", "QuotaReserved/True/Running ResourcesDeployed/True/Running PodsReady/True/SufficientPodsReady Unhealthy/False/FoundNoFailedPods"},
		"a pod failed": {appwrapper.View{Record: at(workload.Running, 1, "", ""), Pods: appwrapper.Counts{Failed: 1}}, "Running",
			"QuotaReserved/True/Running ResourcesDeployed/True/Running PodsReady/True/SufficientPodsReady Unhealthy/True/FoundFailedPods"},
		"preempted": {appwrapper.View{Record: at(workload.Evicting, 1, workload.ReasonPreempted, "m")}, "Resetting",
			"QuotaReserved/True/Resetting ResourcesDeployed/True/Resetting PodsReady/False/InsufficientPodsReady Unhealthy/True/" + string(workload.ReasonPreempted) + " DeletingResources/True/DeletionInitiated"},
		"succeeded":   {appwrapper.View{Record: at(workload.Succeeded, 1, workload.ReasonJobEnded, "m")}, "Succeeded", "QuotaReserved/False/Succeeded ResourcesDeployed/False/Succeeded"},
		"failed":      {appwrapper.View{Record: at(workload.Failed, 1, workload.ReasonJobEnded, "m")}, "Failed", "QuotaReserved/False/Failed ResourcesDeployed/False/Failed Unhealthy/True/FailedComponent"},
		"not created": {appwrapper.View{Record: at(workload.Failed, 1, workload.ReasonRefused, "m")}, "Failed", "QuotaReserved/False/Failed ResourcesDeployed/False/Failed Unhealthy/True/CreateFailed"},
		"rejected":    {appwrapper.View{Rejected: &workload.Reason{Message: "m"}}, "Failed", "QuotaReserved/False/Failed"},
		"cancelled":   {appwrapper.View{Record: at(workload.Cancelled, 1, workload.ReasonCancelled, "m")}, "Failed", "QuotaReserved/False/Failed ResourcesDeployed/False/Failed Unhealthy/True/Cancelled"},
		"cancelling": {appwrapper.View{Record: at(workload.Cancelling, 1, workload.ReasonCancelled, "m")}, "Terminating",
			"QuotaReserved/True/Terminating ResourcesDeployed/True/Terminating PodsReady/False/InsufficientPodsReady DeletingResources/True/DeletionInitiated"},
		"ran too long": {appwrapper.View{Record: at(workload.Cancelled, 1, workload.ReasonMaxRunTime, "m")}, "Failed",
			"QuotaReserved/False/Failed ResourcesDeployed/False/Failed Unhealthy/True/" + string(workload.ReasonMaxRunTime)},
		"warned": {appwrapper.View{Warnings: []string{"w"}}, "Suspended", "QuotaReserved/False/Suspended Warned/True/FieldsWithoutEffect"},
	} {
		t.Run(name, func(t *testing.T) {
			c.view.Created, c.view.Now = began, began.Add(time.Minute)
			status, _ := appwrapper.Status(appwrapper.V1beta2, nil, c.view)
			if got := strings.Join(conditionsOf(status, "type", "status", "reason"), " "); status["phase"] != c.phase || got != c.conditions {
				t.Errorf("%s: phase %v with %s; want %s with %s", name, status["phase"], got, c.phase, c.conditions)
			}
		})
	}
}
