package output_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/output"
)

// TestAmountsAreRounded: people read what is free rounded down, and what is used rounded up,
// in a unit that needs few digits; exact amounts stay.
func TestAmountsAreRounded(t *testing.T) {
	t.Parallel()
	n := node()
	n.Free[resource.Memory], n.Reserved[resource.Memory] = 112301272<<10, 112301272<<10
	n.Free[resource.CPU] = 6750
	free := output.Nodes([]query.Node{n}, output.Text, now()).Rows[0]
	if got := strings.Join(free[4:], ", "); got != "6750m of 16, 107Gi of 122Gi, 0 of 4" {
		t.Errorf("free is %q", got)
	}
	q := queue()
	q.Reserved = resource.List{resource.Memory: 112301272 << 10, resource.CPU: 1500}
	if got := output.Queues([]query.Queue{q}, output.Text).Rows[0][5]; got != "cpu 1.5, memory 108Gi" {
		t.Errorf("reserved is %q", got)
	}
	for bytes, want := range map[uint64]string{900: "900 B", 8464: "8.2Ki", 4 << 10: "4Ki", 10 << 20: "10Mi", 1536 << 20: "1.5Gi"} {
		t.Run(want, func(t *testing.T) {
			var text strings.Builder
			answer := query.StatusAnswer{NATS: query.NATSStatus{Version: "2", Streams: []query.StreamStatus{{Name: "S", Bytes: bytes}}}}
			if err := output.Status(&text, answer); err != nil || !strings.Contains(text.String(), " "+want+" ") {
				t.Errorf("%v, want %q in:\n%s", err, want, text.String())
			}
		})
	}
}

// TestTablesFitTerminals: sentences are cut where a line would be longer than the terminal.
func TestTablesFitTerminals(t *testing.T) {
	t.Parallel()
	q := queue()
	for _, name := range []resource.Name{"amd.com/gpu", "example.com/a-long-name-of-a-device", "example.com/another-device"} {
		q.Reserved[name], q.Quota = 4, append(q.Quota, quota.Line{FlavorResource: quota.FlavorResource{Resource: name, Flavor: "v100"}, Nominal: 8})
	}
	note := records()[1]
	note.SetEstimate(&workload.Estimate{Unknown: "it waits behind workloads that never end", Behind: []string{"a-service", "another-service", "a-third-service"}})
	refused := query.WhatIfAnswer{Workloads: []query.WhatIfWorkload{{Namespace: "team", Name: "train", Queue: "research", Refused: strings.Repeat("no such thing ", 10)}}}
	group := output.Groups("raycluster/glue", glue("glue").PodSets)
	group[0].NodeSelector = map[string]string{"nvidia.com/gpu.product": "Tesla-V100-SXM2-32GB", "topology.kubernetes.io/zone": "a"}
	for name, table := range map[string]output.Table{
		"queues": output.Queues([]query.Queue{q}, output.Text), "eta": output.Estimates([]workload.Record{note}, now()),
		"whatif": output.WhatIf(refused, now()), "predict": output.Predicted(group),
	} {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			if err := table.Write(output.Within(&text, 100), ""); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(text.String()) {
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 100 {
					t.Errorf("a line has %d columns: %s", n, line)
				}
			}
		})
	}
}

// TestWideShowsTheHome of a workload that was made with kubectl, which runs there or waits.
func TestWideShowsTheHome(t *testing.T) {
	t.Parallel()
	made := records()[1]
	made.Submitter = workload.ByKubernetes + "/west/team"
	table := output.Workloads([]workload.Record{made}, output.Wide, now())
	at := slices.Index(table.Header, "HOME")
	if at < 0 || table.Rows[0][at] != "west" || table.Rows[0][at+1] != "-" {
		t.Errorf("the columns are %q with the row %q, want HOME west and CLUSTER -", table.Header, table.Rows)
	}
}

// TestWideIsComplete: -o wide cuts nothing, on a terminal either.
func TestWideIsComplete(t *testing.T) {
	t.Parallel()
	note := records()[1]
	note.SetEstimate(&workload.Estimate{Unknown: "it waits behind workloads that never end"})
	for format, complete := range map[output.Format]bool{output.Text: false, output.Wide: true} {
		t.Run(string(format), func(t *testing.T) {
			var text strings.Builder
			err := output.Print(output.Within(&text, 100), format, nil, func() output.Table { return output.Estimates([]workload.Record{note}, now()) })
			if err != nil || strings.Contains(text.String(), note.Estimate().Unknown) != complete {
				t.Errorf("%v, all of the note: want %t in:\n%s", err, complete, text.String())
			}
		})
	}
}
