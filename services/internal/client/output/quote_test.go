package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// nasty is a name that clears the screen, fakes a row, sets the title of the window
// and turns the direction of writing.
const nasty = "a\x1b[2J\nteam-b\ttrain\tRunning\r\x1b]0;x\a\u009b31m\u202e\x00\xff\U000e0041"

// TestNothingIsObeyed: no table, description, JSON or YAML has what a terminal would
// obey, nor a row that is none.
func TestNothingIsObeyed(t *testing.T) {
	t.Parallel()
	record := workload.Record{Workload: workload.Workload{
		ID: workload.ID(nasty), Name: nasty, Namespace: nasty, Kind: nasty, Queue: nasty, PodSets: []workload.PodSet{{Name: nasty, Count: 1}},
	}, Cluster: nasty, Reason: &workload.Reason{Kind: workload.ReasonInvalid, Message: nasty}}
	printed := func(format Format) string {
		var out bytes.Buffer
		if err := Print(Safe(&out, 0), format, record, func() Table { return Workloads([]workload.Record{record}, format, time.Time{}) }); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	describe := func() string {
		var out bytes.Buffer
		if err := DescribeWorkload(Safe(&out, 0), Workload{Record: record, History: []query.HistoryEntry{{Phase: workload.Queued, Reason: record.Reason}}}, time.Time{}); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for name, text := range map[string]string{
		"table": printed(Text), "wide": printed(Wide), "json": printed(JSON), "yaml": printed(YAML), "description": describe(),
	} {
		t.Run(name, func(t *testing.T) {
			if strings.ContainsAny(text, "\x1b\a\r\x00\u009b\u202e\U000e0041") {
				t.Errorf("the %s has what a terminal obeys: %q", name, text)
			}
			for line := range strings.Lines(text) {
				if strings.HasPrefix(line, "team-b") {
					t.Errorf("the %s has a row that is none: %q", name, text)
				}
			}
		})
	}
	if got := strings.Count(printed(Text), "\n"); got != 2 {
		t.Errorf("the table has %d lines, want a header and a row", got)
	}
	// What programs read is what was meant.
	var fromJSON, fromYAML workload.Record
	if err := json.Unmarshal([]byte(printed(JSON)), &fromJSON); err != nil || fromJSON.Namespace != strings.ToValidUTF8(nasty, "\ufffd") {
		t.Errorf("JSON reads as %q, error %v", fromJSON.Namespace, err)
	}
	if err := yaml.Unmarshal([]byte(printed(YAML)), &fromYAML); err != nil || fromYAML.Namespace != fromJSON.Namespace {
		t.Errorf("YAML reads as %q, error %v", fromYAML.Namespace, err)
	}
}

// TestSafeOverWrites: a character that comes in two pieces is one.
func TestSafeOverWrites(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"ünï→😀", "a\u009bb", "\xff\xfe"} {
		t.Run(fmt.Sprintf("%+q", text), func(t *testing.T) {
			var whole, pieces bytes.Buffer
			_, _ = Safe(&whole, 0).Write([]byte(text))
			s := Safe(&pieces, 0)
			for i := range len(text) {
				if n, err := s.Write([]byte{text[i]}); n != 1 || err != nil {
					t.Fatal(n, err)
				}
			}
			if whole.String() != pieces.String() {
				t.Errorf("%q in pieces is %q, whole %q", text, pieces.String(), whole.String())
			}
		})
	}
}
