package reconcile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/services/dispatcher/internal/gang"
)

// leaves is a quota of the namespace with room for that many pods.
func leaves(pods int64) gang.Quota {
	amount := func(n int64) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(n, resource.DecimalSI)}
	}
	return gang.Quota{Name: "q", Left: amount(pods), Charged: map[string]corev1.ResourceList{"g": amount(1)}}
}

// begins is a reconciler of a gang of two pods of which one exists.
func begins(t *testing.T, quotas ...gang.Quota) *played {
	t.Helper()
	p := play(t)
	p.cluster.pods, p.cluster.quotas = workers(1), quotas
	command := placed()
	p.Command(&command)
	return p
}

// TestGangDoesNotBeginWithoutRoom: while the quotas have no room for the pods that are
// missing none is sent, and the status says why; with room those that exist are sent.
func TestGangDoesNotBeginWithoutRoom(t *testing.T) {
	t.Parallel()
	p := begins(t, leaves(0))
	for range 4 {
		if err := p.see(t, 2); err != nil {
			t.Fatal(err)
		}
		p.clock = p.clock.Add(quotasEvery)
	}
	if len(p.cluster.pinned) > 0 || !strings.Contains(p.status.Message, `ResourceQuota q has no room for 1 pod of "g"`) {
		t.Errorf("pinned are %v, and the message is %q; want none and the quota", p.cluster.pinned, p.status.Message)
	}
	p.cluster.quotas = []gang.Quota{leaves(1)}
	if err := p.see(t, 2); err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"p0": "a"}; !maps.Equal(p.cluster.pinned, want) || p.status.Message != "" {
		t.Errorf("with room pinned are %v, and the message is %q; want %v and none", p.cluster.pinned, p.status.Message, want)
	}
}

// TestQuotasAreReadSeldom: once for a gang that begins, however many pods appear, and
// every two seconds for one that does not.
func TestQuotasAreReadSeldom(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ room, want int }{"that begins": {1, 1}, "that does not begin": {0, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := begins(t, leaves(int64(c.room)))
			for _, later := range []time.Duration{0, quotasEvery / 2, quotasEvery / 2} {
				p.clock = p.clock.Add(later)
				if err := p.see(t, 5); err != nil {
					t.Fatal(err)
				}
			}
			if p.cluster.read != c.want {
				t.Errorf("the quotas were read %d times, want %d", p.cluster.read, c.want)
			}
		})
	}
}

// TestQuotasAreNotRead: of a gang whose pods all exist, or are to, nothing is asked.
func TestQuotasAreNotRead(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*cluster, *event.GangCommand){
		"all exist":          func(c *cluster, _ *event.GangCommand) { c.pods = workers(2) },
		"none exists":        func(c *cluster, _ *event.GangCommand) { c.pods = nil },
		"it starts whole":    func(_ *cluster, d *event.GangCommand) { d.Whole = true },
		"placement trusted":  func(_ *cluster, d *event.GangCommand) { d.Trusted = true },
		"it has a pod bound": func(c *cluster, _ *event.GangCommand) { c.pods[0].Gated, c.pods[0].Node = false, "a" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			command := placed()
			p.cluster.pods = workers(1)
			set(p.cluster, &command)
			p.Command(&command)
			if err := p.see(t, 3); err != nil {
				t.Fatal(err)
			}
			if p.cluster.read > 0 {
				t.Errorf("the quotas were read %d times, want none", p.cluster.read)
			}
		})
	}
}

// TestUnknownQuotas: without the right to read quotas the gang starts when all its pods
// exist; when the API server does not answer it is asked again.
func TestUnknownQuotas(t *testing.T) {
	t.Parallel()
	p := begins(t)
	p.cluster.answers["quotas n"] = errSilent
	if err := p.see(t, 2); err == nil || len(p.cluster.pinned) > 0 {
		t.Errorf("without an answer: %v, pinned are %v; want an error and none", err, p.cluster.pinned)
	}
	p.cluster.answers["quotas n"] = fmt.Errorf("%w: forbidden", gang.ErrUnknownQuotas)
	if err := p.see(t, 2); err != nil || len(p.cluster.pinned) > 0 {
		t.Errorf("without the right: %v, pinned are %v; want none", err, p.cluster.pinned)
	}
	p.cluster.pods = workers(2)
	if err := p.see(t, 2); err != nil || len(p.cluster.pinned) != 2 {
		t.Errorf("when all exist: %v, pinned are %v; want both", err, p.cluster.pinned)
	}
}

// TestGangsClaimQuota: what a gang that has begun still needs of a quota is not promised
// to another one; what exists of it is in the quota's usage.
func TestGangsClaimQuota(t *testing.T) {
	t.Parallel()
	p := begins(t, leaves(1))
	if err := p.see(t, 2); err != nil || len(p.cluster.pinned) != 1 {
		t.Fatalf("the first gang: %v, pinned are %v; want one", err, p.cluster.pinned)
	}
	missing := []gang.Missing{{Like: workers(1)[0], Pods: 1}}
	other := placed()
	other.Workload, other.Name = "v", "s"
	claims := p.placer.starter.claims(&other)
	if why := gang.Short(p.cluster.quotas, missing, claims); !strings.Contains(why, "other gangs that are starting need 1") {
		t.Errorf("the reason of another gang is %q, want that the first one needs the room", why)
	}
	other.Namespace = "elsewhere"
	if claims := p.placer.starter.claims(&other); len(claims) > 0 {
		t.Errorf("in another namespace %v is claimed", claims)
	}
	other.Namespace = "n"
	p.cluster.pods = slices.Concat(p.cluster.pods, workers(2)[1:])
	if err := p.see(t, 1); err != nil {
		t.Fatal(err)
	}
	if claims := p.placer.starter.claims(&other); len(claims) > 0 || len(p.cluster.pinned) != 2 {
		t.Errorf("when it is complete %v is claimed, and pinned are %v; want nothing and both", claims, p.cluster.pinned)
	}
}
