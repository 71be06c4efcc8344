package sim

import (
	"maps"
	"slices"

	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/spec/workload"
	dispatcher "muster.dev/muster/services/dispatcher/simhooks"
)

// item is a request for nodes, a PodTemplate of one, or a placeholder pod.
type item struct {
	id       bundle.Identity
	uid      string
	workload workload.ID
	content  map[string]any
	pods     int
	nodes    []string // that came for it and have not gone
	ended    bool     // its booking is over
	request  string   // of a placeholder pod
	shown    bool     // a placeholder pod that autoscalers see
}

func keyOf(id bundle.Identity) string { return id.Kind + " " + id.Namespace + "/" + id.Name }

func (a *autoscaler) there(it *item) bool { return a.items[keyOf(it.id)] == it }

func (a *autoscaler) remove(it *item) { delete(a.items, keyOf(it.id)) }

// set sets a condition of a request.
func (a *autoscaler) set(it *item, condition string) {
	if !a.there(it) {
		return
	}
	content := maps.Clone(it.content) // those who have read it keep what they read
	status, _ := content["status"].(map[string]any)
	before, _ := status["conditions"].([]any)
	content["status"] = map[string]any{"conditions": append(slices.Clip(before), map[string]any{"type": condition, "status": "True", "message": "played"})}
	it.content = content
	a.c.w.narrate("request %s is %s", it.id.Name, condition)
}

// requests are those that are there.
func (a *autoscaler) requests() (all []*item) {
	for _, key := range sortedKeys(a.items) {
		if a.items[key].id.Kind == requestKind {
			all = append(all, a.items[key])
		}
	}
	return all
}

// seen is an item as the dispatcher sees it.
func (it *item) seen() dispatcher.Wrapped {
	return dispatcher.Wrapped{
		Object:  dispatcher.Object{Kind: it.id.Kind, Namespace: it.id.Namespace, Name: it.id.Name, UID: it.uid, Workload: it.workload},
		Content: it.content,
	}
}
