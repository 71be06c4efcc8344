package cli_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/services/internal/client/exit"
)

// line is a job of a log: its submission, run time, processors and requested time.
func line(submit, run, processors, asked string) string {
	return "1 " + submit + " -1 " + run + " " + processors + " -1 -1 " + processors + " " + asked + " -1 1 1 1 -1 -1 -1 -1 -1\n"
}

// TestSimulateRefuses: every fault of a log or a flag is printed, with the exit
// code of a wrong command line, and nothing is printed.
func TestSimulateRefuses(t *testing.T) {
	t.Parallel()
	good := line("0", "10", "1", "10")
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if _, err := zip.Write([]byte(strings.Repeat(good, 10_000))); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ log, flags, want string }{
		"no policy of that name": {good, "--nodes 1 --policy fair", `policy "fair": want one of fcfs, first-fit, easy, easy-sjbf, shortest-first, stretch, conservative-10, conservative`},
		"no depth":               {good, "--nodes 1 --policy conservative-x", `policy "conservative-x": want conservative-N with N from 1 to 1000, such as conservative-10`},
		"too deep":               {good, "--nodes 1 --policy conservative-1001", `policy "conservative-1001": want conservative-N with N from 1 to 1000, such as conservative-10`},
		"empty":                  {"", "--nodes 1", "-: the log has no jobs to simulate: it has none, only 0 header lines; want a line of 18 numbers for each"},
		"headers only":           {"; MaxNodes: 4\n; Note: x\n", "", "-: the log has no jobs to simulate: it has none, only 2 header lines; want a line of 18 numbers for each"},
		"no nodes":               {good, "", "- has neither MaxNodes nor MaxProcs; set the number of nodes with --nodes"},
		"bad header":             {"; MaxNodes: -3\n" + good, "", "-: MaxNodes -3: want 1 to 100000; set the number of nodes with --nodes"},
		"negative nodes":         {good, "--nodes -5", "--nodes -5: want 1 to 100000"},
		"zero nodes":             {good, "--nodes 0", "--nodes 0: want 1 to 100000"},
		"too many nodes":         {good, "--nodes 100001", "--nodes 100001: want 1 to 100000"},
		"all too large": {
			line("0", "10", "8", "10"), "--nodes 4",
			"-: the log has no jobs to simulate: none of its 1 can be simulated on 4 nodes: 1 ask for more processors than there are, 0 for none, 0 have no run time, 0 no requested time",
		},
		"absurd time":    {good + line("0", "9223372036854775807", "1", "10"), "--nodes 1", "-:2: field 4, run time: 9223372036854775807: want at most 315360000 seconds (10 years)"},
		"overflow":       {good + line("0", "99999999999999999999", "1", "10"), "--nodes 1", `-:2: field 4, run time: "99999999999999999999": want a whole number, or -1 when it is not known`},
		"negative field": {good + line("0", "10", "-4", "10"), "--nodes 1", "-:2: field 5, number of allocated processors: -4 is negative; want zero or more, or -1 when it is not known"},
		"cut off":        {packed.String()[:packed.Len()/2], "--nodes 1", "the gzip file ends here, in its middle: it is cut off"},
		"no log":         {"%PDF-1.4\n", "--nodes 1", `-:1: has 1 fields, want 18: "%PDF-1.4"`},
		"another model":  {"", "--trace= --model poisson", "--model poisson: the only model is lublin"},
		"log and model":  {good, "--model lublin", "--trace - and --model lublin: want one of them"},
		"small machine":  {"", "--trace= --model lublin --nodes 4", "--model lublin: 4 processors: want 8 to 100000"},
		"a short log":    {good, "--nodes 1 --windows 2", "--windows: there are 1 jobs; a window has 1024"},
		"eta of windows": {good, "--nodes 1 --windows 2 --eta", "--eta and --windows: want one of them"},
		"no estimates":   {good, "--nodes 1 --diagram x.svg", "--diagram x.svg: want --eta and one policy"},
		"two diagrams":   {good, "--nodes 1 --eta --diagram x.svg --policy easy,fcfs", "--diagram x.svg: want --eta and one policy"},
		"another order":  {good, "--nodes 1 --victims oldest", `--victims: order "oldest": want one of [regret kueue fewest]`},
		"all too urgent": {good, "--nodes 1 --urgent 101", "--urgent 101: want 0 to 100 percent"},
		"two faults":     {"1\n" + good + "2\n", "--nodes 1", "-:1: has 1 fields, want 18: \"1\"\n-:3: has 1 fields, want 18: \"2\""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, c.log, append([]string{"simulate", "--trace", "-"}, strings.Fields(c.flags)...)...)
			if got.code != exit.Usage || !strings.Contains(got.errOut, c.want) || got.out != "" {
				t.Errorf("%+v\nwant exit code %d and %q", got, exit.Usage, c.want)
			}
		})
	}
}

// TestSimulateDraws: the diagram has the numbers of the JSON.
func TestSimulateDraws(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for i := range 60 {
		log.WriteString(line(strconv.Itoa(5*i), strconv.Itoa(5+i%7), "1", "20"))
	}
	file := filepath.Join(t.TempDir(), "eta.svg")
	got := run(t, log.String(), "simulate", "--trace", "-", "--nodes", "1", "--eta", "--diagram", file, "-o", "json")
	var result struct {
		Estimated   int
		Reliability []struct{ Quantile, Covered float64 }
	}
	if err := json.Unmarshal([]byte(got.out), &result); err != nil || got.code != exit.OK || result.Estimated == 0 || len(result.Reliability) != 9 {
		t.Fatalf("%v: %+v", err, got)
	}
	svg, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range result.Reliability {
		if text := fmt.Sprintf(" p%.0f: %.1f %%.", 100*c.Quantile, 100*c.Covered); !strings.Contains(string(svg), text) {
			t.Errorf("the diagram lacks %q", text)
		}
	}
	if got := run(t, line("0", "10", "1", "10"), "simulate", "--trace", "-", "--nodes", "1", "--eta", "--diagram", file); got.code != exit.Failure || !strings.Contains(got.errOut, "there is nothing to draw") {
		t.Errorf("without estimates: %+v", got)
	}
}

// A log that mixes jobs which can be simulated with others: these are counted.
func TestSimulateCountsWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	log := line("0", "10", "2", "20") + line("0", "10", "2", "20") + line("1", "5", "9", "5") + line("1", "-1", "1", "5") + line("1", "5", "-1", "5") + line("1", "5", "1", "-1")
	got := run(t, log, "simulate", "--trace", "-", "--nodes", "2", "--policy", "easy", "-o", "json")
	if got.code != exit.OK {
		t.Fatalf("%+v", got)
	}
	var result struct {
		Policy      string
		Nodes, Jobs int
		Left        map[string]int
		MeanWait    float64 `json:"meanWaitSeconds"`
		Makespan    float64 `json:"makespanSeconds"`
	}
	if err := json.Unmarshal([]byte(got.out), &result); err != nil {
		t.Fatal(err)
	}
	left := map[string]int{"moreProcessorsThanNodes": 1, "noProcessors": 1, "noRunTime": 1, "noRequestedTime": 1}
	if diff := cmp.Diff(left, result.Left); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
	if result.Policy != "easy" || result.Nodes != 2 || result.Jobs != 2 || result.MeanWait != 5 || result.Makespan != 20 {
		t.Errorf("the result is %+v", result)
	}
}

// A log that is made needs no file, and jobs may declare the time that they run.
func TestSimulateAModel(t *testing.T) {
	t.Parallel()
	got := run(t, "", "simulate", "--model", "lublin", "--nodes", "16", "--jobs", "1100", "--load", "0.5", "--windows", "2", "-o", "json")
	var result struct {
		Nodes, Jobs int
		Slowdown    float64 `json:"averageBoundedSlowdown"`
	}
	if err := json.Unmarshal([]byte(got.out), &result); err != nil || got.code != exit.OK {
		t.Fatalf("%v: %+v", err, got)
	}
	if result.Nodes != 16 || result.Jobs != 2048 || result.Slowdown < 1 {
		t.Errorf("the result is %+v", result)
	}
	log := line("0", "10", "1", "-1") + line("0", "10", "1", "-1")
	got = run(t, log, "simulate", "--trace", "-", "--nodes", "1", "--known-run-times", "-o", "json")
	if err := json.Unmarshal([]byte(got.out), &result); err != nil || got.code != exit.OK || result.Jobs != 2 {
		t.Errorf("jobs without a requested time: %v: %+v", err, got)
	}
}

// Urgent jobs have others evicted, which costs their work.
func TestSimulateUrgentJobs(t *testing.T) {
	t.Parallel()
	for order := range strings.FieldsSeq("regret kueue fewest") {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			got := run(t, "", "simulate", "--model", "lublin", "--nodes", "8", "--jobs", "200", "--load", "1", "--urgent", "20", "--victims", order, "-o", "json")
			var result struct {
				Evictions int
				Lost      float64 `json:"lostAcceleratorHours"`
			}
			if err := json.Unmarshal([]byte(got.out), &result); err != nil || got.code != exit.OK {
				t.Fatalf("%v: %+v", err, got)
			}
			if result.Evictions == 0 || result.Lost <= 0 {
				t.Errorf("the result is %+v", result)
			}
		})
	}
}
