package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
)

// TestNodesAreClosed: a node is closed by a reservation of its own for some hours, and a closed
// one offers to be opened.
func TestNodesAreClosed(t *testing.T) {
	t.Parallel()
	for name, evicts := range map[string]bool{"close": false, "empty": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAPI(2, 1)
			b := newBrowser(t, a, "olga", true)
			path := "/nodes/east/gpu-00001"
			if status, _, content := b.get(path + "/" + name); status != http.StatusOK || !strings.Contains(content, "node gpu-00001 of cluster east") {
				t.Errorf("the confirmation: status %d: %s", status, content)
			}
			for hours, want := range map[string]int{"0": http.StatusBadRequest, "2161": http.StatusBadRequest, "x": http.StatusBadRequest} {
				if status, _, content := b.post(path+"/"+name, url.Values{"form": {b.form()}, "hours": {hours}}); status != want || len(a.asked()) > 0 {
					t.Errorf("%s hours: status %d, asked %q: %s", hours, status, a.asked(), content)
				}
			}
			began := time.Now().Add(-time.Second)
			if status, header, content := b.post(path+"/"+name, url.Values{"form": {b.form()}, "hours": {"3"}, "why": {"new fans"}}); status != http.StatusSeeOther || header.Get("Location") != path+"?asked="+name {
				t.Fatalf("status %d, to %q: %s", status, header.Get("Location"), content)
			}
			asked := a.asked()
			if len(asked) != 1 || !strings.HasPrefix(asked[0], "olga PUT /v1/reservations/"+closing("east", "gpu-00001")+"?") {
				t.Fatalf("asked %q", asked)
			}
			_, parameters, _ := strings.Cut(asked[0], "?")
			values, err := url.ParseQuery(parameters)
			if err != nil {
				t.Fatal(err)
			}
			from, err := time.Parse(time.RFC3339, values.Get("from"))
			until, wrong := time.Parse(time.RFC3339, values.Get("until"))
			if err != nil || wrong != nil || from.Before(began) || until.Sub(from) != 3*time.Hour {
				t.Errorf("from %q until %q, want from now for three hours", values.Get("from"), values.Get("until"))
			}
			if values.Get("cluster") != "east" || values.Get("node") != "gpu-00001" || values.Get("why") != "new fans" || (values.Get("evict") == "true") != evicts {
				t.Errorf("asked for %v", values)
			}
			a.set(func() {
				a.reserved = []quota.Reservation{
					{Name: closing("east", "gpu-00001"), Cluster: "east", Nodes: []string{"gpu-00001"}, From: from, Until: until, By: "http/olga", Why: "new fans"},
					{Name: "over", Nodes: []string{"gpu-00001"}, From: from.Add(-time.Hour), Until: from, By: "http/olga", Why: "old fans"},
				}
			})
			deadline, content := time.Now().Add(10*time.Second), ""
			for !strings.Contains(content, "new fans") && time.Now().Before(deadline) { // the answer is kept for a moment
				_, _, content = b.get(path)
			}
			if !strings.Contains(content, "node gpu-00001 is reserved for maintenance") || strings.Contains(content, "old fans") || !strings.Contains(content, path+"/open") || strings.Contains(content, path+"/close") {
				t.Errorf("the page of the closed node: %s", content)
			}
		})
	}
}
