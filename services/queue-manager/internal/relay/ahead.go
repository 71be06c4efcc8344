package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// Past is what the ledger knows of what it has published.
type Past interface {
	Watermarks(ctx context.Context) (map[string]store.Watermark, error)
	// KnownMessages returns which of the messages, by id, are in the outbox or the history.
	KnownMessages(ctx context.Context, messages []store.MessageRef) (map[string]bool, error)
}

// Streams is NATS for one that looks for what the ledger has forgotten. See bus.Bus
// for the meaning of each.
type Streams interface {
	State(ctx context.Context, stream string) (bus.StreamState, error)
	Since(ctx context.Context, stream, filter string, from bus.From, each func(bus.Delivery) error) error
}

// Found is what the streams have and the ledger does not know.
type Found struct {
	// Commands are the last ones of their workloads, in the order of the stream.
	// Manifests are there where a command to remove needs them.
	Commands []*event.GangCommand
	// LastEvents are the last events of workloads, in the order of the stream.
	LastEvents []LastEvent
	// Repeated: an earlier term has found all of it, and could not write what follows from it.
	Repeated bool
	// Ends are up to where the streams were compared, by stream. What arrives later is
	// for the relay of the term to compare: see Options.Compared.
	Ends map[string]store.Watermark
	// From are the ends behind which the streams were looked at, by stream.
	From map[string]store.Watermark
}

// Unrecovered are workloads of which an earlier term found something and could write nothing,
// because the database refuses it. The watermarks have moved past it since.
type Unrecovered struct {
	// From is Found.From of the first such term.
	From      map[string]store.Watermark `json:"from"`
	Workloads []workload.ID              `json:"workloads"`
}

// LastEvent is the last event of a workload, with its message.
type LastEvent struct {
	workload.Record
	Delivery bus.Delivery
	// Requeued is the last attempt that this event or an earlier one shows to be requeued on
	// request; 0 for none. Later events of the attempt may have another reason.
	Requeued int
}

// lastOf is the last event of a workload after an earlier one.
func lastOf(earlier LastEvent, changed *event.WorkloadChanged, d bus.Delivery) LastEvent {
	last := LastEvent{Record: changed.Record, Delivery: d, Requeued: earlier.Requeued}
	if r := changed.Reason; r != nil && r.Kind == workload.ReasonRequeued {
		last.Requeued = max(last.Requeued, requeuedIn(changed.Record))
	}
	return last
}

// requeuedIn is the attempt that is requeued in a record whose reason says that.
func requeuedIn(r workload.Record) int {
	if r.Phase == workload.Queued { // it waits for the next one
		return r.Attempt - 1
	}
	return r.Attempt
}

// Empty reports whether there is nothing of the kind. Repeated means nothing then.
func (f Found) Empty() bool { return len(f.Commands) == 0 && len(f.LastEvents) == 0 }

// FindAhead checks whether the streams are ahead of the ledger: Postgres was restored to
// a state older than what was published from it. Of the workloads in before it looks again where
// an earlier term did. A relay removes a message from the outbox
// and notes the end of its stream in one transaction; so of what is behind that watermark
// the ledger has each message in the outbox, or has forgotten it. It must be called
// before the relay of the term runs, which moves the watermarks.
func FindAhead(ctx context.Context, past Past, streams Streams, before Unrecovered) (found Found, err error) {
	watermarks, err := past.Watermarks(ctx)
	if err != nil {
		return found, err
	}
	found.Ends, found.From, found.Repeated = map[string]store.Watermark{}, map[string]store.Watermark{}, true
	look := aheadSearch{past: past, streams: streams, watermarks: watermarks, from: before.From, again: map[workload.ID]bool{}}
	for _, id := range before.Workloads {
		look.again[id] = true
	}
	commands := map[workload.ID]map[string]*event.GangCommand{} // by workload and cluster
	var order []*event.GangCommand
	err = found.add(ctx, look, bus.DispatchStream, func(_ bus.Delivery, payload event.Payload) {
		command := payload.(*event.GangCommand)
		removal := event.GangCommand{State: event.Absent, Kind: command.Kind}
		if !removal.NeedsManifest() {
			command.Manifest = nil // there may be many of them
		}
		command.PodSets = nil
		if commands[command.Workload] == nil {
			commands[command.Workload] = map[string]*event.GangCommand{}
		}
		commands[command.Workload][command.Cluster] = command
		order = append(order, command)
	})
	if err != nil {
		return found, err
	}
	found.Commands = slices.DeleteFunc(order, func(c *event.GangCommand) bool { return commands[c.Workload][c.Cluster] != c })
	last := map[workload.ID]int{}
	err = found.add(ctx, look, bus.EventsStream, func(d bus.Delivery, payload event.Payload) {
		changed := payload.(*event.WorkloadChanged)
		if i, again := last[changed.ID]; again {
			found.LastEvents[i] = lastOf(found.LastEvents[i], changed, d)
			return
		}
		last[changed.ID] = len(found.LastEvents)
		found.LastEvents = append(found.LastEvents, lastOf(LastEvent{}, changed, d))
	})
	return found, err
}

// aheadSearch is where to look for what the ledger does not know.
type aheadSearch struct {
	past       Past
	streams    Streams
	watermarks map[string]store.Watermark
	from       map[string]store.Watermark // for the workloads in again
	again      map[workload.ID]bool
}

// start returns behind which sequence to look in a stream that is as end says, and behind which
// for all workloads.
func (a aheadSearch) start(stream string, end store.Watermark) (from, all uint64) {
	behind := func(w store.Watermark) uint64 {
		if end.Created.Equal(w.Created) && end.Last >= w.Last {
			return w.Last
		}
		return 0
	}
	all = behind(a.watermarks[stream])
	if earlier, noted := a.from[stream]; noted && end.Created.Equal(earlier.Created) {
		return min(all, behind(earlier)), all
	}
	return all, all
}

// add compares a stream from its watermark on, or all of it when it is not the stream of
// the watermark, and notes from where and up to where.
func (f *Found) add(ctx context.Context, search aheadSearch, stream string, each func(bus.Delivery, event.Payload)) error {
	state, err := search.streams.State(ctx, stream)
	if errors.Is(err, bus.ErrNoStream) {
		return nil
	}
	if err != nil {
		return err
	}
	end := endOf(state)
	from, all := search.start(stream, end)
	f.From[stream] = store.Watermark{Created: end.Created, Last: from}
	if end.Last > from {
		wanted := func(d bus.Delivery) bool { return d.Sequence > all || search.again[event.SubjectWorkload(d.Subject)] }
		last, err := unknown(ctx, search.past, search.streams, stream, from, wanted, func(d bus.Delivery, payload event.Payload) {
			f.Repeated = f.Repeated && d.Sequence <= all
			each(d, payload)
		})
		if err != nil {
			return err
		}
		end.Last = max(end.Last, last)
	}
	f.Ends[stream] = end
	return nil
}

// endOf is the watermark of a stream that is in the given state.
func endOf(state bus.StreamState) store.Watermark {
	return store.Watermark{Created: state.Created.UTC().Truncate(time.Microsecond), Last: state.Last} // as Postgres keeps it
}

// unknown calls each with the commands (*event.GangCommand) and events of workloads
// (*event.WorkloadChanged) of queue-manager that a stream has after a sequence and the
// ledger does not know, of those that are wanted. It returns the sequence of the last message that it looked at.
func unknown(ctx context.Context, past Past, streams Streams, stream string, after uint64, wanted func(bus.Delivery) bool, each func(bus.Delivery, event.Payload)) (last uint64, err error) {
	type heard struct {
		bus.Delivery
		payload event.Payload
	}
	var batch []heard
	flush := func() error {
		asked := make([]store.MessageRef, len(batch))
		for i, h := range batch {
			asked[i] = store.MessageRef{EventID: h.MessageID(), Workload: workload.ID(h.payload.CloudEventSubject())}
		}
		known, err := past.KnownMessages(ctx, asked)
		if err != nil {
			return err
		}
		for _, h := range batch {
			if !known[h.MessageID()] {
				each(h.Delivery, h.payload)
			}
		}
		batch = batch[:0]
		return nil
	}
	err = streams.Since(ctx, stream, filterOf(stream), bus.From{Sequence: after + 1}, func(d bus.Delivery) error {
		last = d.Sequence
		if !wanted(d) {
			return nil
		}
		if _, ours := epochOf(d.MessageID()); !ours {
			return nil // of another service, such as a refused submission
		}
		_, payload, err := d.Event()
		if err != nil {
			return nil // of a later version, which this one cannot read
		}
		switch payload.(type) {
		case *event.GangCommand, *event.WorkloadChanged:
		default:
			return nil
		}
		if batch = append(batch, heard{d, payload}); len(batch) < batchLimit {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	if err != nil {
		return last, fmt.Errorf("look for what stream %s has and the ledger lacks: %w", stream, err)
	}
	return last, nil
}

func filterOf(stream string) string {
	if stream == bus.DispatchStream {
		return event.DispatchFilter("*")
	}
	return event.EventsFilter()
}

// epochOf reads the epoch in the id of a message of queue-manager's ledger.
func epochOf(id string) (epoch int64, ours bool) {
	rest, ours := strings.CutPrefix(id, "queue-manager/")
	if !ours {
		return 0, false
	}
	number, _, _ := strings.Cut(rest, "/")
	epoch, err := strconv.ParseInt(number, 10, 64)
	return epoch, err == nil
}

// LastEpoch is the largest epoch in the ids of the streams' last messages from the outbox; 0 for
// none.
func LastEpoch(ctx context.Context, streams Streams) (last int64, err error) {
	for _, stream := range []string{bus.DispatchStream, bus.EventsStream} {
		epoch, err := lastEpochIn(ctx, streams, stream)
		if err != nil && !errors.Is(err, bus.ErrNoStream) {
			return 0, err
		}
		last = max(last, epoch)
	}
	return last, nil
}

// lastEpochIn reads the end of a stream, and more of it while that has no message from the outbox:
// behind them may be some of other services, states of clusters, and what is published beside the
// outbox.
func lastEpochIn(ctx context.Context, streams Streams, stream string) (last int64, err error) {
	state, err := streams.State(ctx, stream)
	if err != nil {
		return 0, err
	}
	for _, length := range []uint64{1, 100, 10_000} {
		if last > 0 || state.Last == 0 {
			break
		}
		from := bus.From{Sequence: max(1, state.Last-min(length, state.Last)+1)}
		err := streams.Since(ctx, stream, filterOf(stream), from, func(d bus.Delivery) error {
			if epoch, ours := epochOf(d.MessageID()); ours {
				last = max(last, epoch)
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return last, nil
}
