package app

import (
	"context"
	"errors"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// lastReported is what dispatchers of the cluster have reported last.
type lastReported struct {
	statuses  map[workload.ID]event.GangStatus
	sequences map[string]uint64 // of each subject's last message
	session   int64             // the latest
}

// statusesWithin bounds the time to read what was reported last of each workload, with the
// Lease held: another process may be able to.
const statusesWithin = 30 * time.Second

// lastStatuses reads what was reported last of each workload.
func lastStatuses(ctx context.Context, b *bus.Bus, cluster string) (lastReported, error) {
	ctx, cancel := context.WithTimeout(ctx, statusesWithin)
	defer cancel()
	values, err := b.LastValues(ctx, bus.StatusStream, event.ClusterStatusFilter(cluster))
	if err != nil {
		return lastReported{}, err
	}
	all := lastReported{statuses: map[workload.ID]event.GangStatus{}, sequences: make(map[string]uint64, len(values))}
	for _, d := range values {
		all.sequences[d.Subject] = d.Sequence
		_, payload, err := d.Event()
		if status, ok := payload.(*event.GangStatus); err == nil && ok { // what cannot be read is published again
			if event.Credible(status.Session, d.Stored) { // others were made up, and no reader uses them
				all.session = max(all.session, status.Session)
			}
			all.statuses[status.Workload] = *status
		}
	}
	return all, nil
}

// reporter publishes statuses under the epoch of a lease.
type reporter struct {
	values  *bus.Values
	cluster string
	epoch   int64
	// replaced ends the term when a later one has reported.
	replaced func(cause error)
}

func newReporter(b *bus.Bus, cluster string, epoch int64, before lastReported, replaced func(error)) *reporter {
	r := &reporter{bus.NewValues(b, bus.StatusStream, epoch, sessionOf), cluster, epoch, replaced}
	for subject, sequence := range before.sequences {
		r.values.Known(subject, sequence)
	}
	return r
}

// report implements reconcile.Reporter. Each status has an id of its own: were it
// made of the content, a status that comes back within the dedupe window would be
// dropped.
func (r *reporter) report(ctx context.Context, status event.GangStatus, keep time.Duration) error {
	status.Session = r.epoch
	return r.publish(ctx, event.StatusSubject(status.Cluster, status.Workload), &status, keep)
}

func (r *reporter) publish(ctx context.Context, subject string, payload event.Payload, keep time.Duration) error {
	id := event.NewID()
	encoded, err := event.Marshal(id, "muster/dispatcher/"+r.cluster, time.Now(), "", payload)
	if err != nil {
		return err
	}
	published, err := r.values.Publish(subject, id, encoded, keep)
	if err == nil {
		err = published.Wait(ctx)
	}
	if errors.Is(err, bus.ErrReplaced) {
		r.replaced(err)
	}
	return err
}

// sessionOf reads the session of a message of the stream; 0 for one too far ahead, which
// queue-manager does not believe either.
func sessionOf(d bus.Delivery) (session int64, err error) {
	_, payload, err := d.Event()
	if err != nil {
		return 0, err
	}
	switch p := payload.(type) {
	case *event.GangStatus:
		session = p.Session
	case *event.PermissionAsked:
		session = p.Session
	}
	if !event.Credible(session, d.Stored) {
		return 0, nil
	}
	return session, nil
}
