package web

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// poison is HTML, of which nothing may come into a page as HTML.
const poison = `"'><b onclick="x">` + "\u2028</textarea></title></script>javascript:x"

// hostile is an HTTP API in whose answers each text is poisoned, unless a program reads it, or it
// is one of those to keep.
type hostile struct {
	*api
	keep []string
}

func (h hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	recorded := httptest.NewRecorder()
	h.api.ServeHTTP(recorded, r)
	var answer any
	if err := json.Unmarshal(recorded.Body.Bytes(), &answer); err != nil {
		problem(w, http.StatusInternalServerError, err.Error())
		return
	}
	if r.URL.Path != "/v1/caller" {
		answer = h.poisoned("", answer)
	}
	w.WriteHeader(recorded.Code)
	reply(w, answer)
}

// poisoned returns an answer with other texts, and other names of labels and resources.
func (h hostile) poisoned(key string, of any) any {
	switch of := of.(type) {
	case map[string]any:
		changed := map[string]any{}
		for name, value := range of {
			inner := h.poisoned(name, value)
			if slices.Contains([]string{"labels", "allocatable", "free", "reserved", "requests"}, key) {
				name += poison
			}
			changed[name] = inner
		}
		return changed
	case []any:
		for i := range of {
			of[i] = h.poisoned(key, of[i])
		}
	case string:
		_, err := time.Parse(time.RFC3339, of)
		if err == nil || uuid.Validate(of) == nil || slices.Contains(h.keep, of) || slices.Contains([]string{"phase", "state", "strategy", "period", "action", "role", "by"}, key) {
			return of
		}
		return of + poison
	}
	return of
}

// TestNoTextBecomesHTML: whatever workloads, queues, nodes, labels, resources and reasons are
// called, a page has it as text.
func TestNoTextBecomesHTML(t *testing.T) {
	t.Parallel()
	pages := append(paths(), "/workloads/"+string(theID)+"/cancel", "/workloads/"+string(theID)+"/move", "/nodes/east/gpu-00001/close",
		"/whatif?manifests="+strings.Repeat("%22%3E%3Cb%3E", 20), "/workloads?queue=%22%3E%3Cb%3E&namespace=%22%3E%3Cb%3E")
	for name, c := range map[string]struct {
		caller string
		keep   []string
	}{
		"names of an operator": {"olga", nil}, "what the names of an operator lead to": {"olga", []string{"research", "east", "gpu-00001"}},
		"names of a tenant": {"alice", nil}, "what the names of a tenant lead to": {"alice", []string{"research"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBrowser(t, hostile{newAPI(20, 3), c.keep}, c.caller, true)
			shown := 0
			for _, path := range pages {
				_, _, content := b.get(path)
				found, err := faultsOf(content)
				if err != nil || len(found) > 0 || strings.Contains(content, `href="javascript:`) || strings.Contains(content, "<b onclick") {
					t.Errorf("%s: %v, %q", path, err, found)
				}
				if strings.Contains(content, "&lt;b onclick") {
					shown++
				}
			}
			if shown < 10 {
				t.Errorf("poisoned texts are on %d pages only", shown)
			}
		})
	}
}

// TestAbsurdAddresses: parameters that make no sense are refused, or mean nothing; none makes the
// console fail.
func TestAbsurdAddresses(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, newAPI(20, 3), "olga", true)
	values := []string{"", "-1", "9223372036854775808", "1e309", "NaN", "%00", "%ff%fe", "..%2f..%2fetc", "%0d%0aSet-Cookie:+a=b", strings.Repeat("9", 3000), "east/", "/", "%F0%9F%A6%84"}
	for _, path := range []string{"/?window=", "/queues?from=", "/queues/research?after=", "/queues/research?namespace=", "/queues/", "/workloads?after=", "/workloads?phase=", "/workloads?labelSelector=", "/workloads/", "/nodes?from=", "/nodes?state=", "/nodes/east/", "/clusters/", "/usage?since=", "/usage?by=", "/usage?price=", "/dead-letters?from=", "/decisions?before=", "/decisions?workload=", "/whatif?count=1&like=", "/whatif?workload=x&priority=", "/whatif?drain=", "/whatif?label="} {
		for _, value := range values {
			status, header, content := b.get(path + value)
			if status >= 500 || header.Get("Set-Cookie") != "" || strings.Contains(content, "its log has more") {
				t.Errorf("%s%.40s: status %d, %v: %.300s", path, value, status, header, content)
			}
		}
	}
}
