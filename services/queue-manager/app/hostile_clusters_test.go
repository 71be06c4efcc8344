package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/app"
)

// hostile draws payloads of a stolen key.
type hostile struct{ *rand.Rand }

// value is a value that no honest field has.
func (h hostile) value() string {
	numbers := []string{"-1", "-9223372036854775808", "9223372036854775807", "9223372036854775808", "1e400", "-0.5", "4294967296", "10001"}
	switch h.IntN(6) {
	case 0, 1:
		return numbers[h.IntN(len(numbers))]
	case 2:
		depth := 1 << h.IntN(14)
		return strings.Repeat("[", depth) + strings.Repeat("]", depth)
	case 3:
		return "[" + strings.Repeat("{},", 1<<h.IntN(17)) + "{}]"
	case 4:
		return `"` + strings.Repeat("x", 1<<h.IntN(19)) + `"`
	}
	return []string{`"\u0000"`, `"\ud800"`, `null`, `{"a":{"a":{}},"a":1}`, `""`, `"*"`, `">"`}[h.IntN(7)]
}

// change puts hostile values into the place of some values of a document.
func (h hostile) change(document []byte) []byte {
	var tree any
	if err := json.Unmarshal(document, &tree); err != nil {
		return document
	}
	var places []func(json.RawMessage)
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) { // the same with the same seed
				places = append(places, func(with json.RawMessage) { v[key] = with })
				walk(v[key])
			}
		case []any:
			for i, inner := range v {
				places = append(places, func(with json.RawMessage) { v[i] = with })
				walk(inner)
			}
		}
	}
	walk(tree)
	var texts []string
	for i := range 1 + h.IntN(2) {
		mark := fmt.Sprintf(`"hostile-%d"`, i)
		texts = append(texts, mark, h.value())
		places[h.IntN(len(places))](json.RawMessage(mark))
	}
	marked, err := json.Marshal(tree)
	if err != nil {
		return document
	}
	return []byte(strings.NewReplacer(texts...).Replace(string(marked))) // also what is no JSON
}

// TestHostileRequestsOfClusters: whatever the keys of a cluster ask, each request has an
// answer, no term ends, what is taken in can be counted, and another cluster is answered meanwhile.
func TestHostileRequestsOfClusters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, app.Queue{Name: "research", Namespaces: []string{"default"}}, app.Queue{Name: "theirs", Namespaces: []string{"default"}})
	w.node("n1", 8)
	epoch := w.epoch()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	draw := hostile{rand.New(rand.NewPCG(seed, 1))}
	encode := func(v any) []byte {
		encoded, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return encoded
	}
	node := &event.NodeObserved{Version: event.Version{Session: time.Now().UnixNano(), Seq: 1}, Node: nodeOf("n2", 1)}
	node.Node.Cluster, node.Node.Ready = "west", false
	status := &event.GangStatus{Workload: event.WorkloadID("test", "none"), Cluster: "west", Attempt: 1, Sizes: map[string]int{"workers": 3}}
	gang := &event.GangObserved{Version: node.Version, Cluster: "west", Workload: status.Workload, Pods: []event.GangPod{{Name: "p", Attempt: 1, PodSet: "workers", Node: "n2", Phase: "Running"}}}
	const draws = 120
	for i := range draws {
		uid := fmt.Sprint("h", i)
		questions := []any{
			request(t, uid, submission(madeIn("west", uid, "research"))),
			query.CarryRequest{Workload: status.Workload, Attempt: 1, Kind: workload.KindSecret, Name: "pull"},
			query.TruthRequest{ID: status.Workload},
			map[string]any{"a": 1},
		}
		for j, subject := range []string{query.HomeSubject("west", "research"), query.CarrySubject("west"), query.TruthSubject("west"), query.StraysSubject} {
			data := draw.change(encode(questions[j]))
			asking, cancel := context.WithTimeout(w.ctx, patience)
			_, err := w.bus.Conn().RequestWithContext(asking, subject, data[:min(len(data), 1<<20)])
			cancel()
			if err != nil {
				t.Fatalf("on %s: %v for %.300s", subject, err, data)
			}
		}
		reports := []event.Payload{node, status, gang}
		for j, subject := range []string{event.NodeSubject("west", "n2"), event.StatusSubject("west", status.Workload), event.GangSubject("west", status.Workload)} {
			message, err := event.Marshal(event.NewID(), "test", time.Now(), "", reports[j])
			if err != nil {
				t.Fatal(err)
			}
			message = draw.change(message)
			if err := w.bus.Conn().Publish(subject, message[:min(len(message), 1<<20)]); err != nil {
				t.Fatal(err)
			}
		}
	}
	honest := madeIn("east", "honest", "research")
	if answer, err := w.queries.Home(w.ctx, "east", "research", request(t, "honest", submission(honest))); err != nil || answer.Sequence == 0 {
		t.Fatalf("another cluster's submission: %+v, %v", answer, err)
	}
	w.waits(honest.ID, workload.ReasonNoNodes)
	w.command(w.submit(gangOf("after", "theirs", 1)), event.Present, 1)
	if got := w.epoch(); got != epoch {
		t.Errorf("a term ended: epoch %d, before %d", got, epoch)
	}
	page, err := w.queries.Workloads(w.ctx, query.WorkloadsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range page.Workloads {
		if err := record.CheckSubmitted(); err != nil || record.Home() != "" && record.Home() != "west" && record.ID != honest.ID {
			t.Errorf("workload %s of %q was taken in: %v", record.ID, record.Submitter, err)
		}
		if gpus := record.Requests()["nvidia.com/gpu"]; gpus < 0 {
			t.Errorf("workload %s asks for %d GPUs", record.ID, gpus)
		}
	}
}
