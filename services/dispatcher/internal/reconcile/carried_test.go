package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// carriage copies objects as a test has it.
type carriage struct {
	fetchErr, placeErr error
	there              bool // the objects are in the namespace
	fetched            []string
	placed, owned      []string // with the owner
}

func (c *carriage) Own(_ context.Context, to kubernetes.CarriedCopy) (bool, error) {
	c.owned = append(c.owned, describeCopy(to))
	return c.there, nil
}

func describeCopy(to kubernetes.CarriedCopy) string {
	text := fmt.Sprintf("%s %s/%s", to.Kind, to.Namespace, to.Name)
	if to.From != "" {
		text += " from " + to.From
	}
	for _, owner := range to.Owners {
		text += fmt.Sprintf(", owned by %s %s %s", owner.Kind, owner.Name, owner.UID)
	}
	return text
}

func (c *carriage) Fetch(_ context.Context, id workload.ID, attempt int, kind, name string) (string, *query.CarriedObject, error) {
	c.fetched = append(c.fetched, fmt.Sprintf("%s/%d %s %s", id, attempt, kind, name))
	return "main", &query.CarriedObject{}, c.fetchErr
}

func (c *carriage) Place(_ context.Context, to kubernetes.CarriedCopy) error {
	if c.placeErr == nil {
		c.placed = append(c.placed, describeCopy(to))
	}
	return c.placeErr
}

// carryingCommand starts a RayCluster that refers to one of the two objects that its queue carries.
func carryingCommand() *event.GangCommand {
	command := rayCommand(1)
	command.Manifest = json.RawMessage(`{"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "r", "namespace": "n"},
		"spec": {"headGroupSpec": {"template": {"spec": {"imagePullSecrets": [{"name": "pull"}], "containers": [{"name": "head", "image": "ray"}]}}}}}`)
	command.Carries = []workload.Carried{{Kind: workload.KindSecret, Name: "pull", From: "main"}, {Kind: workload.KindConfigMap, Name: "pull", From: "main"}}
	return &command
}

// TestWhatIsCarried: a gang is created once what it refers to could be read, and then gets copies that
// go with its object. What failed, or was not done by the dispatcher before, is done again.
func TestWhatIsCarried(t *testing.T) {
	t.Parallel()
	c := &carriage{fetchErr: errors.New("the Secret is not there")}
	p := play(t)
	p.SetCarrier(c)
	p.Command(carryingCommand())
	if err := p.see(t, 2); err != nil {
		t.Fatal(err)
	}
	if p.status.Created || len(p.cluster.created) > 0 || !strings.Contains(p.status.Message, `Secret pull of cluster "main" cannot be copied: the Secret is not there`) {
		t.Fatalf("without the Secret the status is %+v; created is %v", p.status, p.cluster.created)
	}
	c.fetchErr, c.placeErr = nil, errors.New("no right")
	if err := p.see(t, 2); err != nil {
		t.Fatal(err)
	}
	if !p.status.Created || p.status.Message != "" || len(c.placed) > 0 {
		t.Fatalf("the status is %+v; placed is %v", p.status, c.placed)
	}
	c.placeErr = nil
	want := []string{"Secret n/pull from main, owned by RayCluster r uid-r"}
	if err := p.see(t, 3); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, c.placed); diff != "" {
		t.Errorf("once (-want +placed):\n%s", diff)
	}
	if slices.ContainsFunc(c.fetched, func(one string) bool { return one != "w/1 Secret pull" }) {
		t.Errorf("fetched are %v", c.fetched)
	}
	c.fetched, c.placed = nil, nil
	next := playOn(t, p.cluster, p.status)
	next.SetCarrier(c)
	next.Command(carryingCommand())
	if err := next.see(t, 3); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, c.placed); diff != "" || len(c.fetched) != 1 {
		t.Errorf("the next dispatcher fetches %v, and (-want +placed):\n%s", c.fetched, diff)
	}
}

// TestACopyThatIsThereStays: the next dispatcher fetches nothing of which the namespace has a copy. It
// has the copy owned by the objects that it reads, also of an AppWrapper, of whose objects the
// status of the dispatcher before may have none.
func TestACopyThatIsThereStays(t *testing.T) {
	t.Parallel()
	bundled := wrappedMaking(t, "a", "a", "b")
	bundled.Manifest = json.RawMessage(strings.Replace(string(bundled.Manifest), `"metadata":`, `"spec": {"imagePullSecrets": [{"name": "pull"}]}, "metadata":`, 1))
	bundled.Carries = carryingCommand().Carries
	for name, c := range map[string]struct {
		command *event.GangCommand
		owned   string
	}{
		"a RayCluster":  {carryingCommand(), "Secret n/pull, owned by RayCluster r uid-r"},
		"an AppWrapper": {&bundled, "Secret n/pull, owned by Thing a uid-a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			p.SetCarrier(&carriage{})
			p.Command(c.command)
			if err := p.see(t, 2); err != nil || !p.status.Created {
				t.Fatalf("status %+v, %v", p.status, err)
			}
			status := p.status
			status.Objects = nil
			for _, there := range []bool{true, false} {
				carrier := &carriage{there: there}
				next := playOn(t, p.cluster, status)
				next.SetCarrier(carrier)
				next.Command(c.command)
				if err := next.see(t, 3); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]string{c.owned}, carrier.owned); diff != "" {
					t.Errorf("there %t (-want +owned):\n%s", there, diff)
				}
				var placed []string
				if !there {
					placed = []string{strings.Replace(c.owned, "n/pull", "n/pull from main", 1)}
				}
				if diff := cmp.Diff(placed, carrier.placed); diff != "" || len(carrier.fetched) != len(placed) {
					t.Errorf("there %t, fetched %v (-want +placed):\n%s", there, carrier.fetched, diff)
				}
			}
		})
	}
}

// TestReferences: all ways in which a pod refers to a ConfigMap or Secret.
func TestReferences(t *testing.T) {
	t.Parallel()
	tree, err := ray.Tree(json.RawMessage(`{"spec": {"template": {"spec": {
		"imagePullSecrets": [{"name": "pull"}],
		"volumes": [
			{"name": "v1", "configMap": {"name": "files"}}, {"name": "v2", "secret": {"secretName": "key"}},
			{"name": "v3", "projected": {"sources": [{"configMap": {"name": "part"}}, {"secret": {"name": "half"}}]}},
			{"name": "v4", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "not-this"}}}],
		"containers": [{"name": "c", "env": [
			{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "a"}}},
			{"name": "B", "valueFrom": {"secretKeyRef": {"name": "password", "key": "b"}}},
			{"name": "C", "value": "configMap"}],
			"envFrom": [{"configMapRef": {"name": "all"}}, {"secretRef": {"name": "hidden"}}]}]}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	found := map[reference]bool{}
	collectReferences(tree, found)
	var got []string
	for r := range maps.Keys(found) {
		got = append(got, r.kind+" "+r.name)
	}
	slices.Sort(got)
	want := []string{"ConfigMap all", "ConfigMap files", "ConfigMap part", "ConfigMap settings", "Secret half", "Secret hidden", "Secret key", "Secret password", "Secret pull"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
