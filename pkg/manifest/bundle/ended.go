package bundle

import (
	"fmt"
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/workload"
)

// End is how an object stands.
type End int

// The ends of an object.
const (
	Lasts     End = iota // it has not come to an end, or never does
	Succeeded            // it is done
	Failed               // it has failed for good
)

// Ended returns how an object, as the API server has it, stands, and why.
//
// A word of Done matches the type of a condition that is True, whatever its
// case, or the status that a RayJob or Pod has come to. MCAD took any condition
// that contained the word, True or not. Without Done a RayJob, Job or Pod ends
// when its own controller reports it.
func (i Item) Ended(object map[string]any) (End, string) {
	status, _ := object["status"].(map[string]any)
	id := identityOf(object)
	own, why := ownEnd(id, status)
	if len(i.Done) == 0 {
		return own, why
	}
	for _, word := range i.Done {
		for _, found := range words(status) {
			if strings.EqualFold(found, strings.TrimSpace(word)) {
				return Succeeded, fmt.Sprintf("%s is %s", id, found)
			}
		}
	}
	if own == Failed {
		return Failed, why
	}
	return Lasts, ""
}

// words are what is true by a status.
func words(status map[string]any) []string {
	var found []string
	for _, condition := range conditions(status) {
		if condition["status"] == "True" {
			found = append(found, text(condition, "type"))
		}
	}
	for _, field := range []string{"jobStatus", "jobDeploymentStatus", "phase"} {
		if word := text(status, field); word != "" {
			found = append(found, word)
		}
	}
	return found
}

// ownEnd is what the object's own controller reports.
func ownEnd(id Identity, status map[string]any) (End, string) {
	switch group, _, _ := strings.Cut(id.APIVersion, "/"); {
	case group == "ray.io" && id.Kind == workload.KindRayJob:
		return rayJobEnd(id, status)
	case id.Kind == "Job" && (group == "batch" || group == "batch.volcano.sh"):
		for _, condition := range conditions(status) {
			if condition["status"] != "True" {
				continue
			}
			switch condition["type"] {
			case "Complete":
				return Succeeded, fmt.Sprintf("%s is Complete", id)
			case "Failed":
				return Failed, fmt.Sprintf("%s is Failed: %s: %s", id, text(condition, "reason"), text(condition, "message"))
			}
		}
	case id.APIVersion == "v1" && id.Kind == "Pod":
		switch phase := text(status, "phase"); phase {
		case "Succeeded":
			return Succeeded, fmt.Sprintf("%s is Succeeded", id)
		case "Failed":
			return Failed, fmt.Sprintf("%s is Failed: %s", id, text(status, "message"))
		}
	}
	return Lasts, ""
}

// rayJobEnd reads a RayJob's status: Complete and Failed are where KubeRay ends;
// from ValidationFailed it never goes on. A stopped job ends as Complete and is
// no success.
func rayJobEnd(id Identity, status map[string]any) (End, string) {
	deployment, job := text(status, "jobDeploymentStatus"), text(status, "jobStatus")
	why := fmt.Sprintf("%s is %s", id, deployment)
	if job != "" {
		why += ", its job " + job
	}
	for _, field := range []string{"reason", "message"} {
		if detail := text(status, field); detail != "" {
			why += ": " + detail
		}
	}
	switch {
	case deployment == "Complete" && job == "SUCCEEDED":
		return Succeeded, why
	case slices.Contains([]string{"Complete", "Failed", "ValidationFailed"}, deployment):
		return Failed, why
	}
	return Lasts, ""
}

func conditions(status map[string]any) []map[string]any {
	list, _ := status["conditions"].([]any)
	var all []map[string]any
	for _, item := range list {
		if condition, isMap := item.(map[string]any); isMap {
			all = append(all, condition)
		}
	}
	return all
}

func identityOf(object map[string]any) Identity {
	metadata, _ := object["metadata"].(map[string]any)
	return Identity{text(object, "apiVersion"), text(object, "kind"), text(metadata, "namespace"), text(metadata, "name")}
}

func text(object map[string]any, field string) string {
	value, _ := object[field].(string)
	return value
}
