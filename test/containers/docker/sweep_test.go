package docker

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// What an aborted run has left is removed, its volume too; what a process that
// lives has made stays.
func TestAnAbortedRunIsSwept(t *testing.T) {
	if os.Getenv("MUSTER_TEST_PROVIDER") == "local" {
		t.Skip("MUSTER_TEST_PROVIDER=local: nothing is made in an engine")
	}
	engine, err := Connect(t.Context())
	if err != nil {
		t.Skipf("%v", err)
	}
	if _, err := engine.ImageInspect(t.Context(), NATSImage()); err != nil {
		if os.Getenv("MUSTER_REQUIRE_SERVICES") != "" {
			t.Fatalf("the engine has no image %s: run `make images`", NATSImage())
		}
		t.Skipf("the engine has no image %s: run `make images`", NATSImage())
	}
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	aborted := leave(t, engine, ended.Process.Pid)
	living := leave(t, engine, os.Getppid())
	swept, err := Sweep(t.Context(), engine)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("swept: %v", swept)
	if there := aborted.there(t, engine); len(there) > 0 {
		t.Errorf("of an aborted run there is still %v", there)
	}
	if there := living.there(t, engine); len(there) != 3 {
		t.Errorf("of a run that goes on there is only %v", there)
	}
}

// leftover is what a run makes.
type leftover struct{ container, volume, network string }

// leave makes what a run makes, as if the process had done it.
func leave(t *testing.T, engine *client.Client, pid int) leftover {
	t.Helper()
	of := maps.Clone(Labels())
	of[ownerLabel] = owner(pid)
	n, err := engine.NetworkCreate(t.Context(), fmt.Sprintf("muster-sweep-%d-%d", os.Getpid(), pid), client.NetworkCreateOptions{Labels: of})
	if err != nil {
		t.Fatal(err)
	}
	left := leftover{network: n.ID}
	t.Cleanup(func() { _, _ = engine.NetworkRemove(context.Background(), n.ID, client.NetworkRemoveOptions{}) }) // it may be gone
	c, err := engine.ContainerCreate(t.Context(), client.ContainerCreateOptions{
		Config: &container.Config{Image: NATSImage(), Labels: of, Volumes: map[string]struct{}{"/left": {}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	left.container = c.ID
	t.Cleanup(func() {
		_, _ = engine.ContainerRemove(context.Background(), c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true}) // it may be gone
	})
	made, err := engine.ContainerInspect(t.Context(), c.ID, client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(made.Container.Mounts) != 1 {
		t.Fatalf("the container has the volumes %v, want one", made.Container.Mounts)
	}
	left.volume = made.Container.Mounts[0].Name
	return left
}

// there lists what of it the engine has.
func (l leftover) there(t *testing.T, engine *client.Client) (kinds []string) {
	t.Helper()
	if _, err := engine.ContainerInspect(t.Context(), l.container, client.ContainerInspectOptions{}); err == nil {
		kinds = append(kinds, "container")
	}
	if _, err := engine.VolumeInspect(t.Context(), l.volume, client.VolumeInspectOptions{}); err == nil {
		kinds = append(kinds, "volume")
	}
	if _, err := engine.NetworkInspect(t.Context(), l.network, client.NetworkInspectOptions{}); err == nil {
		kinds = append(kinds, "network")
	}
	return kinds
}
