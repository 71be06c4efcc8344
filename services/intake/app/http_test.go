package app_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/intake/app"
)

// TestHTTPAPI: a workload over HTTP is submitted once although it is sent twice, listed,
// described, explained, followed to its end, and cancelled.
func TestHTTPAPI(t *testing.T) {
	t.Parallel()
	d := newAPIWorld(t, nil)
	var submitted, again httpapi.Submission
	response := d.ask("POST", "/v1/queues/default/workloads?priority=5", fmt.Sprintf(manifest, "glue"), http.StatusCreated, &submitted, httpapi.IdempotencyKey, "one")
	if submitted.Record == nil || submitted.Record.Submitter != "http/alice" || submitted.Record.Priority != 5 || submitted.Source != "http/alice" || submitted.ID != "one" ||
		response.Header.Get("Location") != "/v1/workloads/"+string(submitted.Workload) {
		t.Errorf("submitted as %+v, at %q", submitted, response.Header.Get("Location"))
	}
	d.ask("POST", "/v1/queues/default/workloads?priority=5", fmt.Sprintf(manifest, "glue"), http.StatusCreated, &again, httpapi.IdempotencyKey, "one")
	if again.Workload != submitted.Workload {
		t.Errorf("sent again it is workload %s, want %s", again.Workload, submitted.Workload)
	}
	path := "/v1/workloads/" + string(submitted.Workload)
	var page httpapi.WorkloadsPage
	d.ask("GET", "/v1/workloads?queue=default&phase=queued,running&limit=10", "", http.StatusOK, &page)
	if len(page.Workloads) != 1 || page.Next != submitted.Workload {
		t.Errorf("listed %+v", page)
	}
	var description httpapi.Description
	d.ask("GET", path, "", http.StatusOK, &description)
	if description.Name != "glue" || len(description.History) != 1 {
		t.Errorf("described as %+v", description)
	}
	var explained query.ExplainAnswer
	d.ask("GET", path+"/explanation", "", http.StatusOK, &explained)
	if explained.Position != 3 {
		t.Errorf("explained as %+v", explained)
	}
	var queues query.QueuesAnswer
	d.ask("GET", "/v1/queues", "", http.StatusOK, &queues)
	if len(queues.Queues) != 1 || queues.Queues[0].Name != "default" {
		t.Errorf("queues are %+v; want those that alice may submit to", queues.Queues)
	}

	stream := d.stream(path + "/events")
	if line := <-stream; !strings.Contains(line, `"phase":"queued"`) {
		t.Errorf("the stream begins with %q", line)
	}
	d.ask("DELETE", path+"?why=enough", "", http.StatusAccepted, nil)
	last := ""
	for line := range stream { // it ends with the workload
		last = line
	}
	if !strings.Contains(last, `"phase":"cancelled"`) || !strings.Contains(last, "enough by http/alice") {
		t.Errorf("the stream ends with %q", last)
	}
	d.ask("DELETE", path, "", http.StatusAccepted, nil) // it has ended already

	response = d.ask("GET", "/openapi.json", "", http.StatusOK, nil)
	if got := response.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("the description is %q", got)
	}
}

// TestHTTPAPIRefuses: a refusal names the fault, its place and the remedy, with a
// fitting status.
func TestHTTPAPIRefuses(t *testing.T) {
	t.Parallel()
	d := newAPIWorld(t, nil)
	secret := workload.Record{Workload: workload.Workload{ID: event.WorkloadID("test", "secret"), Queue: "closed", Namespace: "default", Name: "secret"}, Phase: workload.Queued}
	d.mu.Lock()
	d.stored[secret.ID] = secret
	d.mu.Unlock()
	own := workload.Record{Workload: workload.Workload{ID: event.WorkloadID("test", "own"), Queue: "default", Namespace: "default", Name: "own"}, Phase: workload.Queued}
	d.mu.Lock()
	d.stored[own.ID] = own
	d.mu.Unlock()
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		want               string
	}{
		"no manifest":            {"POST", "/v1/queues/default/workloads", "", 422, "the body is empty"},
		"a bad manifest":         {"POST", "/v1/queues/default/workloads", "kind: RayCluster", 422, "apiVersion"},
		"an alias":               {"POST", "/v1/queues/default/workloads", "a: &x 1\nb: *x\n", 422, "anchor"},
		"too large":              {"POST", "/v1/queues/default/workloads", strings.Repeat("x", event.MaxSubmission+1), 413, "has more than 524288 bytes: move files"},
		"no queue's name":        {"POST", "/v1/queues/A.b/workloads", "", 400, `queue "A.b": want`},
		"a priority":             {"POST", "/v1/queues/default/workloads?priority=high", fmt.Sprintf(manifest, "a"), 422, `"priority" is "high"`},
		"a phase":                {"GET", "/v1/workloads?phase=asleep", "", 400, `phase "asleep": want one of`},
		"a limit":                {"GET", "/v1/workloads?limit=501", "", 400, `limit "501": want`},
		"a page":                 {"GET", "/v1/workloads?after=x", "", 400, `after "x": want`},
		"a name with NUL":        {"GET", "/v1/workloads?name=%00", "", 400, `name "\x00": want the name of an object`},
		"a namespace with NUL":   {"GET", "/v1/workloads?namespace=a%00", "", 400, "namespace"},
		"a queue with an escape": {"GET", "/v1/workloads?queue=%1b[2J", "", 400, "queue"},
		"a very long name":       {"GET", "/v1/workloads?name=" + strings.Repeat("x", 6000), "", 400, "name"},
		"an id with NUL":         {"GET", "/v1/workloads/%00", "", 404, "there is no workload"},
		"a reason with a row":    {"DELETE", "/v1/workloads/" + string(own.ID) + "?why=a%0ab", "", 400, "why"},
		"no such workload":       {"GET", "/v1/workloads/missing", "", 404, `there is no workload "missing"`},
		"another's workload":     {"GET", "/v1/workloads/" + string(secret.ID), "", 404, "there is no workload"},
		"another's explanation":  {"GET", "/v1/workloads/" + string(secret.ID) + "/explanation", "", 404, "there is no workload"},
		"another's events":       {"GET", "/v1/workloads/" + string(secret.ID) + "/events", "", 404, "there is no workload"},
		"cancelling another's":   {"DELETE", "/v1/workloads/" + string(secret.ID), "", 404, "there is no workload"},
		"another's queue":        {"GET", "/v1/queues/closed", "", 404, `there is no queue "closed"`},
		"events of another's":    {"GET", "/v1/queues/closed/events", "", 404, `there is no queue "closed"`},
	} {
		t.Run(name, func(t *testing.T) {
			var problem httpapi.Problem
			d.ask(c.method, c.path, c.body, c.status, &problem)
			if !strings.Contains(problem.Error, c.want) {
				t.Errorf("it says %q, want %q", problem.Error, c.want)
			}
		})
	}
	if got := len(d.listed("")); got != 1 {
		t.Errorf("%d workloads of others are listed", got)
	}
	for name, header := range map[string]string{"no token": "", "a wrong token": "Bearer nonsense", "another scheme": "Basic YTpi"} {
		t.Run(name, func(t *testing.T) {
			var problem httpapi.Problem
			response := d.ask("GET", "/v1/workloads", "", http.StatusUnauthorized, &problem, "Authorization", header)
			if !strings.Contains(problem.Error, "Authorization: Bearer TOKEN") || response.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("it says %q", problem.Error)
			}
		})
	}
}

// TestHTTPSettings: settings that admit no caller, or expose tokens, are refused.
func TestHTTPSettings(t *testing.T) {
	t.Parallel()
	tokens := tokensFile(t)
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("- {name: 'a/b', sha256: abc}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]app.HTTPConfig{
		"http-address: is missing":             {TokensFile: tokens},
		"no caller can authenticate":           {Address: "127.0.0.1:0"},
		"want host:port":                       {Address: "here", TokensFile: tokens},
		"must not be sent in the clear":        {Address: "0.0.0.0:8080", TokensFile: tokens},
		"want both or none":                    {Address: "127.0.0.1:0", TokensFile: tokens, CertificateFile: tokens},
		"needs http-certificate":               {Address: "127.0.0.1:0", ClientCAFile: tokens},
		`name "a/b": want at most 100 letters`: {Address: "127.0.0.1:0", TokensFile: bad},
		`sha256 of "a/b": want 64 hexadecimal`: {Address: "127.0.0.1:0", TokensFile: bad},
		"http-connections-per-address: -1":     {Address: "127.0.0.1:0", TokensFile: tokens, ConnectionsPerAddress: -1},
		`http-oidc-prefix: ""`:                 {Address: "127.0.0.1:0", OIDCIssuer: "https://a.example", OIDCClientID: "muster"},
		`"al", as the names`:                   {Address: "127.0.0.1:0", TokensFile: tokens, OIDCIssuer: "https://a.example", OIDCClientID: "muster", OIDCPrefix: "al"},
		"http-tokens: /nowhere/at/all":         {Address: "127.0.0.1:0", TokensFile: "/nowhere/at/all"},
	} {
		t.Run(want, func(t *testing.T) {
			config := app.Config{NATS: bus.Settings{URL: "nats://127.0.0.1:1"}, HTTP: c}
			if err := config.Validate(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, want %q", c, err, want)
			}
		})
	}
}
