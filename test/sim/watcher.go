package sim

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	watcher "muster.dev/muster/services/capacity-watcher/simhooks"
	intake "muster.dev/muster/services/intake/simhooks"
)

const (
	resyncEvery  = 30 * time.Second
	publishRetry = 250 * time.Millisecond
)

// bootWatcher does what capacity-watcher's app does.
func bootWatcher(m *machine) {
	c := &connection{w: m.w}
	m.spawn("lease", func(p *proc) {
		if c.EnsureStreams(context.Background()) != nil {
			m.crash()
			return
		}
		m.hold("capacity-watcher", p, func() (int64, error) {
			before, err := c.history()
			return before.Session, err
		}, func(h *election) { observe(m, c, h) })
	})
}

func (c *connection) history() (watcher.History, error) {
	values, err := c.values(bus.CapacityStream, "muster.capacity."+clusterName+".")
	return watcher.HistoryOf(values, zap.NewNop()), err
}

// observe is a term under the lease.
func observe(m *machine, c *connection, h *election) {
	w := m.w
	before, err := c.history()
	if err != nil {
		h.end(time.Second)
		return
	}
	d := &duties{}
	var teller *proc
	publisher := watcher.New(watcher.Options{
		Bus: c, Cluster: clusterName, ResyncEvery: resyncEvery, Logger: zap.NewNop(), Metrics: watcher.NewMetrics(prometheus.NewRegistry()),
		Synced: func() {}, Now: m.now, Epoch: h.epoch, Held: h.check,
		Later: func(d time.Duration, _ func()) { w.after(d, func() { teller.wake() }) },
	}, before)
	teller = m.spawn("teller", func(p *proc) { publishLoop(h, p, publisher, d) })
	w.net.onReconnect(m, func() { d.again = true; teller.wake() })
	w.net.listen(m, func(q *event.ReportWanted) { d.asked = append(d.asked, q); teller.wake() })
	known := map[string]bool{}
	see := func(key string) {
		known[key] = true
		publisher.Apply(func(p *watcher.Cache) { w.cluster.draw(p, key) })
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
}

// duties are what the publisher's loop has to do beside telling what has changed.
type duties struct {
	again bool // everything is to be published again
	asked []*event.ReportWanted
}

// lookEvery is how often services look whether a stream has lost something.
const lookEvery = 5 * time.Second

// publishLoop is the publisher's loop.
func publishLoop(h *election, p *proc, publisher *watcher.Publisher, d *duties) {
	w := h.w
	listed, looked, repeated := w.now, w.now, w.now
	for {
		if d.again {
			d.again = false
			publisher.RepublishAll()
		}
		if w.now.Sub(listed) >= resyncEvery {
			listed = w.now
			publisher.ScheduleList()
		}
		if w.Bug != BugUnpublished {
			if w.now.Sub(looked) >= lookEvery {
				looked = w.now
				publisher.CompareStream(context.Background())
			}
			if w.now.Sub(repeated) >= bus.RoundStep {
				repeated = w.now
				publisher.RepublishNext()
			}
		}
		for len(d.asked) > 0 {
			q := d.asked[0]
			d.asked = d.asked[1:]
			publisher.Answer(context.Background(), q)
		}
		switch err := publisher.PublishChanges(context.Background()); {
		case errors.Is(err, bus.ErrReplaced):
			h.end(0)
			return
		case err != nil:
			p.sleep(publishRetry)
		default:
			p.park(bus.RoundStep)
		}
	}
}

// draw brings the present state of a thing into a picture.
func (c *cluster) draw(p *watcher.Cache, key string) {
	kind, name, _ := strings.Cut(key, " ")
	switch kind {
	case "node":
		if n := c.nodes[name]; n != nil {
			seen := n.Node
			if c.w.Bug == BugAgeless {
				seen.Created = time.Time{}
			}
			p.SetNode(seen)
		} else {
			p.RemoveNode(name)
		}
	case "object":
		if o := c.objects[name]; o != nil {
			p.SetOwner(o.uid, watcher.Owner{})
		}
	case "pod":
		namespace, short, _ := strings.Cut(name, "/")
		if c.w.Bug == BugAnyNamespace && strings.HasPrefix(short, "forged-") {
			namespace = "team"
		}
		id := watcher.PodName{Namespace: namespace, Name: short}
		switch pod := c.pods[name]; {
		case pod == nil:
			p.RemoveMember(id)
			p.RemoveUnmanaged(id)
		case pod.label() == "":
			p.SetUnmanaged(id, watcher.Unmanaged{Node: pod.node, Requests: pod.requests})
		default:
			p.SetMember(id, watcher.Member{Workload: pod.label(), UID: pod.uid, Owner: watcher.Owner{Controller: pod.owner, Seen: true}, GangPod: seenGangPod(pod)})
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
				if w.Bug == BugSwallowed && result.Rejection == nil {
					result.Event.ID = fmt.Sprintf("submitted/%s/%x", result.Workload, sha256.Sum256(d.Data))
				}
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
