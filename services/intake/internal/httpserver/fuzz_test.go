package httpserver

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/intake/internal/budget"
)

// FuzzRequest checks that every request is read or refused with a short, printable
// 4xx error, and that the submitter is the authenticated caller.
func FuzzRequest(f *testing.F) {
	const manifest = `{"apiVersion":"ray.io/v1","kind":"RayCluster","metadata":{"name":"a"},"spec":{"headGroupSpec":{"template":{"spec":{"containers":[{"name":"ray","image":"ray"}]}}}}}`
	f.Add("team-a", "priority=1&limit=5&after=3&phase=queued,running&name=a", "key", []byte(manifest))
	f.Add("a", "name=%00", "", []byte(manifest))
	f.Add("../b", "limit=-1&name=%00", "\x1b[2J", []byte("apiVersion: ray.io/v1\nkind: RayCluster\n"))
	f.Add(strings.Repeat("q", 300), "phase="+strings.Repeat("x", 5000), strings.Repeat("k", 5000), []byte(`[]`))
	f.Add("a", "priority=1e99&priorityClass=%0a&limit="+strings.Repeat("9", 5000)+"&after=-9223372036854775808", "", []byte("\xff"))
	f.Add("a", "since=2026-01-02T15:04:05Z&step=60", "", []byte(`{"workloads":[{"id":"x","priority":7}],"drain":[{"cluster":"c","name":"n"}]}`))
	server := &Server{Options: Options{Operator: ray.Shipped(), Budget: budget.New(budget.Default()), Logger: zap.NewNop()}}
	f.Fuzz(func(t *testing.T, queue, values, key string, body []byte) {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(string(body)))
		r.URL.RawQuery = values
		r.Header[httpapi.IdempotencyKey] = []string{key}
		r.SetPathValue("queue", queue)
		request, err := listRequest(r)
		checkFailure(t, err)
		if err == nil && (request.Limit < 0 || request.Limit > query.MaxPage || request.After < 0 || kube.BadText(request.Name+request.Namespace+request.Queue) != "") {
			t.Fatalf("request %+v", request)
		}
		if _, err := activityRequest(r, time.Now()); err != nil {
			checkFailure(t, err)
		}
		changed := r.Clone(t.Context())
		changed.Body = io.NopCloser(strings.NewReader(string(body)))
		_, err = whatIfRequest(httptest.NewRecorder(), changed)
		checkFailure(t, err)
		submitted, result, err := server.readSubmission(t.Context(), httptest.NewRecorder(), r, "http/alice")
		checkFailure(t, err)
		if err == nil && (submitted.Source != "http/alice" || !workload.ValidName(submitted.Queue) || result.Workload == "") {
			t.Fatalf("submission %+v, result %+v", submitted, result)
		}
	})
}

func checkFailure(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	var known *failure
	if !errors.As(err, &known) || known.status < 400 || known.status > 499 || len(err.Error()) > 8000 || kube.BadText(strings.ReplaceAll(err.Error(), "\n", "")) != "" {
		t.Fatalf("error of %d bytes: %.500q", len(err.Error()), err.Error())
	}
}

// FuzzTokens checks that no token file admits an invalid name, or a caller without its
// token.
func FuzzTokens(f *testing.F) {
	f.Add([]byte("- name: alice\n  sha256: 2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90\n"), "alice")
	f.Add([]byte("- {name: 'a*', sha256: ''}\n- {name: a, sha256: E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855}\n"), "")
	f.Add([]byte("&a [*a]\n"), " ")
	f.Fuzz(func(t *testing.T, content []byte, token string) {
		tokens, err := ReadTokens(content)
		if err != nil {
			return
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if name, _, err := tokens.Identify(r); err == nil {
			t.Fatalf("%q gets in without a token", name)
		}
		r.Header["Authorization"] = []string{"Bearer " + token}
		if name, _, err := tokens.Identify(r); err == nil && !validName.MatchString(name) {
			t.Fatalf("%q gets in", name)
		}
	})
}
