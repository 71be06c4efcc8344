package compose

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/deploy/certificates"
	"muster.dev/muster/deploy/nats/keys"
	"muster.dev/muster/test/suite"
)

// TestTwoTenants brings the stack of deploy/compose/tenants up as docs/containers.md
// says. Each tenant gets its work done, and nothing of the other's.
func TestTwoTenants(t *testing.T) {
	s := &stack{
		compose: engine(t), files: []string{"deploy/compose/tenants/compose.yaml"},
		secrets: []string{"-named-tenant", "team-a=team-a", "-named-tenant", "team-b=team-b"},
	}
	s.Start(t, suite.Shape{})
	kubectl(t, s.access.Kubeconfig, "apply", "-f", "deploy/compose/tenants/cluster.yaml")
	tenants := map[string]string{"team-a": "team-b", "team-b": "team-a"}
	for tenant := range tenants {
		t.Run(tenant+" submits and runs", func(t *testing.T) { s.worksFor(t, tenant) })
	}
	for tenant, other := range tenants {
		t.Run(tenant, func(t *testing.T) {
			t.Run("is kept from the other's queue and name", func(t *testing.T) { s.keepsOut(t, tenant, other) })
			t.Run("sees its own queue by HTTP", func(t *testing.T) { s.showsOwn(t, tenant, other) })
			t.Run("has no rights in the other's namespace", func(t *testing.T) {
				own := s.kubeconfig(t, s.port("MUSTER_API_PORT"), "--service-account", tenant+"/tenant")
				kubectl(t, own, "get", "rayclusters", "--namespace", tenant)
				if out, err := tool(t, "kubectl", "--kubeconfig", own, "get", "rayclusters", "--namespace", other); err == nil || !strings.Contains(out, "Forbidden") {
					t.Errorf("kubectl get in %s ends with %v: %s", other, err, out)
				}
			})
		})
	}
}

// worksFor submits a job that needs one GPU, with the tenant's key, until it has ended.
func (s *stack) worksFor(t *testing.T, tenant string) {
	t.Helper()
	if out, err := s.submit(t, tenant, "--queue", tenant, "--as", "tenant-"+tenant, "--wait=finished", "--timeout=2m"); err != nil {
		t.Fatalf("submit to %s: %v: %s", tenant, err, out)
	}
}

func (s *stack) keepsOut(t *testing.T, tenant, other string) {
	t.Helper()
	for name, arguments := range map[string][]string{
		"queue of the other": {"--queue", other, "--as", "tenant-" + tenant},
		"name of the other":  {"--queue", other, "--as", "tenant-" + other},
		"no name":            {"--queue", other},
	} {
		t.Run(name, func(t *testing.T) {
			if out, err := s.submit(t, tenant, arguments...); err == nil || !strings.Contains(out, "refuses") {
				t.Errorf("submit with the %s ends with %v: %s", name, err, out)
			}
		})
	}
}

// submit runs `muster submit` with the tenant's key and returns what it prints.
func (s *stack) submit(t *testing.T, tenant string, arguments ...string) (string, error) {
	t.Helper()
	a := s.access
	return tool(t, "muster", append([]string{
		"submit", "-f", "services/muster/examples/rayjob-hello.yaml", "--nats-url", a.NATSURL, "--nats-credentials", keys.File(s.dir, "tenant-"+tenant),
		"--nats-ca", a.TLS.CA, "--nats-certificate", a.TLS.Certificate, "--nats-key", a.TLS.Key,
	}, arguments...)...)
}

// showsOwn asks the HTTP API with the tenant's token.
func (s *stack) showsOwn(t *testing.T, tenant, other string) {
	t.Helper()
	if status, body := s.ask(t, tenant, "/v1/queues"); status != http.StatusOK || !strings.Contains(body, `"`+tenant+`"`) || strings.Contains(body, `"`+other+`"`) {
		t.Errorf("GET /v1/queues: %d, %s", status, body)
	}
	for queue, shown := range map[string]bool{tenant: true, other: false} {
		t.Run(queue, func(t *testing.T) {
			status, body := s.ask(t, tenant, "/v1/workloads?queue="+queue)
			if status != http.StatusOK || strings.Contains(body, "RayJob") != shown {
				t.Errorf("GET the workloads of %s: %d, %s", queue, status, body)
			}
		})
	}
	if status, _ := s.ask(t, "", "/v1/queues"); status != http.StatusUnauthorized {
		t.Errorf("GET without a token: %d", status)
	}
}

func (s *stack) ask(t *testing.T, tenant, path string) (status int, body string) {
	t.Helper()
	authority, err := os.ReadFile(certificates.CA(s.dir))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1:"+s.port("MUSTER_HTTP_PORT")+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if tenant != "" {
		token, err := os.ReadFile(filepath.Join(s.dir, "tenant-"+tenant+".token"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+string(bytes.TrimSpace(token)))
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport, Timeout: 30 * time.Second}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(answer)
}

// kubectl runs kubectl, which is to succeed.
func kubectl(t *testing.T, kubeconfig string, arguments ...string) {
	t.Helper()
	if out, err := tool(t, "kubectl", append([]string{"--kubeconfig", kubeconfig}, arguments...)...); err != nil {
		t.Fatalf("kubectl %s: %v: %s", strings.Join(arguments, " "), err, out)
	}
}

// tool runs a program that `make build` has made, from the top of the repository, and
// returns all that it prints.
func tool(t *testing.T, name string, arguments ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandTimeout)
	defer cancel()
	program, err := filepath.Abs(filepath.Join(root, "bin", name))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, program, arguments...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	return string(out), err
}
