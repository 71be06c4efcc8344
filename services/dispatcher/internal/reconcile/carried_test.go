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
	fetched            []string
	placed             []string // with the owner
}

func (c *carriage) Fetch(_ context.Context, id workload.ID, attempt int, kind, name string) (string, *query.CarriedObject, error) {
	c.fetched = append(c.fetched, fmt.Sprintf("%s/%d %s %s", id, attempt, kind, name))
	return "main", &query.CarriedObject{}, c.fetchErr
}

func (c *carriage) Place(_ context.Context, to kubernetes.CarriedCopy) error {
	if c.placeErr == nil {
		text := fmt.Sprintf("%s %s/%s from %s", to.Kind, to.Namespace, to.Name, to.From)
		for _, owner := range to.Owners {
			text += fmt.Sprintf(", owned by %s %s %s", owner.Kind, owner.Name, owner.UID)
		}
		c.placed = append(c.placed, text)
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
	next := playOn(t, p.cluster, p.status)
	next.SetCarrier(c)
	next.Command(carryingCommand())
	if err := next.see(t, 3); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slices.Concat(want, want), c.placed); diff != "" {
		t.Errorf("by the next dispatcher (-want +placed):\n%s", diff)
	}
	if slices.ContainsFunc(c.fetched, func(one string) bool { return one != "w/1 Secret pull" }) {
		t.Errorf("fetched are %v", c.fetched)
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
