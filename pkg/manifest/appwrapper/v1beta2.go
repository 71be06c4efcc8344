package appwrapper

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/workload"
)

// v1beta2 reads the spec of the AppWrapper that was made for Kueue.
func (r *reader) v1beta2(spec map[string]any) error {
	r.idle("spec", spec, "components", "suspend", "managedBy")
	if spec["suspend"] == true {
		r.warn("spec.suspend: does nothing: the queue holds the AppWrapper until it can start")
	}
	if manager := text(spec, "managedBy"); manager != "" && manager != "workload.codeflare.dev/appwrapper-controller" {
		return refuse("spec.managedBy", "is "+fault.Quote(manager), "remove it: another controller would manage the AppWrapper")
	}
	list, err := wrappedObjects("spec.components", spec["components"], "template")
	if err != nil {
		return err
	}
	objects := make([]map[string]any, len(list))
	for i, value := range list {
		where := fmt.Sprintf("spec.components[%d]", i)
		component, err := object(where, value, "template with the wrapped object")
		if err != nil {
			return err
		}
		if objects[i], err = object(where+".template", component["template"], "the wrapped object"); err != nil {
			return err
		}
	}
	r.countRays(objects)
	for i, value := range list {
		component, _ := value.(map[string]any)
		if err := r.component(fmt.Sprintf("spec.components[%d]", i), component, objects[i]); err != nil {
			return err
		}
	}
	return r.faultTolerance()
}

func (r *reader) component(where string, component, object map[string]any) error {
	r.idle(where, component, "template", "podSets")
	it := item{where: where + ".template", object: object}
	sets, isList := component["podSets"].([]any)
	if !isList && component["podSets"] != nil {
		return refuse(where+".podSets", "is "+typeOf(component["podSets"]), "want a list of objects with path and replicas")
	}
	for i, value := range sets {
		set, _ := value.(map[string]any)
		at := fmt.Sprintf("%s.podSets[%d]", where, i)
		r.idle(at, set, "replicas", "path")
		replicas := int64(1)
		if set["replicas"] != nil {
			var err error
			if replicas, err = r.number(set, at, "replicas", 0, math.MaxInt32); err != nil {
				return err
			}
		}
		path, err := parsePath(at+".path", text(set, "path"))
		if err != nil {
			return err
		}
		it.podSets = append(it.podSets, podSetPath{where: at, replicas: int(replicas), path: path})
	}
	return r.add(it)
}

// step is `.field` or `[n]`.
var step = regexp.MustCompile(`^(?:\.([A-Za-z0-9_-]+)|\[([0-9]+)\])`)

// parsePath reads a path such as template.spec.tasks[0].template; what follows
// "template" leads through the object.
func parsePath(where, path string) ([]string, error) {
	rest, starts := strings.CutPrefix(path, "template")
	if !starts {
		return nil, refuse(where, "is "+fault.Quote(path), `want a path that starts with "template", such as template.spec.template`)
	}
	steps := []string{}
	for rest != "" {
		match := step.FindStringSubmatch(rest)
		if match == nil {
			return nil, refuse(where, "is "+fault.Quote(path), "want fields as .name and places in lists as [0]")
		}
		steps = append(steps, match[1]+match[2])
		rest = rest[len(match[0]):]
	}
	return steps, nil
}

// annotationPrefix is of the annotations that ask for fault tolerance.
const annotationPrefix = "workload.codeflare.dev.appwrapper/"

// SuccessTTLKey is the annotation that Wrapper.SuccessTTL is read from.
const SuccessTTLKey = annotationPrefix + successTTL

const successTTL = "successTTLDuration"

// longestGrace and longestTTL are v1beta2's own bounds of durations.
const (
	longestGrace = 24 * time.Hour
	longestTTL   = 7 * 24 * time.Hour
)

// faultTolerance reads the annotations of v1beta2. What does not parse is as if it
// were not there, which is v1beta2's own rule, but for a warning.
func (r *reader) faultTolerance() error {
	var grace time.Duration
	t := workload.Tolerance{}
	for _, key := range slices.Sorted(maps.Keys(r.annotations)) {
		name, ours := strings.CutPrefix(key, annotationPrefix)
		if !ours {
			continue
		}
		written := fmt.Sprint(r.annotations[key])
		switch name {
		case "admissionGracePeriodDuration", "warmupGracePeriodDuration":
			if d := r.duration(key, written, longestGrace); d != nil {
				grace += *d
			}
		case "failureGracePeriodDuration":
			t.LossDeadline = r.grace(key, written)
		case "retryPausePeriodDuration":
			t.Pause = r.grace(key, written)
		case "forcefulDeletionGracePeriodDuration":
			t.ForceAfter = r.grace(key, written)
		case "retryLimit":
			limit, err := strconv.ParseInt(written, 10, 32)
			if err != nil || limit < 0 {
				r.warn("metadata.annotations[%s]: is %s and does nothing; want a whole number of at least 0", key, fault.Quote(written))
				continue
			}
			retries := int(limit)
			t.Retries, t.RetryFailed = &retries, true
		case "terminalExitCodes":
			t.TerminalExitCodes = r.exitCodes(key, written)
		case "retryableExitCodes":
			t.RetryableExitCodes = r.exitCodes(key, written)
		case successTTL:
			if r.SuccessTTL = r.duration(key, written, longestTTL); r.SuccessTTL != nil {
				t.SuccessTTL = workload.Duration(*r.SuccessTTL)
			}
		case "deletionOnFailureGracePeriodDuration":
			r.warn("metadata.annotations[%s]: does nothing; what has failed is removed at once, and the reason is kept", key)
		default:
			r.warn("metadata.annotations[%s]: does nothing", key)
		}
	}
	if grace > 0 {
		r.Life.ReadyDeadline = workload.Duration(grace)
	}
	if !reflect.DeepEqual(t, workload.Tolerance{}) {
		r.Life.Tolerance = &t
	}
	return nil
}

// grace reads a period of grace; 0 for one that does nothing.
func (r *reader) grace(key, written string) workload.Duration {
	if d := r.duration(key, written, longestGrace); d != nil {
		return workload.Duration(*d)
	}
	return 0
}

// duration reads a duration of up to longest; nil for one that does nothing.
func (r *reader) duration(key, written string, longest time.Duration) *time.Duration {
	d, err := time.ParseDuration(written)
	if err != nil || d < 0 || d > longest {
		r.warn("metadata.annotations[%s]: is %s and does nothing; want a duration from 0s to %.0fh", key, fault.Quote(written), longest.Hours())
		return nil
	}
	return &d
}

// exitCodes reads a list such as "3,10".
func (r *reader) exitCodes(key, written string) []int32 {
	var codes []int32
	for _, word := range strings.Split(written, ",") {
		code, err := strconv.ParseInt(strings.TrimSpace(word), 10, 32)
		if err != nil || code == 0 {
			r.warn("metadata.annotations[%s]: %s is no exit code of a failure and does nothing; want numbers separated by commas, such as 3,10", key, fault.Quote(word))
			continue
		}
		codes = append(codes, int32(code))
	}
	return codes
}
