package sim

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// queues of the played installation. The deadlines are short, so that what hangs
// is seen to be dealt with within a run.
func (w *World) queues() []state.Queue {
	rules := workload.Rules{
		Life: workload.Life{ReadyDeadline: workload.Duration(40 * time.Second)}, BackoffFirst: workload.Duration(2 * time.Second),
		BackoffMost: workload.Duration(20 * time.Second), ForceAfter: workload.Duration(20 * time.Second),
	}
	many := 1000
	rules.Requeues = &many
	all := []state.Queue{
		{Name: "loose", Namespaces: []string{"team"}, Strategy: quota.BestEffortFIFO, Rules: rules},
		{Name: strictQueue, Namespaces: []string{"team"}, Strategy: quota.StrictFIFO, Rules: rules},
	}
	if w.ruled() {
		all = append(all, state.Queue{Name: "third", Namespaces: []string{"team"}, Strategy: quota.BestEffortFIFO, Rules: rules})
		for i := range all {
			all[i].Rules.CheckpointGrace = workload.Duration(time.Duration(3*i) * time.Second)
		}
	}
	for i := range all {
		all[i].Rules.Start = w.startOf(all[i].Name)
	}
	return all
}

// build makes the machines.
func (w *World) build() {
	w.machine("intake-1", bootIntake)
	w.machine("intake-2", bootIntake)
	w.machine("capacity-watcher-1", bootWatcher)
	w.machine("capacity-watcher-2", bootWatcher)
	w.machine("queue-manager-1", bootManager)
	w.machine("queue-manager-2", bootManager)
	w.machine("dispatcher-1", bootDispatcher)
	w.machine("dispatcher-2", bootDispatcher)
}

// submission is a gang as its submitter sees it.
type submission struct {
	id        workload.ID
	name      string
	queue     string
	data      []byte
	pods      int
	announced bool // an event reported it as queued
	heard     bool // so, by an event
	ended     bool // an event reported its end
	// stored is how often NATS had lost messages when it took this one; -1 before. Who
	// has its answer relies on it, and submits again only when NATS has lost some.
	stored      int
	copies      int // how many NATS has stored
	rejected    int // how many of these were rejected
	running     time.Time
	run         time.Duration
	until       time.Duration // since the beginning: it is cancelled then, whether it runs or not; zero for run
	final       workload.Phase
	why         bool              // an event reported that it is not stored
	excused     bool              // a user deleted its object: it may have been created again
	early       time.Time         // when it was cancelled before it was submitted; zero for not
	earlyLosses int               // how often NATS had lost messages then
	came        time.Time         // since when it is seen in the ledger, of one that was cancelled early
	asked       map[Fault]bool    // what operators have asked of it
	effects     map[Fault]*effect // of what operators have asked
	resumed     bool              // an operator has asked for the end of its hold
	// doubtful: its end was published, and both the database and NATS have lost it. It may be
	// queued again, and then has to be cancelled again.
	doubtful bool
}

const (
	submitterSource = "sim"
	// tryAgain is when a submitter that has no answer repeats itself.
	tryAgain = 4 * time.Second
)

// elastic has a gang start with two workers at least. It may give up the others.
func elastic(manifest string) string {
	var tree map[string]any
	if err := json.Unmarshal([]byte(manifest), &tree); err != nil {
		panic(err) // it is made of plain data
	}
	group := tree["spec"].(map[string]any)["workerGroupSpecs"].([]any)[0].(map[string]any)
	group["template"].(map[string]any)["metadata"] = map[string]any{"annotations": map[string]any{kube.MinReplicasKey: "2"}}
	changed, err := json.Marshal(tree)
	if err != nil {
		panic(err)
	}
	return string(changed)
}

// withPriority encodes a submission with CloudEvents' extension for its priority;
// empty for none.
func withPriority(envelope event.Envelope, priority string) ([]byte, error) {
	data, err := envelope.Encode()
	if err != nil || priority == "" {
		return data, err
	}
	var tree map[string]json.RawMessage
	if err := json.Unmarshal(data, &tree); err != nil {
		return nil, err
	}
	tree["priority"] = json.RawMessage(priority)
	return json.Marshal(tree)
}

func sortedKeys[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

func words(names []string) string { return strings.Join(names, ", ") }

// payloadAfter is the payload of a message behind a place in its stream.
func payloadAfter(m bus.Delivery, place uint64) event.Payload {
	if m.Sequence <= place {
		return nil
	}
	return payloadOf(m)
}
