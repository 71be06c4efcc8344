package appwrapper

import (
	"fmt"
	"strings"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/fault"
)

// checkNames refuses a wrapped object for its names, and a Secret: a manifest is
// stored and sent in clear until long after the workload has ended.
func (it *item) checkNames(metadata map[string]any) error {
	group, _, grouped := strings.Cut(it.id.APIVersion, "/")
	if !grouped {
		group = ""
	}
	namespace := ""
	if it.id.Namespace != "" {
		namespace = kube.BadNamespace(it.id.Namespace)
	}
	for _, name := range []struct{ field, value, why string }{
		{"apiVersion", it.id.APIVersion, kube.BadAPIVersion(it.id.APIVersion)},
		{"kind", it.id.Kind, kube.BadKind(it.id.Kind)},
		{"metadata.name", it.id.Name, kube.BadName(group, it.id.Name)},
		{"metadata.namespace", it.id.Namespace, namespace},
	} {
		if name.why != "" {
			return refuse(it.where+"."+name.field, "is "+fault.Quote(name.value), name.why)
		}
	}
	if where, what, why := kube.BadLabels(metadata); why != "" {
		return refuse(it.where+".metadata."+where, what, why)
	}
	if it.id.Kind == "Secret" && group == "" {
		return refuse(it.where+".kind", "is Secret", "create the Secret beside the workload and name it there: Muster stores manifests in clear")
	}
	return nil
}

// checkName refuses an AppWrapper for its own names.
func (r *reader) checkName(metadata map[string]any) error {
	field, name := "name", r.Name
	why := kube.BadName("", name)
	if name == "" {
		field, name = "generateName", r.GenerateName
		why = kube.BadName("", name+"x")
	}
	if why == "" && len(name) > longestName {
		why = fmt.Sprintf("want at most %d characters", longestName)
	}
	if why != "" {
		return refuse("metadata."+field, "is "+fault.Quote(name), why)
	}
	if r.Namespace != "" {
		if why := kube.BadNamespace(r.Namespace); why != "" {
			return refuse("metadata.namespace", "is "+fault.Quote(r.Namespace), why)
		}
	}
	if where, what, why := kube.BadLabels(metadata); why != "" {
		return refuse("metadata."+where, what, why)
	}
	return nil
}

// longestName leaves room for the letters that follow a generateName.
const longestName = 240

// checkDone bounds the names of conditions that an object is done with.
func checkDone(where string, done []string) error {
	const most, longest = 32, 316
	if len(done) > most {
		return refuse(where, fmt.Sprintf("has %d words", len(done)), fmt.Sprintf("want at most %d", most))
	}
	for _, word := range done {
		if len(word) > longest || kube.BadText(word) != "" {
			return refuse(where, "has "+fault.Quote(word), "want the type of a condition, such as Complete")
		}
	}
	return nil
}
