package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/exit"
)

func recordOf(id byte, name string, phase workload.Phase) workload.Record {
	return workload.Record{Workload: workload.Workload{
		ID: workload.ID(fmt.Sprintf("6f2b5d1e-4f0a-5c1d-9d3e-00000000000%c", id)), Name: name, Queue: "q", Namespace: "team", Kind: "RayJob"}, Phase: phase}
}

// api is the HTTP API with a few workloads in queue q; it is busy at the first question for
// the status. cancelled tells the ids that were cancelled.
func api(t *testing.T, cancelled chan string) string {
	t.Helper()
	records := []workload.Record{
		recordOf('1', "again", workload.Succeeded), recordOf('2', "again", workload.Running), recordOf('3', "first", workload.Queued), recordOf('4', "second", workload.Queued),
	}
	answer := func(w http.ResponseWriter, value any) {
		if err := json.NewEncoder(w).Encode(value); err != nil {
			t.Error(err)
		}
	}
	var asked atomic.Int32
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/workloads", func(w http.ResponseWriter, r *http.Request) {
		found := slices.Clone(records)
		parameters := r.URL.Query()
		found = slices.DeleteFunc(found, func(one workload.Record) bool {
			return parameters.Get("name") != "" && one.Name != parameters.Get("name") || parameters.Get("namespace") != "" && one.Namespace != parameters.Get("namespace")
		})
		answer(w, httpapi.WorkloadsPage{Workloads: found})
	})
	mux.HandleFunc("DELETE /v1/workloads/{id}", func(w http.ResponseWriter, r *http.Request) {
		cancelled <- r.PathValue("id")
		answer(w, httpapi.Cancelling{})
	})
	mux.HandleFunc("GET /v1/queues", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, query.QueuesAnswer{
			Queues:          []query.Queue{{Name: "q", Namespaces: []string{"team"}}, {Name: "r", Namespaces: []string{"other", "team"}}},
			PriorityClasses: []quota.PriorityClass{{Name: "urgent"}},
		})
	})
	events := func(w http.ResponseWriter, r *http.Request) {
		if since := r.URL.Query().Get("since"); since != "" {
			if r.URL.Query().Get("follow") != "false" {
				t.Errorf("asked is %s, want what is past alone", r.URL)
			}
			data, err := json.Marshal(records[1])
			if err != nil {
				t.Error(err)
			}
			fmt.Fprintf(w, "id: one\ntime: %s\nevent: dev.muster.workload.changed.v1\ndata: %s\n\n", since, data)
			return
		}
		ended := records[2]
		ended.Phase = workload.Cancelled
		for _, r := range append(slices.Clone(records), ended) {
			data, err := json.Marshal(r)
			if err != nil {
				t.Error(err)
			}
			fmt.Fprintf(w, "event: dev.muster.workload.changed.v1\ndata: %s\n\n", data)
		}
	}
	mux.HandleFunc("GET /v1/queues/q/events", events)
	mux.HandleFunc("GET /v1/events", events)
	mux.HandleFunc("GET /v1/dead-letters", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, httpapi.DeadLetters{DeadLetters: []httpapi.DeadLetter{{Subject: "muster.submit.q", Sequence: 7, At: time.Now(), Reason: "no manifest", Bytes: 16}}, Older: 2})
	})
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusTooManyRequests)
			answer(w, httpapi.Problem{Error: "the status is being asked for; try again"})
			return
		}
		answer(w, query.StatusAnswer{})
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// TestAgainstAServer: lists say when they are empty, --watch prints only what changes, a busy
// server is asked again, and completions fit what has been typed.
func TestAgainstAServer(t *testing.T) {
	t.Parallel()
	url := api(t, make(chan string, 10))
	const header = "NAME     KIND     QUEUE   PHASE        PODS   AGE   REASON\n"
	row := func(name, phase string) string { return fmt.Sprintf("%-9sRayJob   q       %-10s   0\n", name, phase) }
	for args, want := range map[string]result{
		"get wl -n nope":            {exit.OK, "", "No workloads found in namespace nope.\n"},
		"get wl -n nope -o name":    {exit.OK, "", ""},
		"get wl first --no-headers": {exit.OK, "first   RayJob   q   queued   0\n", ""},
		"get clusterqueues -o name": {exit.OK, "clusterqueue/\n", ""},
		"get flavors":               {exit.OK, "", "No flavors found.\n"},
		"eta -n nope":               {exit.OK, "", "No waiting workloads found in namespace nope.\n"},
		"get wl -q q -n team --watch": {exit.OK, header + row("again", "succeeded") + row("again", "running") + row("first", "queued") + row("second", "queued") +
			row("first", "cancelled"), ""},
		"get wl -n team --watch": {exit.OK, header + row("again", "succeeded") + row("again", "running") + row("first", "queued") + row("second", "queued") +
			row("first", "cancelled"), ""},
		"get dead-letters": {exit.OK, "NUMBER   SUBJECT           GIVEN UP   SIZE   REASON\n7        muster.submit.q   0s         16     no manifest\n",
			"2 older ones are left out; --nats-url lists all.\n"},
		"get wl -q q -n team -w --phase queued": {exit.OK, header + row("first", "queued") + row("second", "queued") + row("first", "cancelled"), ""},
		"status -o name":                        {exit.Usage, "", "muster: -o name: this command shows no objects with names; want text, wide, json, yaml or jsonpath=EXPRESSION\nSee `muster status --help`.\n"},
		"__complete get wl --phase queued,ru":   {exit.OK, "queued,running", ""},
		"__complete describe workload ":         {exit.OK, "again\trunning\nfirst\tqueued\nsecond\tqueued\n:4", ""},
		"__complete describe workload first ":   {exit.OK, ":4", ""},
		"__complete cancel first ":              {exit.OK, "again\trunning\nsecond\tqueued\n:4", ""},
		"__complete submit -n ":                 {exit.OK, "other\nteam\n:4", ""},
		"__complete submit --priority-class ":   {exit.OK, "urgent\n:4", ""},
		"__complete submit --id ":               {exit.OK, ":4", ""},
		"__complete submit -f ":                 {exit.OK, ":0", ""},
		"__complete get workloads --queue":      {exit.OK, "only those of this queue", ""},
		"__complete move first -q ":             {exit.OK, "q\n", ""},
		"__complete delete cluster":             {exit.OK, "clusterqueue\n", ""},
		"__complete help get wl":                {exit.OK, ":4", ""},
		"__complete events -q q -w ":            {exit.OK, "again\trunning\n", ""},
		"__complete whatif --drain ":            {exit.OK, ":4", ""},
		"__complete whatif --move ":             {exit.OK, ":4", ""},
		"__complete get workloads first ":       {exit.OK, ":4", ""},
		"__complete hold workload ":             {exit.OK, "again\trunning\n", ""},
		"__complete cancel --phase queued,runn": {exit.OK, "queued,running", ""},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			words := strings.Split(args, " ")
			if words[0] == "__complete" { // what is completed is last
				words = slices.Insert(words, 1, "--server", url)
			} else {
				words = append(words, "--server", url)
			}
			got := run(t, "", words...)
			if words[0] == "__complete" {
				if !strings.Contains("\n"+got.out, want.out) {
					t.Errorf("%q, want %q in it", got.out, want.out)
				}
				return
			}
			if got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
	if got := run(t, "", "status", "--server", url); got.code != exit.OK {
		t.Errorf("the status of a busy server: %+v", got)
	}
}

// TestEventsSinceOverHTTP: the events of a queue since a time have the times at which they
// happened, and the command ends with them.
func TestEventsSinceOverHTTP(t *testing.T) {
	t.Parallel()
	url := api(t, make(chan string, 10))
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	want := at.Local().Format("2006-01-02 15:04:05.000") + "  q           running     rayjob/again\n"
	if got := run(t, "", "events", "-q", "q", "--since", at.Format(time.RFC3339), "--server", url); got.code != exit.OK || got.out != want {
		t.Errorf("%+v, want %q", got, want)
	}
	if got := run(t, "", "events", "-q", "q", "--server", url); got.code != exit.Usage || !strings.Contains(got.errOut, "--since 1h") {
		t.Errorf("neither since when nor for how long: %+v", got)
	}
}

// TestSeveralAreCancelled: `muster cancel` takes several names, and cancels none when there is
// no workload of one of them.
func TestSeveralAreCancelled(t *testing.T) {
	t.Parallel()
	cancelled := make(chan string, 10)
	url := api(t, cancelled)
	if got := run(t, "", "cancel", "first", "nobody", "--server", url); got.code != exit.NotFound || len(cancelled) > 0 {
		t.Errorf("%+v and %d cancelled, want none", got, len(cancelled))
	}
	got := run(t, "", "cancel", "first", "second", "first", "--server", url)
	if got.code != exit.OK || strings.Count(got.out, "is being cancelled") != 2 || len(cancelled) != 2 {
		t.Errorf("%+v and %d cancelled, want two", got, len(cancelled))
	}
}

// TestADryRunSubmitsNothing: --dry-run says what would be rejected, and why, and asks only for
// the queues.
func TestADryRunSubmitsNothing(t *testing.T) {
	t.Parallel()
	url := api(t, nil)
	const pods = "spec: {containers: [{name: ray, image: rayproject/ray:2.46.0, resources: {limits: {cpu: 2, memory: 4Gi}}}]}"
	const glue = "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: glue, namespace: team}\nspec:\n  rayVersion: 2.46.0\n  headGroupSpec:\n    rayStartParams: {}\n    template: {" + pods + "}\n"
	labelled := func(queue string) string {
		return strings.Replace(glue, "namespace: team", "namespace: team, labels: {muster.dev/queue-name: "+queue+"}", 1)
	}
	for name, test := range map[string]struct {
		manifest, args string
		code           int
		want           string
	}{
		"what is right":       {glue, "-q q", exit.OK, "raycluster/glue would be submitted to queue q: 1 pod, cpu 2, memory 4Gi (dry run)"},
		"the label's queue":   {labelled("q"), "", exit.OK, "raycluster/glue would be submitted to queue q: 1 pod"},
		"another label":       {labelled("nowhere"), "-q q", exit.Rejected, `metadata.labels[muster.dev/queue-name]: is "nowhere", but the submission is to queue "q"`},
		"another kind":        {"apiVersion: workload.codeflare.dev/v1beta2\nkind: AppWrapper\nmetadata: {name: a}\n", "-q q", exit.OK, "checked only when it is submitted"},
		"no queue":            {glue, "-q nowhere", exit.Rejected, `there is no queue "nowhere"`},
		"no such namespace":   {strings.Replace(glue, "namespace: team", "namespace: mine", 1), "-q q", exit.Rejected, `does not serve namespace "mine"; it serves team`},
		"no such class":       {glue, "-q q --priority-class low", exit.Rejected, `priority class "low" does not exist`},
		"a wrong manifest":    {strings.Replace(glue, "cpu: 2", "cpu: two", 1), "-q q", exit.Rejected, "two"},
		"one of two is wrong": {glue + "---\n" + job, "-q q", exit.Rejected, "raycluster/glue would be submitted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, test.manifest, append([]string{"submit", "-f", "-", "--dry-run", "--server", url}, strings.Fields(test.args)...)...)
			if got.code != test.code || !strings.Contains(got.out+got.errOut, test.want) {
				t.Errorf("%+v, want exit code %d and %q", got, test.code, test.want)
			}
		})
	}
}
