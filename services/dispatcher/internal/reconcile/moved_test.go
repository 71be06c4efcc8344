package reconcile

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// movedCommand starts a copy of the RayCluster r of another cluster.
func movedCommand(t *testing.T, state string) event.GangCommand {
	t.Helper()
	read, err := ray.Read([]byte(rayCluster))
	if err != nil {
		t.Fatal(err)
	}
	command := rayCommand(1)
	command.State, command.Home, command.Name, command.PodSets = state, "east", "r-w", read.PodSets
	return command
}

// A thief of the key of another cluster may submit pods and another manifest than that of these
// pods. Nothing is created of it.
func TestAManifestOfAnotherClusterIsReadAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(*event.GangCommand)
		refused string // a part of the message; empty when it is created
	}{
		"as submitted":                 {func(*event.GangCommand) {}, ""},
		"smaller at its start":         {func(c *event.GangCommand) { c.PodSets[0].Count, c.PodSets[0].Resized = 0, -1 }, ""},
		"more than was submitted":      {func(c *event.GangCommand) { c.PodSets[0].Template.Requests = nil }, "asks for more"},
		"pods that were not submitted": {func(c *event.GangCommand) { c.PodSets = nil }, `1 pods of "headgroup", but 0 were submitted`},
		"another kind":                 {func(c *event.GangCommand) { c.Kind = workload.KindRayJob }, `kind "RayCluster"`},
		"a runtime class": {func(c *event.GangCommand) {
			c.Manifest = json.RawMessage(strings.ReplaceAll(rayCluster, `"containers"`, `"runtimeClassName": "gvisor", "containers"`))
		}, ""},
		"a finalizer": {func(c *event.GangCommand) {
			c.Manifest = json.RawMessage(strings.ReplaceAll(rayCluster, `"namespace": "n"`, `"namespace": "n", "finalizers": ["example.com/stuck"]`))
		}, "metadata.finalizers"},
		"suspended": {func(c *event.GangCommand) {
			c.Manifest = json.RawMessage(strings.ReplaceAll(rayCluster, `"spec": {"head`, `"spec": {"suspend": true, "head`))
		}, "suspend"},
		"an object that is not of another cluster": {func(c *event.GangCommand) { c.Home, c.PodSets = "", nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, command := play(t), movedCommand(t, event.Present)
			c.change(&command)
			p.Command(&command)
			if err := p.see(t, 1); err != nil {
				t.Fatal(err)
			}
			if p.status.Created == p.status.Refused || p.status.Refused != (c.refused != "") || !strings.Contains(p.status.Message, c.refused) {
				t.Errorf("status %+v; want refused because of %q", p.status, c.refused)
			}
			if want := map[bool]int{true: 0, false: 1}[p.status.Refused]; len(p.cluster.created) != want {
				t.Errorf("created %v", p.cluster.created)
			}
		})
	}
}

// What stands for a user's object takes over no object, and has the rights that the queue gives.
func TestAManifestOfAnotherClusterReleasesNothing(t *testing.T) {
	t.Parallel()
	p, command := play(t), movedCommand(t, event.Present)
	held("uid-r")(p.cluster, &command)
	command.Identity = &workload.Identity{User: "bound"}
	var manifest map[string]any
	if err := json.Unmarshal(command.Manifest, &manifest); err != nil {
		t.Fatal(err)
	}
	metadata := manifest["metadata"].(map[string]any)
	metadata["annotations"].(map[string]any)[kube.IdentityKey] = `{"user": "root", "groups": ["system:masters"]}`
	encoded, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	command.Manifest = encoded
	if user := identityOf(&command); user == nil || user.User != "bound" {
		t.Errorf("the user is %+v, want the one that the queue binds", user)
	}
	p.Command(&command)
	if err := p.see(t, 1); err != nil {
		t.Fatal(err)
	}
	if !p.status.Created || len(p.cluster.created) != 1 || p.cluster.created[0] != "r-w" {
		t.Errorf("created %v, status %+v; want r-w, and nothing released", p.cluster.created, p.status)
	}
	stamped, err := ray.Stamp(command.Manifest, command.Kind, stampOf(p.newPass(p.workloads.get("w"), &command)))
	if err != nil {
		t.Fatal(err)
	}
	for _, left := range []string{kube.SuspendedUIDKey, kube.IdentityKey} {
		if strings.Contains(string(stamped), left) {
			t.Errorf("the object has %s: %s", left, stamped)
		}
	}
	if !strings.Contains(string(stamped), `"muster.dev/home":"east/r"`) {
		t.Errorf("the object does not name its home: %s", stamped)
	}
}

// Who takes the name of a copy between two attempts does not end the workload.
func TestTheNameOfACopyIsTaken(t *testing.T) {
	t.Parallel()
	for home, mends := range map[string]bool{"east": true, "": false} {
		p, command := play(t), movedCommand(t, event.Present)
		command.Home = home
		p.cluster.objects["r-w"] = rayOf("other", 1)
		p.cluster.objects["r-w"].Name = "r-w"
		p.Command(&command)
		if err := p.see(t, 1); err != nil {
			t.Fatal(err)
		}
		if !p.status.Refused || p.status.Mendable != mends || !strings.Contains(p.status.Message, errForeign.Error()) {
			t.Errorf("of cluster %q: status %+v; want it refused, and mendable: %t", home, p.status, mends)
		}
	}
}

// KubeRay's status of what stands for a user's object is reported, and its change is news.
func TestTheStatusOfACopyIsReported(t *testing.T) {
	t.Parallel()
	p, command := play(t), movedCommand(t, event.Present)
	object := rayOf("w", 1)
	object.Name, object.Status = "r-w", json.RawMessage(`{"state":"ready"}`)
	has(object)(p.cluster, nil)
	p.cluster.objects["r-w"] = object
	p.Command(&command)
	for _, status := range []string{`{"state":"ready"}`, `{"state":"suspended"}`} {
		object.Status = json.RawMessage(status)
		if err := p.see(t, 1); err != nil {
			t.Fatal(err)
		}
		if string(p.status.Object) != status {
			t.Errorf("reported is %s, want %s", p.status.Object, status)
		}
	}
}

// A finished job of Muster's stays to be read, but for one whose user reads it in another cluster.
func TestACopyGoesWhenItsWorkloadIsForgotten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		home   string
		object *kubernetes.Object
		gone   bool
	}{
		"a copy":            {"east", rayOf("w", 1), true},
		"of Muster's":       {"", rayOf("w", 1), false},
		"another's object":  {"east", rayOf("other", 1), false},
		"a later attempt's": {"east", rayOf("w", 2), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, command := play(t, event.GangStatus{Workload: "w", Cluster: "c", Attempt: 1, Released: true}), movedCommand(t, event.Forgotten)
			command.Home = c.home
			p.cluster.objects["r-w"] = c.object
			c.object.Name = "r-w"
			p.Command(&command)
			if err := p.see(t, 2); err != nil {
				t.Fatal(err)
			}
			if gone := p.cluster.objects["r-w"] == nil; gone != c.gone {
				t.Errorf("the object is gone: %t, want %t", gone, c.gone)
			}
			if left := p.workloads.get("w"); left != nil && left.reported != nil {
				t.Error("its status is still remembered")
			}
		})
	}
}

// An object that does not go keeps its workload from being forgotten for a while, and no longer.
func TestACopyThatDoesNotGoIsForgotten(t *testing.T) {
	t.Parallel()
	p, command := play(t, event.GangStatus{Workload: "w", Cluster: "c", Attempt: 1, Released: true}), movedCommand(t, event.Forgotten)
	object := rayOf("w", 1)
	object.Name, object.Deleting = "r-w", true
	p.cluster.objects["r-w"] = object
	p.Command(&command)
	for _, step := range []struct {
		after time.Duration
		kept  bool
	}{{0, true}, {removeWithin, true}, {time.Second, false}} {
		p.clock = p.clock.Add(step.after)
		if err := p.see(t, 1); err != nil {
			t.Fatal(err)
		}
		if left := p.workloads.get("w"); (left != nil && left.reported != nil) != step.kept {
			t.Errorf("after %s more its status is kept: %t", step.after, !step.kept)
		}
	}
}

// FuzzMoved reads manifests that a thief of the key of another cluster may send. What is accepted
// asks for no pod that was not submitted.
func FuzzMoved(f *testing.F) {
	f.Add([]byte(rayCluster))
	f.Add([]byte(`{"metadata":{"name":1},"spec":[{"runtimeClassName":"x"}]}`))
	read, err := ray.Read([]byte(rayCluster))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, manifest []byte) {
		command := rayCommand(1)
		command.Home, command.Manifest, command.PodSets = "east", manifest, read.PodSets
		_, _ = manifestMetadata(manifest), identityOf(&command)
		if checkMoved(&command) != nil {
			return
		}
		got, err := ray.Read(manifest)
		if err == nil && len(got.PodSets) > len(read.PodSets) {
			t.Errorf("%d pod sets are accepted where %d were submitted", len(got.PodSets), len(read.PodSets))
		}
	})
}
