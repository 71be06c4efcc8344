package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	dispatcher "muster.dev/muster/services/dispatcher/simhooks"
)

const (
	dispatcherWorkers = 3
	sweepEvery        = 15 * time.Second
	// retryFirst and retryMost are as in the dispatcher.
	retryFirst, retryMost = 20 * time.Millisecond, 10 * time.Second
)

// bootDispatcher does what the dispatcher's app does: once it holds the lease it
// reads what was reported last, fills its cache, then takes commands.
func bootDispatcher(m *machine) {
	c := &connection{w: m.w}
	m.spawn("lease", func(p *proc) {
		if c.EnsureStreams(context.Background()) != nil {
			m.crash()
			return
		}
		m.hold("dispatcher", p, func() (int64, error) {
			last, err := c.statuses()
			return last.session, err
		}, func(h *election) { dispatch(m, c, h) })
	})
}

// dispatch is a term under the lease.
func dispatch(m *machine, c *connection, h *election) {
	w := m.w
	before, err := c.statuses()
	if err != nil {
		h.end(time.Second)
		return
	}
	s := &schedule{w: w, m: m, at: map[workload.ID]bool{}, working: map[workload.ID]bool{}, failures: map[workload.ID]int{}, turns: newTurns(w)}
	report, values := w.reporter(m, c, h, before)
	r := dispatcher.New(api{w.cluster, h, s.turns}, report, before.statuses, zap.NewNop(), dispatcher.NewMetrics(prometheus.NewRegistry()), s, m.now)
	v := newView(w.cluster, r.Look)
	r.SetCache(v)
	r.SetTruth(w.truth)
	w.cluster.watch(m, v.see, func(keys []string) {
		v.list(keys)
		if !s.begun {
			s.begun = true
			s.run(r)
		}
	})
	w.net.onReconnect(m, func() {
		m.spawn("repeat", func(*proc) {
			_ = c.EnsureStreams(context.Background()) // the connection may be lost again; then there is another one
			r.RepublishAll()
		})
	})
	w.repeatLost(m, c, r, values)
}

// repeatLost publishes again what the stream has lost, and what is asked for, as the
// dispatcher's app does.
func (w *World) repeatLost(m *machine, c *connection, r *dispatcher.Reconciler, values *bus.Values) {
	var asked []*event.ReportWanted
	look := func() {
		lost, err := values.Lost(context.Background(), c, event.ClusterStatusFilter(clusterName), true)
		if err != nil {
			_ = c.EnsureStreams(context.Background())
			return
		}
		r.Republish(func(id workload.ID) bool { return slices.Contains(lost, event.StatusSubject(clusterName, id)) })
	}
	p := m.spawn("repeater", func(p *proc) {
		looked := w.now
		for {
			p.park(bus.RoundStep)
			if w.Bug == BugUnpublished {
				continue
			}
			for len(asked) > 0 {
				q := asked[0]
				asked = asked[1:]
				if r.Ask(q) {
					look()
				}
			}
			if w.now.Sub(looked) >= lookEvery {
				looked = w.now
				look()
				r.RepublishNext()
			}
		}
	})
	w.net.listen(m, func(q *event.ReportWanted) { asked = append(asked, q); p.wake() })
}

// run starts what works on commands.
func (s *schedule) run(r *dispatcher.Reconciler) {
	s.w.net.follow(s.m, bus.DispatchStream, strings.TrimSuffix(event.DispatchFilter(clusterName), "*"), func(d bus.Delivery) {
		if command, ok := payloadOf(d).(*event.GangCommand); ok {
			command.Whole = command.Whole && s.w.Bug != BugNotWhole
			s.turns.commanded(command)
			r.Command(command)
		}
	}, nil)
	for i := range dispatcherWorkers {
		s.workers = append(s.workers, s.m.spawn(fmt.Sprintf("worker %d", i), func(p *proc) {
			for {
				for s.Len() > 0 {
					r.Next(context.Background())
				}
				p.park(time.Second)
			}
		}))
	}
	s.m.spawn("sweeper", func(p *proc) {
		for {
			p.sleep(sweepEvery)
			r.Sweep(context.Background(), s.w.truth)
		}
	})
}

// reported is what dispatchers have reported last.
type reported struct {
	statuses  map[workload.ID]event.GangStatus
	sequences map[string]uint64
	session   int64
}

func (c *connection) statuses() (reported, error) {
	last := reported{statuses: map[workload.ID]event.GangStatus{}, sequences: map[string]uint64{}}
	values, err := c.values(bus.StatusStream, "muster.status."+clusterName+".")
	for _, d := range values {
		last.sequences[d.Subject] = d.Sequence
		if status, ok := payloadOf(d).(*event.GangStatus); ok {
			last.session = max(last.session, status.Session)
			last.statuses[status.Workload] = *status
		}
	}
	return last, err
}

// reporter publishes statuses as the dispatcher's does: under the epoch of the
// lease, and a process that finds a later one begins another term.
func (w *World) reporter(m *machine, c *connection, h *election, before reported) (dispatcher.Reporter, *bus.Values) {
	values := bus.NewValues(c, bus.StatusStream, h.epoch, func(d bus.Delivery) (int64, error) {
		if status, ok := payloadOf(d).(*event.GangStatus); ok {
			return status.Session, nil
		}
		return 0, nil
	})
	for subject, sequence := range before.sequences {
		values.Known(subject, sequence)
	}
	sent := 0
	return func(ctx context.Context, status event.GangStatus, keep time.Duration) error {
		sent++
		status.Session = h.epoch
		envelope, err := event.New(fmt.Sprintf("%s/%d/%d", m.name, m.life, sent), "muster/dispatcher/"+clusterName, m.now(), &status)
		if err != nil {
			return err
		}
		encoded, err := envelope.Encode()
		if err != nil {
			return err
		}
		published, err := values.Publish(event.StatusSubject(status.Cluster, status.Workload), envelope.ID, encoded, keep)
		if err == nil {
			err = published.Wait(ctx)
		}
		if errors.Is(err, bus.ErrReplaced) {
			h.end(0)
			w.cur.wait()
		}
		return err
	}, values
}

// truth asks any queue-manager that answers, which tells what concerns the cluster.
func (w *World) truth(_ context.Context, id workload.ID) (found *workload.Record, err error) {
	err = w.call(natsServer, "ask queue-manager", func() error {
		alive := slices.ContainsFunc(w.machines, func(m *machine) bool {
			return m.isManager() && !m.dead && !m.paused.After(w.now) && w.reaches(m, natsServer) && w.reaches(m, postgresServer)
		})
		if !alive {
			return errAway
		}
		if record, known := w.disk.record(id); known {
			found = query.TruthOf(clusterName, record).Record(clusterName)
		}
		return nil
	})
	return found, err
}

func payloadOf(d bus.Delivery) event.Payload {
	_, payload, err := d.Event()
	if err != nil {
		return nil
	}
	return payload
}
