package cli

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/spec/workload"
)

// TestPickedWorkloads: the flags of a list select, sort and cut it.
func TestPickedWorkloads(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	record := func(name string, ago time.Duration, priority int32, phase workload.Phase) workload.Record {
		return workload.Record{
			Workload: workload.Workload{ID: workload.ID(name), Name: name, Namespace: "team", Queue: "q", Priority: priority},
			Phase:    phase, Times: workload.Times{Submitted: now.Add(-ago), Finished: now.Add(-ago / 2)},
		}
	}
	all := func() []workload.Record {
		return []workload.Record{record("c", 3*time.Hour, 1, workload.Failed), record("a", 2*time.Hour, 9, workload.Queued), record("b", time.Hour, 5, workload.Queued)}
	}
	for name, c := range map[string]struct {
		options getOptions
		want    []string
	}{
		"all":          {getOptions{}, []string{"c", "a", "b"}},
		"by name":      {getOptions{sortBy: "name"}, []string{"a", "b", "c"}},
		"by priority":  {getOptions{sortBy: "priority"}, []string{"a", "b", "c"}},
		"by finished":  {getOptions{sortBy: "finished"}, []string{"c", "a", "b"}},
		"the last two": {getOptions{limit: 2}, []string{"a", "b"}},
		"recent":       {getOptions{since: 150 * time.Minute}, []string{"a", "b"}},
		"queued":       {getOptions{phases: []string{"queued"}, namespaces: namespaces{all: true}}, []string{"a", "b"}},
		"elsewhere":    {getOptions{namespaces: namespaces{namespace: "other"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := c.options.pick(nil)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var got []string
			for _, r := range p.of(all(), now) {
				got = append(got, r.Name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		})
	}
	for name, o := range map[string]getOptions{
		"unknown field": {sortBy: "colour"}, "negative limit": {limit: -1}, "negative time": {since: -time.Second},
		"all and one": {namespaces: namespaces{"team", true}}, "watched data": {watch: true, output: "json"},
		"a bad selector": {selector: "team a"}, "watched labels": {selector: "team=a", watch: true},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := o.pick(nil); err == nil {
				t.Errorf("%s is accepted", name)
			}
		})
	}
}
