package app_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/intake/app"
)

const token = "let me in"

// apiWorld is intake with its HTTP API, and a simulated queue-manager that stores every
// workload unless set otherwise.
type apiWorld struct {
	*world
	url    string
	client *http.Client

	mu       sync.Mutex
	stored   map[workload.ID]workload.Record
	rightsOf []workload.Submitters // of queue default; empty is everybody
}

func tokensFile(t *testing.T) string {
	t.Helper()
	sum := sha256.Sum256([]byte(token))
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, "- {name: alice, sha256: %s}\n", hex.EncodeToString(sum[:])), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func newAPIWorld(t *testing.T, configure func(*app.HTTPConfig)) *apiWorld {
	t.Helper()
	d := &apiWorld{world: newWorld(t), client: http.DefaultClient, stored: map[workload.ID]workload.Record{}}
	listening := make(chan net.Addr, 1)
	d.config.HTTP = app.HTTPConfig{Address: "127.0.0.1:0", TokensFile: tokensFile(t), Listening: func(a net.Addr) { listening <- a }}
	if configure != nil {
		configure(&d.config.HTTP)
	}
	if err := d.config.Validate(); err != nil {
		t.Fatal(err)
	}
	d.play()
	stop := d.start()
	t.Cleanup(func() { _ = stop() })
	d.url = "http://" + (<-listening).String()
	return d
}

// play answers as queue-manager does: "default" admits every submitter, "closed" only bob.
func (d *apiWorld) play() {
	go func() {
		for delivery := range d.accepted {
			_, payload, err := delivery.Event()
			if err != nil {
				d.t.Error(err)
				continue
			}
			delivery.Ack()
			switch e := payload.(type) {
			case *event.WorkloadSubmitted:
				record := workload.Record{Workload: e.Workload, Phase: workload.Queued, Attempt: 1, Times: workload.Times{Submitted: time.Now()}}
				if record.Namespace == "" {
					record.Namespace = "default"
				}
				d.store(record)
			case *event.WorkloadCancel:
				d.mu.Lock()
				record := d.stored[e.Workload]
				d.mu.Unlock()
				record.Phase, record.Reason = workload.Cancelled, &workload.Reason{Kind: workload.ReasonCancelled, Message: e.Why + " by " + e.Submitter}
				d.store(record)
			}
		}
	}()
	nc := d.bus.Conn()
	must := func(err error) {
		if err != nil {
			d.t.Fatal(err)
		}
	}
	must(query.Handle(d.ctx, nc, query.QueuesSubject, func(context.Context, struct{}) (query.QueuesAnswer, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return query.QueuesAnswer{Queues: []query.Queue{
			{Name: "closed", Namespaces: []string{"default"}, Submitters: []workload.Submitters{{Who: []string{"http/bob"}}}},
			{Name: "default", Namespaces: []string{"default", "hidden"}, Submitters: d.rightsOf},
		}}, nil
	}))
	must(query.Handle(d.ctx, nc, query.WorkloadsSubject, func(_ context.Context, r query.WorkloadsRequest) (query.WorkloadsAnswer, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		answer := query.WorkloadsAnswer{Workloads: []workload.Record{}, Next: 7}
		for id, record := range d.stored {
			if (r.ID == "" || r.ID == id) && (len(r.Phases) == 0 || slices.Contains(r.Phases, record.Phase)) && (r.Queue == "" || r.Queue == record.Queue) {
				answer.Workloads = append(answer.Workloads, record)
			}
		}
		return answer, nil
	}))
	must(query.Handle(d.ctx, nc, query.HistorySubject, func(context.Context, query.HistoryRequest) (query.HistoryAnswer, error) {
		return query.HistoryAnswer{Entries: []query.HistoryEntry{{Phase: workload.Queued}}}, nil
	}))
	must(query.Handle(d.ctx, nc, query.ExplainSubject, func(_ context.Context, r query.ExplainRequest) (query.ExplainAnswer, error) {
		return query.ExplainAnswer{Explanation: workload.Explanation{Workload: r.ID, Position: 3}}, nil
	}))
}

func (d *apiWorld) store(record workload.Record) {
	d.mu.Lock()
	d.stored[record.ID] = record
	d.mu.Unlock()
	envelope, err := event.New(event.NewID(), "test", time.Now(), &event.WorkloadChanged{Record: record})
	if err == nil {
		err = d.bus.Publish(d.ctx, event.EventsSubject(record.Queue, record.ID), envelope)
	}
	if err != nil && d.ctx.Err() == nil {
		d.t.Error(err)
	}
}

// ask sends a request with the token and decodes the answer.
func (d *apiWorld) ask(method, path, body string, want int, into any, headers ...string) *http.Response {
	d.t.Helper()
	request, err := http.NewRequestWithContext(d.ctx, method, d.url+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := d.client.Do(request)
	if err != nil {
		d.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	if response.StatusCode != want {
		d.t.Errorf("%s %s: status %d, want %d: %s", method, path, response.StatusCode, want, content)
	}
	if into != nil {
		if err := json.Unmarshal(content, into); err != nil {
			d.t.Errorf("%s %s: %v in %s", method, path, err, content)
		}
	}
	return response
}

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

// stream returns the data of server-sent events until they end.
func (d *apiWorld) stream(path string) <-chan string {
	d.t.Helper()
	request, err := http.NewRequestWithContext(d.ctx, http.MethodGet, d.url+path, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := d.client.Do(request)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { response.Body.Close() })
	if got := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || got != "text/event-stream" {
		d.t.Fatalf("%s: status %d, %s", path, response.StatusCode, got)
	}
	lines := make(chan string, 16)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(response.Body)
		for scanner.Scan() {
			if data, is := strings.CutPrefix(scanner.Text(), "data: "); is {
				lines <- data
			}
		}
	}()
	return lines
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

func (d *apiWorld) listed(filter string) []workload.Record {
	d.t.Helper()
	var page httpapi.WorkloadsPage
	d.ask("GET", "/v1/workloads"+filter, "", http.StatusOK, &page)
	return page.Workloads
}

// TestHTTPAPIAcceptsClientCertificates: a client certificate identifies the
// caller; a request without one and without a token is refused.
func TestHTTPAPIAcceptsClientCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	authority := newAuthority(t)
	certificate, key := authority.issue(t, "127.0.0.1")
	files := map[string][]byte{"server.crt": certificate, "server.key": key, "ca.crt": authority.pem}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := newAPIWorld(t, func(c *app.HTTPConfig) {
		c.TokensFile = ""
		c.CertificateFile, c.KeyFile, c.ClientCAFile = filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key"), filepath.Join(dir, "ca.crt")
	})
	d.url = strings.Replace(d.url, "http:", "https:", 1)
	client := func(certificates ...tls.Certificate) *http.Client {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(authority.pem)
		return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: certificates}}}
	}
	d.client = client()
	d.ask("GET", "/v1/workloads", "", http.StatusUnauthorized, nil)
	pair, err := tls.X509KeyPair(authority.issue(t, "carol"))
	if err != nil {
		t.Fatal(err)
	}
	d.client = client(pair)
	var submitted httpapi.Submission
	d.ask("POST", "/v1/queues/default/workloads", fmt.Sprintf(manifest, "hers"), http.StatusCreated, &submitted)
	if submitted.Record == nil || submitted.Record.Submitter != "http/carol" {
		t.Errorf("submitted as %+v", submitted)
	}
	other := newAuthority(t)
	stranger, err := tls.X509KeyPair(other.issue(t, "carol"))
	if err != nil {
		t.Fatal(err)
	}
	d.client = client(stranger)
	if _, err := d.client.Get(d.url + "/v1/workloads"); err == nil {
		t.Error("a certificate of another authority is let in")
	}
}

type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{template, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// issue returns a certificate for the name and its key.
func (a *authority) issue(t *testing.T, name string) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.certificate, &private.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	var certificates, keys bytes.Buffer
	_ = pem.Encode(&certificates, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	_ = pem.Encode(&keys, &pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
	return certificates.Bytes(), keys.Bytes()
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
