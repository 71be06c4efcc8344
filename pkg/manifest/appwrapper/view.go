package appwrapper

import (
	"encoding/json"
	"reflect"
	"time"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// View is what is known of an AppWrapper when its status is written.
type View struct {
	// Created is when the API server got the object.
	Created time.Time
	// Record is queue-manager's; nil before it has the workload.
	Record *workload.Record
	// Rejected is why there never will be one.
	Rejected *workload.Reason
	Pods     Counts
	Warnings []string
	Now      time.Time
}

// Counts are the pods of the current attempt by phase.
type Counts struct{ Pending, Running, Succeeded, Failed int }

// Status returns the status to write over an old one, as users of the version
// know it. It is a function of its arguments; when it returns changed as false
// there is nothing to write. Fields of the old one that it does not have stay: the
// schema gives some to every AppWrapper, of whichever version.
func Status(version string, old map[string]any, v View) (status map[string]any, changed bool) {
	if version == V1beta2 {
		status = statusV1beta2(old, v)
	} else {
		status = statusV1beta1(old, v)
		status["phase"] = phaseOf(v) // kubectl shows the newer version's columns
	}
	status["why"] = whyOf(v)
	if v.Rejected != nil {
		status["rejected"] = true
	}
	before, after := normal(old), normal(status)
	for field, value := range after {
		if !reflect.DeepEqual(before[field], value) {
			return status, true
		}
	}
	return status, false
}

// whyOf is the reason in one sentence, for a column.
func whyOf(v View) string {
	switch {
	case v.Rejected != nil:
		return v.Rejected.Message
	case v.Record != nil:
		return why(v.Record)
	}
	return ""
}

// normal makes values comparable, whichever way they were decoded.
func normal(status map[string]any) map[string]any {
	encoded, err := json.Marshal(status)
	if err != nil {
		return nil // of JSON values only
	}
	var out map[string]any
	_ = json.Unmarshal(encoded, &out) // what Marshal wrote
	return out
}

// micro is how MCAD writes moments.
func micro(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// amount returns what a workload asks of a resource.
func amount(w workload.Workload, name resource.Name) int64 { return w.Requests()[name] }
