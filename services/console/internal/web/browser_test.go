package web

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"muster.dev/muster/services/console/internal/page"
	"muster.dev/muster/services/internal/client/overhttp"
)

// another returns a browser of the same console, where the owner of the token is logged in.
func (b *browser) another(token string) *browser {
	b.t.Helper()
	other := stranger(b.t, b.url, b.log)
	if status, _, _ := other.post("/login", url.Values{"token": {token}}); status != http.StatusSeeOther {
		b.t.Fatalf("the login of %s ends with %d", token, status)
	}
	return other
}

// browser is one that is logged in.
type browser struct {
	t      *testing.T
	client *http.Client
	url    string
	log    *observer.ObservedLogs
}

// stranger returns a browser that is not logged in.
func stranger(t *testing.T, url string, log *observer.ObservedLogs) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, url, log}
}

// site is an HTTP API, and how long the console waits for parts of a page.
type site interface {
	http.Handler
	patience() time.Duration
}

// newBrowser starts the console, and logs in unless the token is empty.
func newBrowser(t *testing.T, a site, token string, actions bool) *browser {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	client, err := overhttp.New(overhttp.Settings{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	core, log := observer.New(zap.InfoLevel)
	handler, err := New(Options{API: client, Actions: actions, RackLabel: "rack", Elsewhere: elsewhere(t), Patience: a.patience(), Logger: zap.New(core), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	console := httptest.NewServer(handler)
	t.Cleanup(console.Close)
	b := stranger(t, console.URL, log)
	if token != "" {
		if status, _, _ := b.post("/login", url.Values{"token": {token}}); status != http.StatusSeeOther {
			t.Fatalf("the login of %s ends with %d", token, status)
		}
	}
	return b
}

// elsewhere has addresses of dashboards and logs.
func elsewhere(t *testing.T) page.Elsewhere {
	t.Helper()
	dashboard, err := page.ParseTemplate("https://{cluster}.example.org/{namespace}/{name}")
	if err != nil {
		t.Fatal(err)
	}
	logs, err := page.ParseTemplate("https://logs.example.org/?id={workload}&from=1h")
	if err != nil {
		t.Fatal(err)
	}
	return page.Elsewhere{Dashboard: dashboard, Logs: logs}
}

func (b *browser) get(path string) (int, http.Header, string) {
	b.t.Helper()
	return b.do(http.MethodGet, path, "", nil)
}

func (b *browser) post(path string, form url.Values) (int, http.Header, string) {
	b.t.Helper()
	return b.do(http.MethodPost, path, form.Encode(), http.Header{"Content-Type": {"application/x-www-form-urlencoded"}})
}

func (b *browser) do(method, path, body string, header http.Header) (int, http.Header, string) {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	for name, values := range header {
		request.Header[name] = values
	}
	response, err := b.client.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(content)
}

var formValue = regexp.MustCompile(`name="form" value="([^"]+)"`)

// form is the value that the session's forms carry.
func (b *browser) form() string {
	b.t.Helper()
	_, _, content := b.get("/queues")
	found := formValue.FindStringSubmatch(content)
	if found == nil {
		b.t.Fatalf("no form in %s", content)
	}
	return found[1]
}
