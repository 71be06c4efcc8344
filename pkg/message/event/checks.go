package event

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// States of what an AdmissionCheck is asked.
const (
	CheckOpen     = "open"     // an answer is wanted
	CheckAnswered = "answered" // the check has agreed; Retry and Rejected still count
	CheckClosed   = "closed"   // no answer counts any more
)

// CheckWanted is what an AdmissionCheck is asked about a workload. Last value per check and
// workload; it comes again when the answer was taken in, or was refused.
type CheckWanted struct {
	Check          string `json:"check"`
	ControllerName string `json:"controllerName,omitempty"`
	// Parameters name the object with the settings of the check.
	Parameters *CheckParameters `json:"parameters,omitempty"`
	Workload   workload.ID      `json:"workload"`
	// Number of the request, which the answer repeats. No two of a workload have the same.
	Number  int    `json:"number"`
	Attempt int    `json:"attempt,omitempty"`
	Epoch   int64  `json:"epoch"`
	State   string `json:"state"`
	// Why it is closed.
	Why       string    `json:"why,omitempty"`
	Queue     string    `json:"queue,omitempty"`
	Namespace string    `json:"namespace,omitempty"`
	Kind      string    `json:"kind,omitempty"`
	Name      string    `json:"name,omitempty"`
	Submitter string    `json:"submitter,omitempty"`
	Priority  int32     `json:"priority,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	// QuotaReserved: the quota of the flavors is held for the workload. Otherwise gangs have
	// to be evicted for it first.
	QuotaReserved bool            `json:"quotaReserved,omitempty"`
	PodSets       []CheckedPodSet `json:"podSets,omitempty"`
	// Answer is the last answer, as it was taken in or refused.
	Answer *CheckTaken `json:"answer,omitempty"`
}

// CheckParameters names the object with the settings of an AdmissionCheck.
type CheckParameters struct {
	APIGroup string `json:"apiGroup"`
	Kind     string `json:"kind"`
	Name     string `json:"name"`
}

// CheckedPodSet is a pod set of a workload that is checked.
type CheckedPodSet struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
	// Requests are of one pod.
	Requests resource.List `json:"requests"`
	// Flavors from which its resources would be charged.
	Flavors map[resource.Name]string `json:"flavors,omitempty"`
}

// CheckTaken is an answer that came.
type CheckTaken struct {
	Number  int                  `json:"number"`
	Status  workload.CheckStatus `json:"status"`
	Message string               `json:"message,omitempty"`
	// Refused is why the answer changes nothing; empty for one that counts.
	Refused string `json:"refused,omitempty"`
}

// EventType implements Payload.
func (*CheckWanted) EventType() string { return "dev.muster.check.wanted.v1" }

// CloudEventSubject implements Payload.
func (e *CheckWanted) CloudEventSubject() string { return string(e.Workload) }

// CheckAnswer is what an AdmissionCheck answers about a workload. Repeating it changes
// nothing.
type CheckAnswer struct {
	Check    string      `json:"check"`
	Workload workload.ID `json:"workload"`
	// Number of the request that is answered.
	Number  int                  `json:"number"`
	Status  workload.CheckStatus `json:"status"`
	Message string               `json:"message,omitempty"`
	// RetryAfterSeconds is when the workload is put to its checks again, with Retry. Zero is
	// a minute, and twice as long each time, up to half an hour.
	RetryAfterSeconds int64                   `json:"retryAfterSeconds,omitempty"`
	PodSetUpdates     []workload.PodSetUpdate `json:"podSetUpdates,omitempty"`
}

// EventType implements Payload.
func (*CheckAnswer) EventType() string { return "dev.muster.check.answer.v1" }

// CloudEventSubject implements Payload.
func (e *CheckAnswer) CloudEventSubject() string { return string(e.Workload) }

// About implements Request.
func (e *CheckAnswer) About() workload.ID { return e.Workload }

// Bounds of an answer.
const (
	mostCheckMessage = 1024
	mostRetryAfter   = 30 * 24 * 3600
	mostNumber       = 1 << 53 // numbers begin with epochs, and stay exact in JSON
	mostUpdates      = 100
	mostUpdateKeys   = 64
	mostAnnotation   = 4096
)

// Fault returns what is wrong with an answer; empty for nothing.
func (e *CheckAnswer) Fault() string {
	c := &check{}
	c.text("check", e.Check)
	if len(e.Message) > mostCheckMessage {
		c.fail("message has %d bytes; want at most %d", len(e.Message), mostCheckMessage)
	}
	if e.Number < 1 || e.Number > mostNumber {
		c.fail("number %d; want that of the request", e.Number)
	}
	if e.RetryAfterSeconds < 0 || e.RetryAfterSeconds > mostRetryAfter {
		c.fail("retryAfterSeconds %d; want 0 to %d", e.RetryAfterSeconds, int64(mostRetryAfter))
	}
	switch e.Status {
	case workload.CheckReady:
	case workload.CheckPending, workload.CheckRetry, workload.CheckRejected:
		if len(e.PodSetUpdates) > 0 {
			c.fail("podSetUpdates are for status %s, and that of this answer is %s", workload.CheckReady, e.Status)
		}
	default:
		c.fail("status %.20q; want %s, %s, %s or %s", string(e.Status), workload.CheckPending, workload.CheckReady, workload.CheckRetry, workload.CheckRejected)
	}
	c.count("podSetUpdates", len(e.PodSetUpdates), mostUpdates)
	named := map[string]bool{}
	for _, u := range e.PodSetUpdates {
		if c.text("name of podSetUpdates", u.PodSet); named[u.PodSet] {
			c.fail("podSetUpdates has %q twice", u.PodSet)
		}
		named[u.PodSet] = true
		c.update(u)
	}
	if c.err == nil {
		return ""
	}
	return c.err.Error()
}

var (
	labelKey   = regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
	labelValue = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$`)
)

// update checks what is added to the pods of a pod set. The keys by which Muster and KubeRay
// find pods are theirs.
func (c *check) update(u workload.PodSetUpdate) {
	for _, of := range []struct {
		field  string
		values map[string]string
		label  bool
	}{{"labels", u.Labels, true}, {"annotations", u.Annotations, false}, {"nodeSelector", u.NodeSelector, true}} {
		c.count(of.field, len(of.values), mostUpdateKeys)
		for _, key := range slices.Sorted(maps.Keys(of.values)) {
			value := of.values[key]
			switch {
			case !labelKey.MatchString(key):
				c.fail("%s of pod set %.40q: %.60q is no key", of.field, u.PodSet, key)
			case of.field != "nodeSelector" && (strings.HasPrefix(key, "muster.dev/") || strings.HasPrefix(key, "ray.io/")):
				c.fail("%s of pod set %.40q: %.60q is set by Muster or KubeRay", of.field, u.PodSet, key)
			case of.label && !labelValue.MatchString(value):
				c.fail("%s of pod set %.40q: %.60q is no value of %.60q", of.field, u.PodSet, value, key)
			case len(value) > mostAnnotation || strings.ContainsRune(value, 0):
				c.fail("%s of pod set %.40q: the value of %.60q has %d bytes; want at most %d, and no NUL", of.field, u.PodSet, key, len(value), mostAnnotation)
			}
		}
	}
	c.count("tolerations", len(u.Tolerations), mostUpdateKeys)
	for _, t := range u.Tolerations {
		if fault := faultOfToleration(t); fault != "" {
			c.fail("tolerations of pod set %.40q: %s", u.PodSet, fault)
		}
	}
}

func faultOfToleration(t workload.Toleration) string {
	switch {
	case t.Operator != "" && t.Operator != "Equal" && t.Operator != "Exists":
		return fmt.Sprintf("operator %.20q; want Equal or Exists", t.Operator)
	case t.Key == "" && t.Operator != "Exists", t.Key != "" && !labelKey.MatchString(t.Key):
		return fmt.Sprintf("%.60q is no key", t.Key)
	case t.Operator == "Exists" && t.Value != "":
		return "operator Exists takes no value"
	case !labelValue.MatchString(t.Value):
		return fmt.Sprintf("%.60q is no value", t.Value)
	case t.Effect != "" && t.Effect != "NoSchedule" && t.Effect != "PreferNoSchedule" && t.Effect != "NoExecute":
		return fmt.Sprintf("effect %.20q; want NoSchedule, PreferNoSchedule or NoExecute", t.Effect)
	}
	return ""
}
