package web

import (
	"bufio"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
)

// paths are the pages of a world with one workload and nodes.
func paths() []string {
	return []string{"/", "/queues", "/queues/research", "/workloads", "/workloads?phase=queued", "/workloads/" + string(theID), "/workloads/" + string(theID) + "/manifest", "/nodes", "/nodes?state=broken", "/nodes?from=east/gpu-00005", "/nodes/east/gpu-00001",
		"/usage", "/usage?since=24h&by=queue,day", "/dead-letters", "/dead-letters?from=100", "/decisions", "/decisions?workload=" + string(theID), "/whatif", "/whatif?workload=" + string(theID) + "&priority=7", "/?window=24h", "/queues/research?window=7d"}
}

// TestPages: each page is HTML without script or style of its own, with what it is about, and
// with the headers that keep others from using it.
func TestPages(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, newAPI(20, 3), "olga", true)
	texts := map[string][]string{
		"/": {
			"<li>JetStream is full</li>", `<a href="/workloads/` + string(theID) + `">workload team-a/train is stuck</a>`, `<a href="/nodes?cluster=east">cluster east is silent</a>`,
			`<a href="/dead-letters">3 messages could not be processed</a>`, "<li>a budget is used up</li>", "gpu-00001", "research",
		}, "/queues": {"research", "Cohort"}, "/queues/research": {"train-with-a-long-name-000000"},
		"/workloads": {"train-with-a-long-name-000002"}, "/workloads/" + string(theID): {"&lt;b&gt;train", "2 fewer pods of workers", "Cancel", "/manifest", "Earlier estimates of its start", "and its end is unknown"},
		"/workloads/" + string(theID) + "/manifest": {"kind: RayJob", "python &lt;b&gt;train.py --token (masked)", "Secrets that are masked: 1."},
		"/nodes": {"gpu-00019", "in 149m (declared)", "20 of 20 nodes"}, "/nodes?from=east/gpu-00005": {"gpu-00019", `rel="first"`}, "/nodes?state=broken": {"gpu-00007", "1 of 20 nodes"},
		"/nodes/east/gpu-00001": {"nvidia.com/gpu", "/whatif?drain=east%2Fgpu-00001", "team-a/train", "in 149m (declared)", "/nodes/east/gpu-00001/close", "/nodes/east/gpu-00001/empty"},
		"/usage":                {"12.50", "research"}, "/decisions": {"decision 7-13, version 90", "dev.muster.workload.submitted.v1; decide", "4 pods do not fit", "muster replay --since ", "/decisions?before=7-12", "2097152 bytes"},
		"/dead-letters":          {">150</th>", "submission or request", "queue research, user alice", "data is &#34;...&#34; &lt;b&gt;", "(60m ago)", "Rows 1 to 100 of 150.", "7 older ones", "/dead-letters?from=100"},
		"/dead-letters?from=100": {">1</th>", "Rows 101 to 150 of 150."},
		"/whatif?workload=" + string(theID) + "&priority=7": {"team-a/train", "sooner", "On version 77", "4 waiting workloads start as without the change", `value="7"`},
		"/?window=24h":               {"Waiting workloads", "now 1180", "<polyline", `aria-current="true"`},
		"/queues/research?window=7d": {"Waits of those admitted"},
	}
	for _, path := range paths() {
		t.Run(path, func(t *testing.T) {
			status, header, content := b.get(path)
			if status != http.StatusOK {
				t.Fatalf("status %d: %s", status, content)
			}
			for _, text := range texts[path] {
				if !strings.Contains(content, text) {
					t.Errorf("the page lacks %q", text)
				}
			}
			checkHTML(t, content)
			for name, want := range map[string]string{
				"Content-Security-Policy": "script-src 'self'", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Cache-Control": "no-store", "Referrer-Policy": "same-origin",
			} {
				if !strings.Contains(header.Get(name), want) {
					t.Errorf("%s: %q, want %q", name, header.Get(name), want)
				}
			}
		})
	}
}

// checkHTML checks what the policy refuses, and what people who do not see the page need.
func checkHTML(t *testing.T, content string) {
	t.Helper()
	document, err := html.Parse(strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	found, labelled, ids := map[string]int{}, map[string]bool{}, map[string]bool{}
	var inputs []string
	for n := range document.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		found[n.Data]++
		attributes := map[string]string{}
		for _, a := range n.Attr {
			attributes[a.Key] = a.Val
			if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
				t.Errorf("<%s> has the attribute %s", n.Data, a.Key)
			}
		}
		if id := attributes["id"]; id != "" {
			if ids[id] {
				t.Errorf("the id %q is there twice", id)
			}
			ids[id] = true
		}
		switch n.Data {
		case "script":
			if n.FirstChild != nil || attributes["src"] == "" {
				t.Error("a script is written into the page")
			}
		case "style", "b":
			t.Errorf("there is a <%s>", n.Data)
		case "label":
			labelled[attributes["for"]] = true
		case "input", "select":
			if attributes["type"] != "hidden" && n.Parent.Data != "label" {
				inputs = append(inputs, attributes["id"])
			}
		case "th":
			if attributes["scope"] == "" {
				t.Error("a <th> has no scope")
			}
		}
	}
	for _, id := range inputs {
		if !labelled[id] {
			t.Errorf("the input %q has no label", id)
		}
	}
	if found["h1"] != 1 || found["main"] != 1 || found["title"] != 1 {
		t.Errorf("%d h1, %d main, %d title, want one of each", found["h1"], found["main"], found["title"])
	}
}

// TestReportsAreAskedAsWritten: the forms of reports ask the HTTP API for what they have, and
// refuse what is wrong themselves.
func TestReportsAreAskedAsWritten(t *testing.T) {
	t.Parallel()
	a := newAPI(2, 3)
	b := newBrowser(t, a, "olga", false)
	for path, want := range map[string]string{
		"/usage?since=soon": "want a time", "/usage?by=colour": "by &#34;colour&#34;", "/usage?price=x": "price &#34;x&#34;", "/whatif?drain=gpu-1": "want CLUSTER/NODE",
		"/whatif?workload=" + string(theID) + "&priority=high": "want a whole number", "/whatif?label=rack": "want a label with its value", "/whatif?like=a/b&count=x": "want a whole number",
		"/whatif?workload=" + string(theID) + "&pods=workers": "want POD SET=NUMBER", "/decisions?before=x": "want EPOCH-NUMBER", "/decisions?workload=x": "want the id", "/?window=2h": "want 1h, 6h, 24h or 7d",
	} {
		t.Run(path, func(t *testing.T) {
			if status, _, content := b.get(path); status != http.StatusBadRequest && status != http.StatusNotFound || !strings.Contains(content, want) {
				t.Errorf("status %d, want that it says %q: %s", status, want, content)
			}
		})
	}
	if status, _, content := b.get("/whatif?drain=east/gone"); status != http.StatusOK || !strings.Contains(content, "there is no such node") {
		t.Errorf("a refused change: status %d: %s", status, content)
	}
	b.get("/usage?since=2026-01-01&until=2026-01-02&by=queue,day&queue=q&namespace=n&resource=cpu,memory&price=cpu=0.5")
	b.get("/whatif?cluster=east&label=rack=r7&like=east/gpu-1&count=4&workload=" + string(theID) + "&priority=-3&queue=spare&pods=workers=8")
	b.get("/whatif?shape=east:cpu=2,nvidia.com/gpu=8&shapelabels=pool=a100&count=3")
	priority := int32(-3)
	want := []query.WhatIfRequest{{
		AddNodes: []query.NodesLike{{Like: query.NodeName{Cluster: "east", Name: "gpu-1"}, Count: 4}}, DrainAll: []query.NodeSet{{Cluster: "east", Label: "rack", Value: "r7"}},
		Workloads: []query.WorkloadChange{{ID: theID, Priority: &priority, Queue: "spare", Pods: []query.PodCount{{PodSet: "workers", Count: 8}}}},
	}, {
		AddNodes: []query.NodesLike{{Shape: &query.NodeShape{Cluster: "east", Allocatable: resource.List{"cpu": 2000, "nvidia.com/gpu": 8}, Labels: map[string]string{"pool": "a100"}}, Count: 3}},
	}}
	a.mu.Lock()
	defer a.mu.Unlock()
	if diff := cmp.Diff(want, a.tried); diff != "" {
		t.Error(diff)
	}
	const asked = "by=queue%2Cday&namespace=n&price=cpu%3D0.5&queue=q&resource=cpu%2Cmemory&since=2026-01-01T00%3A00%3A00Z&until=2026-01-02T00%3A00%3A00Z"
	if len(a.reports) != 1 || a.reports[0].Encode() != asked {
		t.Errorf("usage was asked for as %v, want %s", a.reports, asked)
	}
}

// TestChartsFollow: a page does not wait for charts that take long; its updates bring them.
func TestChartsFollow(t *testing.T) {
	t.Parallel()
	a := newAPI(1, 1)
	a.lateActivity = make(chan struct{})
	b := newBrowser(t, a, "olga", false)
	b.get("/usage") // whatever else, while the activity is not answered
	_, _, content := b.get("/queues/research")
	if !strings.Contains(content, "The charts take a moment") {
		t.Errorf("the page lacks that charts follow: %s", content)
	}
	close(a.lateActivity)
}

// TestATenantSeesNoNodes: what the HTTP API refuses is refused, and is not offered.
func TestATenantSeesNoNodes(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, newAPI(20, 3), "alice", true)
	if status, _, content := b.get("/nodes"); status != http.StatusForbidden || strings.Contains(content, "gpu-0") {
		t.Errorf("nodes: status %d: %s", status, content)
	}
	if status, _, content := b.get("/dead-letters"); status != http.StatusForbidden || strings.Contains(content, "muster.submit") {
		t.Errorf("dead letters: status %d: %s", status, content)
	}
	if status, _, content := b.get("/"); status != http.StatusOK || strings.Contains(content, "gpu-0") || strings.Contains(content, `href="/nodes"`) {
		t.Errorf("overview: status %d: %s", status, content)
	}
	if _, _, content := b.get("/workloads/" + string(theID)); strings.Contains(content, "action-priority") || !strings.Contains(content, "action-cancel") {
		t.Errorf("the actions of a tenant: %s", content)
	}
}

func TestLogin(t *testing.T) {
	t.Parallel()
	a := newAPI(1, 1)
	b := newBrowser(t, a, "", true)
	if status, header, _ := b.get("/workloads?phase=queued"); status != http.StatusSeeOther || header.Get("Location") != "/login?to=%2Fworkloads%3Fphase%3Dqueued" {
		t.Errorf("without a session: status %d, to %q", status, header.Get("Location"))
	}
	if status, _, _ := b.get("/live/workloads"); status != http.StatusUnauthorized {
		t.Errorf("updates without a session: status %d", status)
	}
	if status, _, content := b.post("/login", url.Values{"token": {"mallory"}}); status != http.StatusUnauthorized || !strings.Contains(content, "does not accept this token") {
		t.Errorf("a token that is unknown: status %d: %s", status, content)
	}
	status, header, _ := b.post("/login", url.Values{"token": {"olga"}, "to": {"//elsewhere.example"}})
	if cookie := header.Get("Set-Cookie"); status != http.StatusSeeOther || header.Get("Location") != "/" || !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Strict") || strings.Contains(cookie, "olga") {
		t.Errorf("login: status %d, to %q, cookie %q", status, header.Get("Location"), cookie)
	}
	if status, _, _ := b.get("/queues"); status != http.StatusOK {
		t.Errorf("logged in: status %d", status)
	}
	a.set(func() { a.revoked = true })
	if status, header, _ := b.get("/workloads"); status != http.StatusSeeOther || !strings.HasPrefix(header.Get("Location"), "/login") {
		t.Errorf("with a token that was withdrawn: status %d, to %q", status, header.Get("Location"))
	}
}

func TestLogout(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, newAPI(1, 1), "olga", true)
	form := b.form()
	if status, _, _ := b.post("/logout", nil); status != http.StatusForbidden {
		t.Errorf("a logout of another site: status %d", status)
	}
	if status, _, _ := b.post("/logout", url.Values{"form": {form}}); status != http.StatusSeeOther {
		t.Errorf("logout: status %d", status)
	}
	if status, _, _ := b.get("/queues"); status != http.StatusSeeOther {
		t.Errorf("after it: status %d", status)
	}
}

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

// TestQueuesOfOneName: a name that several namespaces have is no queue to hold, and the page of
// each names its namespace.
func TestQueuesOfOneName(t *testing.T) {
	t.Parallel()
	a := newAPI(1, 1)
	other := a.queues.Queues[0]
	other.Namespaces = []string{"team-b"}
	a.queues.Queues = append(a.queues.Queues, other)
	b := newBrowser(t, a, "olga", true)
	for _, path := range []string{"/queues/research", "/queues/research/hold"} {
		if status, _, content := b.get(path); status != http.StatusBadRequest || !strings.Contains(content, "team-a, team-b") {
			t.Errorf("%s: status %d: %s", path, status, content)
		}
	}
	form := url.Values{"form": {b.form()}}
	if status, _, content := b.post("/queues/research/hold", form); status != http.StatusBadRequest || len(a.asked()) > 0 {
		t.Errorf("a hold of both: status %d, asked %q: %s", status, a.asked(), content)
	}
	if status, _, content := b.get("/queues/research/hold?namespace=team-b"); status != http.StatusOK || !strings.Contains(content, "in namespace team-b") {
		t.Errorf("the confirmation: status %d: %s", status, content)
	}
	if status, _, _ := b.post("/queues/research/hold?namespace=team-b", form); status != http.StatusSeeOther || len(a.asked()) != 1 {
		t.Errorf("a hold of one: status %d, asked %q", status, a.asked())
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

// TestUpdates: a stream sends the region when it differs, and ends with the session's token.
func TestUpdates(t *testing.T) {
	t.Parallel()
	a := newAPI(1, 1)
	b := newBrowser(t, a, "olga", true)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/live/workloads/"+string(theID), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := b.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	until := func(text string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		t.Fatalf("the stream ended without %q: %v", text, lines.Err())
	}
	until("event: region")
	until("p-queued")
	a.set(func() { a.record.Phase, a.record.Cluster = "running", "east" })
	until("p-running")
	a.set(func() { a.revoked = true })
	until("event: gone")
	for lines.Scan() {
	}
	if lines.Err() != nil {
		t.Errorf("the stream ends with %v", lines.Err())
	}
}

// TestStreamsAreBounded: one more than the limit is refused.
func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, newAPI(1, 1), "olga", true)
	for range mostStreams {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/live/queues", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := b.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if _, err := bufio.NewReader(response.Body).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	if status, _, _ := b.get("/live/queues"); status != http.StatusTooManyRequests {
		t.Errorf("one stream more: status %d", status)
	}
}

// TestTheMapFollows: an overview whose nodes are late comes without them, and its updates bring
// them.
func TestTheMapFollows(t *testing.T) {
	t.Parallel()
	a := newAPI(20, 1)
	a.late = make(chan struct{})
	b := newBrowser(t, a, "olga", true)
	if status, _, content := b.get("/"); status != http.StatusOK || !strings.Contains(content, "their map follows") || strings.Contains(content, "gpu-00001") || !strings.Contains(content, "cluster east is silent") {
		t.Errorf("status %d: %s", status, content)
	}
	b.follows("/", "gpu-00001", a.late)
}

// TestTheReasonFollows: the page of a workload does not wait for an explanation that is late, and
// its updates bring it.
func TestTheReasonFollows(t *testing.T) {
	t.Parallel()
	a := newAPI(1, 1)
	a.lateReason = make(chan struct{})
	b := newBrowser(t, a, "olga", true)
	path, reason := "/workloads/"+string(theID), "2 fewer pods of workers"
	b.client.Timeout = askTimeout * 2 / 3 // when this ends a page is shown without what was asked
	if status, _, content := b.get(path); status != http.StatusOK || !strings.Contains(content, "It is not known at the moment") || strings.Contains(content, reason) {
		t.Errorf("status %d: %s", status, content)
	}
	b.client.Timeout = 0 // updates have no end
	b.follows(path, reason, a.lateReason)
}

// follows opens the updates of a page, lets what is late come, and waits until they have a text.
func (b *browser) follows(path, text string, late chan struct{}) {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.url+"/live"+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	response, err := b.client.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	close(late)
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if strings.Contains(lines.Text(), text) {
			return
		}
	}
	b.t.Errorf("the updates do not bring %q", text)
}

// mostBytes bounds a page of the largest site.
const mostBytes = 1 << 20

// TestPagesOfALargeSite: with 10,000 nodes and 100,000 waiting workloads no page has more than
// a megabyte. Times are logged, because a test machine has no others to compare with.
func TestPagesOfALargeSite(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, newAPI(10_000, 100_000), "olga", true)
	for _, path := range paths() {
		t.Run(path, func(t *testing.T) {
			began := time.Now()
			status, _, content := b.get(path)
			if status != http.StatusOK || len(content) > mostBytes {
				t.Errorf("status %d, %d bytes, want %d at most", status, len(content), mostBytes)
			}
			t.Logf("%d bytes after %s", len(content), time.Since(began))
		})
	}
}

func TestOwn(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]string{
		"": "/", "/workloads?phase=queued": "/workloads?phase=queued", "//a.example": "/", "https://a.example/": "/", `/\a.example`: "/", "javascript:alert(1)": "/", "workloads": "/",
	} {
		t.Run(to, func(t *testing.T) {
			t.Parallel()
			if got := own(to); got != want {
				t.Errorf("own(%q) = %q, want %q", to, got, want)
			}
		})
	}
}
