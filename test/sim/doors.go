//go:build sim

package sim

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/ray"
	watcher "muster.dev/muster/services/capacity-watcher/step"
	intake "muster.dev/muster/services/intake/step"
)

const (
	resyncEvery  = 30 * time.Second
	publishRetry = 250 * time.Millisecond
)

// bootWatcher does what capacity-watcher's app does.
func bootWatcher(m *machine) {
	w := m.w
	c := &connection{w: w}
	m.spawn("begin", func(*proc) {
		if c.EnsureStreams(context.Background()) != nil {
			m.crash()
			return
		}
		values, err := c.values(bus.CapacityStream, "muster.capacity.")
		if err != nil {
			m.crash()
			return
		}
		publisher := watcher.New(watcher.Options{
			Bus: c, Cluster: clusterName, ResyncEvery: resyncEvery, Logger: zap.NewNop(),
			Metrics: watcher.NewMetrics(prometheus.NewRegistry()), Synced: func() {}, Now: m.now,
		}, watcher.HistoryOf(values, zap.NewNop()), m.now())
		var teller *proc
		again := false
		teller = m.spawn("teller", func(p *proc) {
			listed := w.now
			for {
				if again {
					again = false
					publisher.Again()
				}
				if w.now.Sub(listed) >= resyncEvery {
					listed = w.now
					publisher.List()
				}
				if publisher.Tell(context.Background()) != nil {
					p.sleep(publishRetry)
				} else {
					p.park(resyncEvery)
				}
			}
		})
		w.net.onReconnect(m, func() { again = true; teller.wake() })
		known := map[string]bool{}
		see := func(key string) {
			known[key] = true
			publisher.Apply(func(p *watcher.Picture) { w.cluster.draw(p, key) })
			teller.wake()
		}
		w.cluster.watch(m, see, func(keys []string) {
			for _, key := range sortedKeys(known) {
				see(key)
			}
			for _, key := range keys {
				see(key)
			}
			publisher.Complete()
		})
	})
}

// draw brings the present state of a thing into a picture.
func (c *cluster) draw(p *watcher.Picture, key string) {
	kind, name, _ := strings.Cut(key, " ")
	switch kind {
	case "node":
		if n := c.nodes[name]; n != nil {
			p.SetNode(n.Node)
		} else {
			p.RemoveNode(name)
		}
	case "pod":
		namespace, short, _ := strings.Cut(name, "/")
		id := watcher.PodName{Namespace: namespace, Name: short}
		switch pod := c.pods[name]; {
		case pod == nil:
			p.RemoveMember(id)
			p.RemoveUnmanaged(id)
		case pod.workload == "":
			p.SetUnmanaged(id, watcher.Unmanaged{Node: pod.node, Requests: pod.requests})
		default:
			p.SetMember(id, watcher.Member{Workload: pod.workload, GangPod: seenGangPod(pod)})
		}
	}
}

func seenGangPod(p *pod) event.GangPod {
	phase := "Pending"
	if p.ready || p.deleting {
		phase = "Running"
	}
	return event.GangPod{
		Name: p.name, Attempt: p.attempt, PodSet: p.set, RayCluster: p.owner, Node: p.node, Phase: phase, Ready: p.ready,
		Deleting: p.deleting, Requests: p.requests,
	}
}

// intakeRetry is the pause before a submission is read again.
const intakeRetry = 500 * time.Millisecond

// bootIntake does what intake's app does: it settles a submission when what it made
// of it is stored.
func bootIntake(m *machine) {
	w := m.w
	c := &connection{w: w}
	operator := ray.Shipped()
	m.spawn("begin", func(p *proc) {
		if c.EnsureStreams(context.Background()) != nil {
			m.crash()
			return
		}
		take := func(d bus.Delivery) {
			m.spawn("submission", func(*proc) {
				result, err := intake.Read(operator, intake.Message{Subject: d.Subject, Headers: d.Headers, Data: d.Data, Sequence: d.Sequence, Stored: d.Stored})
				var published bus.Published
				var encoded []byte
				if err == nil {
					encoded, err = result.Event.Encode()
				}
				if w.Bug == BugEarlyAck {
					d.Ack()
				}
				if err == nil {
					published, err = c.PublishEncoded(result.Subject, result.Event.ID, encoded, 0)
				}
				if err == nil {
					err = published.Wait(context.Background())
				}
				if err != nil {
					d.Retry(intakeRetry)
					return
				}
				d.Ack()
			})
		}
		hand := w.net.work(m, bus.SubmitStream, false, take)
		w.net.onReconnect(m, func() {
			hand.gone = true
			hand = w.net.work(m, bus.SubmitStream, false, take)
		})
	})
}
