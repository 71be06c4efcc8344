package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestActions: each action asks the HTTP API for one change with the caller's token, and leaves a
// line in the log, which has no token.
func TestActions(t *testing.T) {
	t.Parallel()
	one := "/workloads/" + string(theID)
	for name, test := range map[string]struct {
		path string
		form url.Values
		want string
	}{
		"cancel":            {one + "/cancel", url.Values{"why": {"done"}}, "olga DELETE /v1" + one + "?why=done"},
		"hold":              {one + "/hold", url.Values{"why": {"wait"}}, "olga PUT /v1" + one + "/hold?why=wait"},
		"resume":            {one + "/resume", nil, "olga DELETE /v1" + one + "/hold"},
		"move":              {one + "/move", url.Values{"queue": {"b"}}, "olga POST /v1" + one + "/move?queue=b"},
		"requeue":           {one + "/requeue", nil, "olga POST /v1" + one + "/requeue"},
		"priority":          {one + "/priority", url.Values{"value": {"-5"}}, "olga PUT /v1" + one + "/priority?value=-5"},
		"hold of a queue":   {"/queues/research/hold", url.Values{"why": {"driver"}}, "olga PUT /v1/queues/research/hold?allNamespaces=true&why=driver"},
		"cordon":            {"/clusters/east/cordon", url.Values{"why": {"cables"}}, "olga PUT /v1/clusters/east/cordon?why=cables"},
		"drain":             {"/clusters/east/drain", nil, "olga PUT /v1/clusters/east/cordon?drain=true"},
		"uncordon":          {"/clusters/west/uncordon", url.Values{"why": {"ignored"}}, "olga DELETE /v1/clusters/west/cordon"},
		"open":              {"/nodes/east/gpu-00000/open", nil, "olga DELETE /v1/reservations/" + closing("east", "gpu-00000")},
		"resume of a queue": {"/queues/research/resume?namespace=team-a", nil, "olga DELETE /v1/queues/research/hold?namespace=team-a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAPI(1, 1)
			b := newBrowser(t, a, "olga", true)
			if status, _, content := b.get(test.path); status != http.StatusOK || !strings.Contains(content, `method="post"`) || len(a.asked()) > 0 {
				t.Errorf("the confirmation: status %d, asked %q: %s", status, a.asked(), content)
			} else {
				checkHTML(t, content)
			}
			form := url.Values{"form": {b.form()}}
			for name, values := range test.form {
				form[name] = values
			}
			status, header, content := b.post(test.path, form)
			if status != http.StatusSeeOther || !strings.Contains(header.Get("Location"), "asked=") {
				t.Errorf("status %d, to %q: %s", status, header.Get("Location"), content)
			}
			if got := a.asked(); len(got) != 1 || got[0] != test.want {
				t.Errorf("asked %q, want %q", got, test.want)
			}
			lines := b.log.FilterMessage("action asked").All()
			if len(lines) != 1 || lines[0].ContextMap()["caller"] != "olga" {
				t.Errorf("the log has %v", lines)
			}
		})
	}
}

// TestActionsThatAreRefused change nothing.
func TestActionsThatAreRefused(t *testing.T) {
	t.Parallel()
	cancel, priority := "/workloads/"+string(theID)+"/cancel", "/workloads/"+string(theID)+"/priority"
	for name, test := range map[string]struct {
		token, path string
		actions     bool
		form        url.Values
		header      http.Header
		noForm      bool
		status      int
	}{
		"the console shows only":    {token: "olga", path: cancel, status: http.StatusForbidden},
		"a form of another site":    {token: "olga", path: cancel, actions: true, noForm: true, status: http.StatusForbidden},
		"from another site":         {token: "olga", path: cancel, actions: true, header: http.Header{"Sec-Fetch-Site": {"cross-site"}}, status: http.StatusForbidden},
		"no operator":               {token: "alice", path: priority, actions: true, form: url.Values{"value": {"5"}}, status: http.StatusForbidden},
		"a cluster, no operator":    {token: "alice", path: "/clusters/east/cordon", actions: true, status: http.StatusForbidden},
		"a node, no operator":       {token: "alice", path: "/nodes/east/gpu-00000/empty", actions: true, form: url.Values{"hours": {"1"}}, status: http.StatusForbidden},
		"a cluster, shows only":     {token: "olga", path: "/clusters/east/drain", status: http.StatusForbidden},
		"no number":                 {token: "olga", path: priority, actions: true, form: url.Values{"value": {"high"}}, status: http.StatusBadRequest},
		"a reason that is too long": {token: "olga", path: cancel, actions: true, form: url.Values{"why": {strings.Repeat("x", longestWhy+1)}}, status: http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAPI(1, 1)
			b := newBrowser(t, a, test.token, test.actions)
			form := url.Values{}
			if !test.noForm {
				form.Set("form", b.form())
			}
			for name, values := range test.form {
				form[name] = values
			}
			header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
			for name, values := range test.header {
				header[name] = values
			}
			status, _, content := b.do(http.MethodPost, test.path, form.Encode(), header)
			if status != test.status || len(a.asked()) > 0 {
				t.Errorf("status %d, want %d; asked %q: %s", status, test.status, a.asked(), content)
			}
		})
	}
}

// TestTheFlavorsOfClusters: the overview of an operator has the flavors that each cluster offers, a
// few of many, with what they are called as text.
func TestTheFlavorsOfClusters(t *testing.T) {
	t.Parallel()
	_, _, content := newBrowser(t, newAPI(1, 1), "olga", false).get("/")
	checkHTML(t, content)
	for cluster, want := range map[string]string{"east": "f1, f2, f3, f4, f5, f6, f7, f8 and 1 more", "gone": "spot, reserved&lt;b&gt;", "south": "all"} {
		_, row, _ := strings.Cut(content, `<th scope="row"><a href="/nodes?cluster=`+cluster+`">`)
		if row, _, _ = strings.Cut(row, "</tr>"); !strings.Contains(row, ">"+want+"<") {
			t.Errorf("the row of cluster %s lacks %q: %s", cluster, want, row)
		}
	}
}

// TestActionsOfClusters: the overview offers operators, and no one else, what would change a
// cluster.
func TestActionsOfClusters(t *testing.T) {
	t.Parallel()
	a := newAPI(1, 1)
	b := newBrowser(t, a, "olga", true)
	status, _, content := b.get("/?asked=drain")
	if status != http.StatusOK || !strings.Contains(content, "Asked: Drain.") || !strings.Contains(content, `cluster &#34;west&#34; is cordoned`) || !strings.Contains(content, "cables") {
		t.Errorf("status %d: %s", status, content)
	}
	checkHTML(t, content)
	for path, want := range map[string]bool{
		"east/cordon": true, "east/drain": true, "east/uncordon": false, "west/cordon": false, "west/drain": true, "west/uncordon": true,
		"south/cordon": false, "south/drain": false, "south/uncordon": true, "gone/cordon": false, "gone/drain": false, "gone/uncordon": false,
	} {
		if strings.Contains(content, `href="/clusters/`+path+`"`) != want {
			t.Errorf("%s is offered: %t, want %t", path, !want, want)
		}
	}
	if status, _, content := b.get("/clusters/north/cordon"); status != http.StatusNotFound || !strings.Contains(content, "There is no cluster") {
		t.Errorf("a cluster that is none: status %d: %s", status, content)
	}
	for name, other := range map[string]*browser{"a tenant": b.another("alice"), "a console that shows only": newBrowser(t, a, "olga", false)} {
		if _, _, content := other.get("/"); strings.Contains(content, "/clusters/") {
			t.Errorf("%s is offered actions of clusters: %s", name, content)
		}
	}
}
