package quota

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/resource"
)

type validation struct {
	faults  fault.List
	flavor  map[string]string // where each is, by name
	cohort  map[string]string
	cluster map[string]string
}

// name checks a name, and that it is unique.
func (v *validation) name(path, name string, seen map[string]string) {
	at := fault.Key(path, "name")
	if name == "" {
		v.faults.Add(at, "is missing")
		return
	}
	if first, twice := seen[name]; twice {
		v.faults.Add(at, "%q is a duplicate of %s; want another name", name, first)
		return
	}
	seen[name] = path
}

// oneOf checks a value that may be empty.
func (v *validation) oneOf(path, value string, allowed ...string) {
	if value != "" && !slices.Contains(allowed, value) {
		v.faults.Add(path, "%q: want one of %s", value, strings.Join(allowed, ", "))
	}
}

func (v *validation) stopPolicy(path, policy string) {
	if policy != Deleting { // which package kueue sets
		v.oneOf(path+".stopPolicy", policy, StopNone, Hold, HoldAndDrain)
	}
}

func (v *validation) notNegative(path string, value int64) {
	if value < 0 {
		v.faults.Add(path, "%d is negative; want zero or more", value)
	}
}

// known checks that an object of that name exists.
func (v *validation) known(path, kind, name string, there map[string]string) {
	if _, known := there[name]; known {
		return
	}
	if len(there) == 0 {
		v.faults.Add(path, "%q: there is no %s of this name, nor any other", name, kind)
		return
	}
	v.faults.Add(path, "%q: there is no %s of this name; there are %s", name, kind, strings.Join(slices.Sorted(maps.Keys(there)), ", "))
}

// line checks a text for one line.
func (v *validation) line(path, text string, most int) {
	if len(text) > most {
		v.faults.Add(path, "has %d bytes; want at most %d", len(text), most)
	} else if strings.ContainsFunc(text, unicode.IsControl) {
		v.faults.Add(path, "%q: want one line without control characters", text)
	}
}

// order checks since when an operator's order is, who gave it and why.
func (v *validation) order(path, does string, since time.Time, by, why string) {
	if since.IsZero() {
		v.faults.Add(path+".since", "is missing; want a time such as 2026-11-21T12:00:00Z")
	}
	if by == "" {
		v.faults.Add(path+".by", "is missing; want who %s", does)
	}
	v.line(path+".by", by, maxStopBy)
	v.line(path+".why", why, maxStopWhy)
}

func (v *validation) weight(path string, f *FairSharing) {
	if f != nil && f.WeightMilli < 0 {
		v.faults.Add(path+".fairSharing.weight", "%s is negative; want zero or more", resource.Format(resource.CPU, f.WeightMilli))
	}
}

// Bounds of the texts of a hold, which every waiting workload of the queue repeats.
const (
	maxStopNamespace = 63
	maxStopBy        = 200
	maxStopWhy       = 500
)
