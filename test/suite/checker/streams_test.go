package checker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// TestAMoveIsNoAdmission: an attempt is admitted at one time with all its pods. Other places
// are a move.
func TestAMoveIsNoAdmission(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	changed := func(attempt int, at time.Time, places string) string {
		return fmt.Sprintf(`{"type": "dev.muster.workload.changed.v1", "data": {"id": "w", "phase": "admitted", "attempt": %d, "times": {"admitted": %q}, "placements": [%s]}}`,
			attempt, at.Format(time.RFC3339Nano), places)
	}
	const here, there = `{"podSet": "workers", "node": "n1", "pods": 2}`, `{"podSet": "workers", "node": "n2", "pods": 1}, {"podSet": "workers", "node": "n1", "pods": 1}`
	first := changed(1, at, here)
	for name, c := range map[string]struct {
		events []string
		want   string // part of the breach; empty for none
	}{
		"once":                         {events: []string{first}},
		"published again":              {events: []string{first, first}},
		"from history, without places": {events: []string{first, changed(1, at, "")}},
		"moved":                        {events: []string{first, changed(1, at, there)}},
		"another attempt":              {events: []string{first, changed(2, at.Add(time.Second), there)}},
		"another time":                 {events: []string{first, changed(1, at.Add(time.Second), here)}, want: "attempt 1 of workload w was admitted twice"},
		"fewer pods":                   {events: []string{first, changed(1, at, `{"podSet": "workers", "node": "n1", "pods": 1}`)}, want: "with 2 pods, and at"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wrong := readsStreams(t, c.events)
			if got := strings.Join(wrong, "; "); c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("the breaches are %q, want one with %q", wrong, c.want)
			}
		})
	}
}

// readsStreams returns what the checker finds in streams with these events of workload w.
func readsStreams(t *testing.T, events []string) []string {
	t.Helper()
	conn, err := Connect(Login{URL: configured(t, fmt.Sprintf("jetstream { store_dir: %q }", t.TempDir()))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	for name, subject := range map[string]string{"MUSTER_EVENTS": "muster.events.*.*", "MUSTER_DISPATCH": "muster.dispatch.*.*"} {
		if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{subject}, Storage: jetstream.MemoryStorage}); err != nil {
			t.Fatal(err)
		}
	}
	for _, data := range events {
		if _, err := js.Publish(t.Context(), "muster.events.q.w", []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	wrong, err := (&Checker{NATS: conn, Cluster: "c"}).checkStreams(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return wrong
}
