package submissions_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/whatif/submissions"
)

const (
	event       = `{"at": "90m", "queue": "q", "name": "train", "user": "ann", "priority": 3, "pods": [{"name": "workers", "count": 2, "requests": {"cpu": "500m", "nvidia.com/gpu": 8}}], "runs": "1h", "runTime": "2h", "maxRunTime": "3h"}`
	openbHeader = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
)

// Each format comes to gangs with what they request, their times and what they declare.
func TestFormats(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file      string
		requests  resource.List
		pods      int
		life      workload.Life
		submitted time.Duration // since the first moment of the format
		run       time.Duration
	}{
		"events": {
			"# a comment\n\n" + event + "\n", resource.List{"cpu": 500, "nvidia.com/gpu": 8, "pods": 1}, 2,
			workload.Life{RunTime: workload.Duration(2 * time.Hour), MaxRunTime: workload.Duration(3 * time.Hour)}, 90 * time.Minute, time.Hour,
		},
		"openb": {
			openbHeader + "pod,6000,12288,1,460,V100M16|V100M32,LS,Running,10,110,30\n",
			resource.List{"cpu": 6000, "memory": 12288 << 20, "nvidia.com/gpu": 1, "pods": 1}, 1, workload.Life{}, 10 * time.Second, 80 * time.Second,
		},
		"swf": {
			"; MaxNodes: 4\n1 5 -1 100 2 -1 -1 3 200 -1 1 1 1 -1 -1 -1 -1 -1\n", resource.List{"cpu": 1000, "pods": 1}, 3,
			workload.Life{RunTime: workload.Duration(200 * time.Second)}, 5 * time.Second, 100 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read, err := submissions.Read(strings.NewReader(c.file), submissions.Options{Queue: "q", Pod: resource.List{"cpu": 1000}})
			if err != nil {
				t.Fatal(err)
			}
			jobs, left, err := read.Jobs(0)
			if err != nil || len(jobs) != 1 || left.Total() != 0 {
				t.Fatalf("jobs %+v, left out %v, error %v; want one job", jobs, left, err)
			}
			j := jobs[0]
			set := j.PodSets[0]
			if diff := cmp.Diff(c.requests, set.Template.Requests); diff != "" || set.Count != c.pods || j.Queue != "q" {
				t.Errorf("%d pods in queue %q, want %d; requests (-want +got):\n%s", set.Count, j.Queue, c.pods, diff)
			}
			if diff := cmp.Diff(c.life, j.Life); diff != "" {
				t.Errorf("declared (-want +got):\n%s", diff)
			}
			since := j.Submitted.Sub(map[bool]time.Time{true: time.Unix(0, 0).UTC(), false: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}[name == "swf"])
			if since != c.submitted || j.Run != c.run {
				t.Errorf("it is submitted after %s and runs for %s, want %s and %s", since, j.Run, c.submitted, c.run)
			}
		})
	}
}

// A pod of the trace goes only to the models that it names.
func TestAPodNamesItsModels(t *testing.T) {
	t.Parallel()
	read, err := submissions.Read(strings.NewReader(openbHeader+"pod,1,1,1,1000,V100M16|V100M32,LS,Running,0,1,\n"), submissions.Options{Queue: "q"})
	if err != nil {
		t.Fatal(err)
	}
	jobs, _, _ := read.Jobs(0)
	want := []workload.NodeTerm{{Labels: []workload.Requirement{{Key: "nvidia.com/gpu.product", Operator: "In", Values: []string{"V100M16", "V100M32"}}}}}
	if diff := cmp.Diff(want, jobs[0].PodSets[0].Template.Affinity); diff != "" {
		t.Errorf("affinity (-want +got):\n%s", diff)
	}
}

// What cannot be is refused with its line, its field, its value and what would be right.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, want string }{
		"no JSON":              {"{\"at\"\n", "line 1: unexpected EOF; want a JSON object with at, runs"},
		"unknown field":        {`{"at": "1s", "ends": "2s"}`, `line 1: json: unknown field "ends"; want a JSON object with at, runs`},
		"two on a line":        {event + event, "line 1: has more than one object; want one submission on a line"},
		"no run time":          {`{"queue": "q", "pods": [{"name": "a", "requests": {"cpu": 1}}]}`, "line 1: runs: is missing; want how long it runs, such as 90m"},
		"no pods":              {`{"queue": "q", "runs": "1m"}`, "line 1: pods: is missing"},
		"no queue":             {`{"runs": "1m", "pods": [{"name": "a", "requests": {"cpu": 1}}]}`, "line 1: queue: is missing; want the name of a queue, here or with --queue"},
		"negative time":        {`{"at": "-1s", "queue": "q"}`, `"-1s" is not between 0s and`},
		"endless time":         {`{"at": "99999999h", "queue": "q"}`, `"99999999h" is no`},
		"wrong amount":         {`{"queue": "q", "runs": "1m", "pods": [{"name": "a", "requests": {"cpu": "many"}}]}`, `line 1: pods[0].requests.cpu: "many" is no amount`},
		"too many pods":        {`{"queue": "q", "runs": "1m", "pods": [{"name": "a", "count": 100000000, "requests": {"cpu": 1}}]}`, "pods[0].count: 100000000: want 1 to"},
		"two priorities":       {`{"queue": "q", "runs": "1m", "priority": 1, "priorityClass": "high", "pods": [{"name": "a", "requests": {"cpu": 1}}]}`, "priorityClass: there is priority, too; want one of them"},
		"few columns":          {openbHeader + "a,b\n", `line 2: has 2 columns, want 11: "a,b"`},
		"no number":            {openbHeader + "pod,x,1,1,1000,,LS,Running,0,1,0\n", `line 2: cpu_milli: "x": want a whole number, 0 to`},
		"ends too early":       {openbHeader + "pod,1,1,1,1000,,LS,Running,0,10,20\n", "line 2: deletion_time: 10: want a time after its start at 20"},
		"a long line":          {"{" + strings.Repeat(" ", 100_000), "line 1: is longer than 65536 bytes; want one submission"},
		"neither":              {"hello\n", "has 1 fields, want 18"},
		"many faults":          {strings.Repeat("{}\n", 100), "is wrong, too; the rest has not been looked at"},
		"nothing but comments": {"# nothing\n", "there are no submissions; want a line for each"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := submissions.Options{}
			if strings.HasPrefix(c.file, "name,") {
				options.Queue = "q"
			}
			_, err := submissions.Read(strings.NewReader(c.file), options)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
		})
	}
	if _, err := submissions.Read(strings.NewReader(openbHeader), submissions.Options{}); err == nil || !strings.Contains(err.Error(), "set the queue of its pods with --queue") {
		t.Errorf("a pod list without a queue: %v", err)
	}
}
