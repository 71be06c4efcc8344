package appwrapper

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/workload"
)

// v1beta2 reads the spec of the AppWrapper that was made for Kueue.
func (r *reader) v1beta2(spec map[string]any) error {
	r.idle("spec", spec, "components", "suspend", "managedBy")
	if spec["suspend"] == true {
		r.warn("spec.suspend: does nothing: the queue holds the AppWrapper until it can start")
	}
	if manager := text(spec, "managedBy"); manager != "" && manager != "workload.codeflare.dev/appwrapper-controller" {
		return refuse("spec.managedBy", "is "+quote(manager), "remove it: somebody else would manage the AppWrapper")
	}
	list, isList := spec["components"].([]any)
	if !isList || len(list) == 0 {
		return refuse("spec.components", "is empty", "want at least one wrapped object")
	}
	objects := make([]map[string]any, len(list))
	for i, value := range list {
		component, _ := value.(map[string]any)
		objects[i], _ = component["template"].(map[string]any)
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
	if object == nil {
		return refuse(where+".template", "is missing", "want the wrapped object")
	}
	r.idle(where, component, "template", "podSets")
	it := item{where: where + ".template", object: object}
	sets, _ := component["podSets"].([]any)
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
		return nil, refuse(where, "is "+quote(path), `want a path that starts with "template", such as template.spec.template`)
	}
	steps := []string{}
	for rest != "" {
		match := step.FindStringSubmatch(rest)
		if match == nil {
			return nil, refuse(where, "is "+quote(path), "want fields as .name and places in lists as [0]")
		}
		steps = append(steps, match[1]+match[2])
		rest = rest[len(match[0]):]
	}
	return steps, nil
}

// annotationPrefix is of the annotations that ask for fault tolerance.
const annotationPrefix = "workload.codeflare.dev.appwrapper/"

// faultTolerance reads the annotations of v1beta2. Durations that do not parse
// are as if they were not there, which is v1beta2's own rule, but for a warning.
func (r *reader) faultTolerance() error {
	grace := time.Duration(0)
	for _, key := range slices.Sorted(maps.Keys(r.annotations)) {
		name, ours := strings.CutPrefix(key, annotationPrefix)
		if !ours {
			continue
		}
		written := fmt.Sprint(r.annotations[key])
		switch name {
		case "admissionGracePeriodDuration", "warmupGracePeriodDuration":
			d, err := time.ParseDuration(written)
			if err != nil || d < 0 || d > 24*time.Hour {
				r.warn("metadata.annotations[%s]: is %s and does nothing; want a duration from 0s to 24h", key, quote(written))
				continue
			}
			grace += d
		default:
			r.warn("metadata.annotations[%s]: does nothing; a queue's rules say how often a gang is queued again and how it is taken down", key)
		}
	}
	if grace > 0 {
		r.Life.ReadyDeadline = workload.Duration(grace)
	}
	return nil
}
