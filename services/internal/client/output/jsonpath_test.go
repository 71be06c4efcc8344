package output_test

import (
	"bytes"
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/output"
)

// Expressions mean what they do with kubectl; a wrong one is refused before anything is
// asked, with what is wrong.
func TestJSONPath(t *testing.T) {
	t.Parallel()
	value := query.WorkloadsAnswer{Workloads: records()}
	for _, test := range []struct{ path, want string }{
		{"{.workloads[*].name}", "runs waits ended\n"},
		{".workloads[0].name", "runs\n"},
		{"workloads[0].podSets[1].count", "2\n"},
		{`{range .workloads[*]}{.name}{"\t"}{.phase}{"\n"}{end}`, "runs\trunning\nwaits\tqueued\nended\tcancelled\n"},
		{`{.workloads[?(@.phase=="queued")].reason.shortage.asked}`, "2\n"},
		{"{.workloads[*].podSets[1].template.requests}", `{"cpu":"4500m","memory":"16Gi","nvidia.com/gpu":"2","pods":"1"}`},
		{"{.workloads[0].nothing}", ""},
	} {
		t.Run(test.path, func(t *testing.T) {
			t.Parallel()
			var format output.Format
			if err := format.Set("jsonpath=" + test.path); err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := output.Print(&got, format, value, nil); err != nil || !strings.HasPrefix(got.String(), test.want) || test.want == "" && got.Len() > 0 {
				t.Errorf("got %q, %v; want %q", got.String(), err, test.want)
			}
		})
	}
	for path, want := range map[string]string{
		"": "the expression is empty", "{.workloads[}": "unterminated array", "{.a": "unclosed action", "{.a[?(@.b==)]}": "jsonpath",
	} {
		t.Run("refused "+path, func(t *testing.T) {
			t.Parallel()
			var format output.Format
			if err := format.Set("jsonpath=" + path); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("it says %v, want %q", err, want)
			}
		})
	}
	for path, want := range map[string]string{
		"{.items[*].name}":                    `this answer has no items; its list is workloads: want {.workloads[*].name}`,
		"items[*].name":                       `want .workloads[*].name`,
		`{range .items[*]}{.name}{"\n"}{end}`: `want {range .workloads[*]}{.name}`,
	} {
		t.Run("kubectl's "+path, func(t *testing.T) {
			t.Parallel()
			for _, value := range []query.WorkloadsAnswer{value, {Workloads: []workload.Record{}}} {
				var format output.Format
				if err := format.Set("jsonpath=" + path); err != nil {
					t.Fatal(err)
				}
				if err := output.Print(&bytes.Buffer{}, format, value, nil); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("it says %v, want %q", err, want)
				}
			}
		})
	}
	var format output.Format
	if err := format.Set("jsonpath={.workloads[9].name}"); err != nil {
		t.Fatal(err)
	}
	if err := output.Print(&bytes.Buffer{}, format, value, nil); err == nil || !strings.Contains(err.Error(), "array index out of bounds") {
		t.Errorf("an index beyond the end: %v", err)
	}
}

// -o name prints names that commands take.
func TestNames(t *testing.T) {
	t.Parallel()
	for want, value := range map[string]any{
		"raycluster/runs\nraycluster/waits\nraycluster/ended\n": query.WorkloadsAnswer{Workloads: records()},
		"raycluster/runs\n": output.Workload{Record: records()[0]},
		"queue/default\n":   query.QueuesAnswer{Queues: []query.Queue{queue()}},
		"node/n2\n":         node(),
	} {
		t.Run(want, func(t *testing.T) {
			var got bytes.Buffer
			if err := output.Print(&got, output.Name, value, nil); err != nil || got.String() != want {
				t.Errorf("got %q, %v; want %q", got.String(), err, want)
			}
		})
	}
	if err := output.Print(&bytes.Buffer{}, output.Name, statusAnswer(), nil); err == nil || !strings.Contains(err.Error(), "-o name") {
		t.Errorf("what has no names: %v, want a refusal", err)
	}
}
