package reconcile

import (
	"testing"

	"muster.dev/muster/pkg/message/event"
)

// Nodes cost money: those who may not create the object get none for it.
func TestNoNodesForWhatMayNotRun(t *testing.T) {
	t.Parallel()
	p := play(t)
	command := provisionCommand(1)
	user(map[string]string{"r": "may not create it"})(p.cluster, command)
	p.Command(command)
	if err := p.see(t, 1); err != nil {
		t.Fatal(err)
	}
	p.wantRequest(t, event.RequestFailed, "may not create it")
	if len(p.cluster.created) > 0 {
		t.Errorf("created %v, want nothing", p.cluster.created)
	}
}
