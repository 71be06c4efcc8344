package queuesfile_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/policyfile/queuesfile"
	"muster.dev/muster/pkg/spec/workload"
)

// A field of a queue that Validate does not copy is read and accepted, and does nothing.
func TestEachFieldOfAQueueArrivesInItsRules(t *testing.T) {
	t.Parallel()
	f := queuesfile.File{Queues: []queuesfile.Queue{{
		Name: "research", Namespaces: []string{"research"}, Strategy: "StrictFIFO",
		Rules:        workload.Rules{Placement: workload.Trusted},
		Limits:       workload.Limits{Pods: 4},
		PodPolicy:    workload.PodPolicy{Privileged: true},
		ObjectPolicy: workload.ObjectPolicy{ExternalIPs: true},
		Submitters:   []workload.Submitters{{Who: []string{"http/alice"}}},
		Identities:   []workload.Bound{{Who: []string{"http/alice"}, User: "alice"}},
		StrayPods:    workload.WarnOfStrays, OnLostCluster: workload.FailOver, HomeObjects: workload.MoveFromHome, PreferClusters: "data=images", Carries: []workload.Carried{{Kind: workload.KindSecret, Name: "pull", From: "main"}},
	}}}
	if err := f.Validate(); err != nil {
		t.Fatal(err)
	}
	queue := reflect.ValueOf(f.Queues[0])
	rules := map[string]reflect.Value{} // by the name in the file
	for i := range reflect.TypeFor[workload.Rules]().NumField() {
		rules[reflect.TypeFor[workload.Rules]().Field(i).Tag.Get("json")] = reflect.ValueOf(f.Queues[0].Rules).Field(i)
	}
	for i := range queue.NumField() {
		field := queue.Type().Field(i)
		if queue.Field(i).IsZero() {
			t.Errorf("the test sets no %s", field.Name)
		}
		switch field.Name {
		case "Name", "Namespaces", "Strategy", "Rules": // of the queue itself, or the rules
			continue
		}
		rule, known := rules[field.Tag.Get("json")]
		if !known {
			t.Errorf("%s: there is no such rule", field.Name)
		} else if diff := cmp.Diff(queue.Field(i).Interface(), rule.Interface()); diff != "" {
			t.Errorf("%s (-queue +rules):\n%s", field.Name, diff)
		}
	}
}
