package reconcile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
)

// TestTheOldestCheckpointOfWrappedObjectsCounts: what an eviction loses goes back to where the
// last of the objects with pods can go on. While one of them has not reported, nothing is known.
func TestTheOldestCheckpointOfWrappedObjectsCounts(t *testing.T) {
	t.Parallel()
	early := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	late := early.Add(time.Hour)
	for name, c := range map[string]struct {
		saved map[string]time.Time
		want  time.Time
	}{
		"none reports":                {nil, time.Time{}},
		"one reports":                 {map[string]time.Time{"a": early}, time.Time{}},
		"all with pods report":        {map[string]time.Time{"a": late, "b": early}, early},
		"one without pods reports":    {map[string]time.Time{"c": early}, time.Time{}},
		"one without pods is earlier": {map[string]time.Time{"a": late, "b": late, "c": early}, late},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bundle.Bundle
			for _, name := range []string{"a", "b", "c"} {
				b.Items = append(b.Items, bundle.Item{
					MakesPods: name != "c", Object: json.RawMessage(`{"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "` + name + `"}}`),
				})
			}
			manifest, err := b.Encode()
			if err != nil {
				t.Fatal(err)
			}
			p := play(t)
			p.Command(&event.GangCommand{
				Workload: "w", Cluster: "c", Attempt: 1, Epoch: 1, Order: 1, State: event.Present, Kind: workload.KindAppWrapper,
				Namespace: "n", Name: "w", Manifest: manifest, ObjectPolicy: workload.ObjectPolicy{Kinds: []string{workload.AllKinds}},
			})
			if err := p.see(t, 2); err != nil || !p.status.Created {
				t.Fatalf("the status is %+v, %v", p.status, err)
			}
			for id, item := range p.cluster.items {
				item.LastCheckpoint = c.saved[id.Name]
			}
			if err := p.see(t, 1); err != nil || !p.status.LastCheckpoint.Equal(c.want) {
				t.Errorf("the last checkpoint is reported at %s, %v; want %s", p.status.LastCheckpoint, err, c.want)
			}
		})
	}
}

// TestAPodReportsACheckpoint: the last report counts, whether it is on the RayCluster or on a
// pod of the attempt. Pods of another attempt or namespace report nothing.
func TestAPodReportsACheckpoint(t *testing.T) {
	t.Parallel()
	early := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	late := early.Add(time.Hour)
	for name, c := range map[string]struct {
		object time.Time
		pods   []gang.Pod
		want   time.Time
	}{
		"no report":             {want: time.Time{}, pods: []gang.Pod{{PodSet: "head"}}},
		"on the object":         {object: early, pods: []gang.Pod{{PodSet: "head"}}, want: early},
		"on the head pod":       {pods: []gang.Pod{{PodSet: "head", LastCheckpoint: early}}, want: early},
		"on a worker":           {pods: []gang.Pod{{PodSet: "head"}, {PodSet: "g", LastCheckpoint: early}}, want: early},
		"on both, later a pod":  {object: early, pods: []gang.Pod{{PodSet: "head", LastCheckpoint: late}}, want: late},
		"on both, later it":     {object: late, pods: []gang.Pod{{PodSet: "head", LastCheckpoint: early}}, want: late},
		"on two pods":           {pods: []gang.Pod{{PodSet: "head", LastCheckpoint: late}, {PodSet: "g", LastCheckpoint: early}}, want: late},
		"of an earlier attempt": {pods: []gang.Pod{{PodSet: "head", LastCheckpoint: early, Attempt: 1}}},
		"in another namespace":  {object: early, pods: []gang.Pod{{PodSet: "head", LastCheckpoint: late, Namespace: "other"}}, want: early},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			object := rayOf("w", 2)
			object.LastCheckpoint = c.object
			p.cluster.objects["r"] = object
			for i, pod := range c.pods {
				pod.Name, pod.UID, pod.Cluster, pod.Workload = fmt.Sprint("p", i), fmt.Sprint("p", i), "c", "w"
				pod.Namespace, pod.Attempt = cmp.Or(pod.Namespace, "n"), cmp.Or(pod.Attempt, 2)
				p.cluster.pods = append(p.cluster.pods, pod)
			}
			command := rayCommand(2)
			command.Created = true
			p.Command(&command)
			if err := p.see(t, 1); err != nil || !p.status.Created || !p.status.LastCheckpoint.Equal(c.want) {
				t.Errorf("the status is %+v, %v; want the last checkpoint at %s", p.status, err, c.want)
			}
		})
	}
}

// TestPodsReportForTheirObject: a report on a pod is one of the wrapped object that made it, by
// the pod set.
func TestPodsReportForTheirObject(t *testing.T) {
	t.Parallel()
	early := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	late := early.Add(time.Hour)
	for name, c := range map[string]struct {
		saved map[string]time.Time // on objects
		pods  map[string]time.Time // on pods, by pod set
		want  time.Time
	}{
		"one of two":           {pods: map[string]time.Time{"a-workers": early}},
		"both by pods":         {pods: map[string]time.Time{"a-workers": late, "main": early}, want: early},
		"one by its object":    {saved: map[string]time.Time{"r": early}, pods: map[string]time.Time{"main": late}, want: early},
		"both report, the pod": {saved: map[string]time.Time{"r": early, "b": early}, pods: map[string]time.Time{"a-head": late, "main": late}, want: late},
		"a set of no object":   {saved: map[string]time.Time{"r": late}, pods: map[string]time.Time{"others": early}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bundle.Bundle{Items: []bundle.Item{
				{MakesPods: true, PodSetPrefix: "a-", Object: json.RawMessage(rayCluster)},
				{MakesPods: true, Templates: []bundle.Template{{PodSet: "main", Path: []string{"spec", "template"}}}, Object: json.RawMessage(`{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "b"}, "spec": {"template": {"spec": {"containers": [{"name": "c"}]}}}}`)},
			}}
			manifest, err := b.Encode()
			if err != nil {
				t.Fatal(err)
			}
			p := play(t)
			p.Command(&event.GangCommand{
				Workload: "w", Cluster: "c", Attempt: 1, Epoch: 1, Order: 1, State: event.Present, Kind: workload.KindAppWrapper,
				Namespace: "n", Name: "w", Manifest: manifest, ObjectPolicy: workload.ObjectPolicy{Kinds: []string{workload.AllKinds}},
			})
			if err := p.see(t, 2); err != nil || !p.status.Created {
				t.Fatalf("the status is %+v, %v", p.status, err)
			}
			for id, item := range p.cluster.items {
				item.LastCheckpoint = c.saved[id.Name]
			}
			for set, at := range c.pods {
				p.cluster.pods = append(p.cluster.pods, gang.Pod{
					Namespace: "n", Name: set, UID: set, Cluster: "c", Workload: "w", Attempt: 1, PodSet: set, Node: "node", LastCheckpoint: at,
				})
			}
			if err := p.see(t, 1); err != nil || !p.status.LastCheckpoint.Equal(c.want) {
				t.Errorf("the last checkpoint is reported at %s, %v; want %s", p.status.LastCheckpoint, err, c.want)
			}
		})
	}
}
