package decisionlog

import (
	"bytes"
	"encoding/json"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// The lines of an outcome: everything of the changes but what follows from the
// rest or from the inputs, such as the payloads of messages.
type (
	workloadLine struct {
		Workload workload.Record `json:"workload"`
		Order    int64           `json:"order,omitempty"` // of a new one
	}
	freedLine struct {
		Freed []workload.ID `json:"freed"`
	}
	placesLine struct {
		Places   state.Reservation `json:"places"`
		Replaced bool              `json:"moved,omitempty"`
	}
	nodeLine struct {
		Node    admission.NodeKey `json:"node"`
		Version event.Version     `json:"version"`
		Present bool              `json:"present"`
		Used    resource.List     `json:"used"`
		Drop    bool              `json:"drop,omitempty"`
	}
	stepLine struct {
		Step state.HistoryRow `json:"step"`
	}
	messageLine struct {
		Message string        `json:"message"`
		Subject string        `json:"subject"`
		At      time.Time     `json:"at"`
		TTL     time.Duration `json:"ttl,omitempty"`
		Type    string        `json:"type"`
		State   string        `json:"state,omitempty"` // of a command
		EvictAt time.Time     `json:"evictAt,omitzero"`
	}
)

// Outcome writes changes down: a line of JSON for each thing that changed, in an
// order that is the changes' own.
func Outcome(c state.Changes) []byte {
	if c.Empty() {
		return nil
	}
	var out bytes.Buffer
	out.Grow(estimatedSize(c)) // growing bit by bit leaves as much again to the collector of garbage
	encoder := json.NewEncoder(&out)
	line := func(value any) {
		if err := encoder.Encode(value); err != nil {
			panic("an outcome cannot be encoded: " + err.Error()) // it is plain data
		}
	}
	for _, a := range c.Added {
		line(workloadLine{trimmed(a.Record), a.Order})
	}
	for _, u := range c.Updated {
		line(workloadLine{Workload: trimmed(u)})
	}
	if len(c.Freed) > 0 {
		line(freedLine{c.Freed})
	}
	for _, r := range c.Reserved {
		line(placesLine{Places: r})
	}
	for _, m := range c.Replaced {
		line(placesLine{Places: m, Replaced: true})
	}
	for _, n := range c.Nodes {
		line(nodeLine{admission.NodeKey{Cluster: n.Cluster, Name: n.Name}, n.Version, n.Present, n.Used, n.Drop})
	}
	for _, h := range c.History {
		h.At = h.At.UTC()
		line(stepLine{h})
	}
	for _, m := range c.Messages {
		sent := messageLine{Message: m.ID, Subject: m.Subject, At: m.At.UTC(), TTL: m.TTL, Type: m.Payload.EventType()}
		if command, ok := m.Payload.(*event.GangCommand); ok {
			sent.State, sent.EvictAt = command.State, command.EvictAt.UTC()
		}
		line(sent)
	}
	return out.Bytes()
}

// estimatedSize is about how long an outcome is: lines of records are the longest.
func estimatedSize(c state.Changes) int {
	records, others := len(c.Added)+len(c.Updated), len(c.Reserved)+len(c.Replaced)+len(c.Nodes)+len(c.History)+len(c.Messages)
	return 1024*records + 256*others
}

// trimmed leaves out of a record what never changes or has lines of its own,
// and has its times in UTC: those that Postgres returned are in the zone of the
// machine.
func trimmed(r workload.Record) workload.Record {
	r.Placements = nil
	sizes := make([]workload.PodSet, len(r.PodSets))
	for i, set := range r.PodSets {
		sizes[i] = workload.PodSet{Name: set.Name, Count: set.Count}
	}
	r.PodSets = sizes
	r.MapTimes(time.Time.UTC)
	return r
}

// Difference is the first line in which two outcomes are not the same; a side
// that has ended is empty.
type Difference struct {
	Line     int    `json:"line"` // from 1
	Recorded string `json:"recorded"`
	Replayed string `json:"replayed"`
}

// Compare returns the first difference; nil when there is none.
func Compare(recorded, replayed []byte) *Difference {
	if bytes.Equal(recorded, replayed) {
		return nil
	}
	a, b := bytes.SplitAfter(recorded, []byte("\n")), bytes.SplitAfter(replayed, []byte("\n"))
	for i := range max(len(a), len(b)) {
		d := Difference{Line: i + 1}
		if i < len(a) {
			d.Recorded = string(bytes.TrimRight(a[i], "\n"))
		}
		if i < len(b) {
			d.Replayed = string(bytes.TrimRight(b[i], "\n"))
		}
		if d.Recorded != d.Replayed {
			return &d
		}
	}
	return nil
}
