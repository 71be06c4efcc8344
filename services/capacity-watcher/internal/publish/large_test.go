package publish_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/services/capacity-watcher/internal/observed"
	"muster.dev/muster/services/capacity-watcher/internal/publish"
)

// TestLargeGangs: a large gang's messages are throttled, the last state is published,
// and a list does not wait for it.
func TestLargeGangs(t *testing.T) {
	t.Parallel()
	b := connect(t)
	p, synced := publisher(t, b, publish.History{}, 1)
	const pods, changes = 512, 200
	set := func(name, phase string) {
		p.Apply(func(p *observed.Cache) {
			p.SetMember(observed.Pod{Name: name}, observed.Member{Workload: "w", GangPod: event.GangPod{Name: name, Phase: phase}})
		})
	}
	for i := range pods {
		set("pod-"+time.Duration(i).String(), "Pending")
	}
	p.Complete()
	await(t, synced)
	following, err := b.Follow(t.Context(), bus.CapacityStream, event.CapacityFilter("c"))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for i := range changes {
		set("pod-"+time.Duration(i).String(), "Running")
	}
	last := "pod-" + time.Duration(changes-1).String()
	for published := 0; ; {
		d := <-following.C
		_, payload, err := d.Event()
		if err != nil {
			t.Fatal(err)
		}
		gang, ok := payload.(*event.GangObserved)
		if !ok {
			continue
		}
		published++
		for _, pod := range gang.Pods {
			if pod.Name != last || pod.Phase != "Running" {
				continue
			}
			if most := 2 + int(time.Since(began)/(pods*200*time.Microsecond)); published > most { // the first and earlier ones
				t.Errorf("%d changes made %d messages, want at most %d", changes, published, most)
			}
			return
		}
	}
}

// TestManyNodes: more than one batch arrives complete, with the list.
func TestManyNodes(t *testing.T) {
	t.Parallel()
	b := connect(t)
	p, synced := publisher(t, b, publish.History{}, 1)
	const nodes = 5000
	p.Apply(func(p *observed.Cache) {
		for i := range nodes {
			p.SetNode(machine("n" + time.Duration(i).String()))
		}
	})
	p.Complete()
	await(t, synced)
	// The slow repetition of everything may begin while the stream is read.
	named := map[string]bool{}
	var list *event.CapacitySynced
	for _, value := range values(t, b) {
		switch value := value.(type) {
		case *event.CapacitySynced:
			list = value
		case *event.NodeObserved:
			named[value.Node.Name] = true
		default:
			t.Errorf("the stream has a %T", value)
		}
	}
	if len(named) != nodes {
		t.Errorf("the stream has %d nodes, want %d", len(named), nodes)
	}
	if list == nil || len(list.Nodes) != nodes {
		t.Errorf("the list is %v, want one of %d nodes", list, nodes)
	}
}

// TestAnObservationThatIsTooLarge: the others, before and behind it, are published, and the list
// that follows them.
func TestAnObservationThatIsTooLarge(t *testing.T) {
	t.Parallel()
	b := connect(t)
	p, synced := publisher(t, b, publish.History{}, 7)
	p.Apply(func(seen *observed.Cache) {
		large := machine("b")
		large.Labels = map[string]string{"l": strings.Repeat("x", int(b.Conn().MaxPayload()))}
		seen.SetNode(machine("a"))
		seen.SetNode(large)
		seen.SetNode(machine("c"))
	})
	p.Complete()
	await(t, synced)
	var names []string
	for _, payload := range values(t, b) {
		if seen, ok := payload.(*event.NodeObserved); ok {
			names = append(names, seen.Node.Name)
		}
	}
	if want := []string{"a", "c"}; !slices.Equal(names, want) {
		t.Errorf("published are %v, want %v", names, want)
	}
}
