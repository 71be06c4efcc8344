package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each run writes the accounts of NATS again. A tenant of an earlier run keeps its
// place there, its key and its token; `make up` runs it without any.
func TestTenantsStay(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "secrets")
	run := func(arguments ...string) {
		t.Helper()
		w, err := parse(append(arguments, dir))
		if err == nil {
			err = w.make(io.Discard)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) string {
		t.Helper()
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	run()
	if accounts := read("accounts.conf"); strings.Contains(accounts, "tenant-") {
		t.Fatal("there are tenants before any is made")
	}
	run("-named-tenant", "team-a=one")
	key, token := read("tenant-team-a.nk"), read("tenant-team-a.token")
	run("-tenant", "team-b=two")
	run()
	accounts := read("accounts.conf")
	for _, want := range []string{`"muster.submit.one.tenant-team-a"`, `"muster.submit.two"`, `"muster.submit.two.tenant-team-b"`} {
		if !strings.Contains(accounts, want) {
			t.Errorf("the accounts lack %s", want)
		}
	}
	if strings.Contains(accounts, `"muster.submit.one"`) {
		t.Error("a tenant with a name may submit without it after later runs")
	}
	if key != read("tenant-team-a.nk") || token != read("tenant-team-a.token") {
		t.Error("a later run has changed the key or the token of a tenant")
	}
	for name, token := range map[string]string{"tenant-team-a": token, "tenant-team-b": read("tenant-team-b.token"), "operator": read("operator.token")} {
		t.Run(name, func(t *testing.T) {
			if want := fmt.Sprintf("{name: %s, sha256: %x}", name, sha256.Sum256([]byte(token))); !strings.Contains(read("tokens.yaml"), want) {
				t.Errorf("intake's list lacks %s", want)
			}
		})
	}
	run("-checker", "budget")
	run()
	if accounts := read("accounts.conf"); !strings.Contains(accounts, `"muster.checked.budget"`) || read("checker-budget.nk") == "" {
		t.Error("the controller of an AdmissionCheck does not stay")
	}
	if strings.Contains(read("tokens.yaml"), "checker-") {
		t.Error("the controller of an AdmissionCheck may use the HTTP API")
	}
	run("-named-tenant", "team-a=three")
	if accounts := read("accounts.conf"); strings.Contains(accounts, "muster.submit.one.") || !strings.Contains(accounts, "muster.submit.three.tenant-team-a") {
		t.Error("a tenant that is created again keeps its old queues")
	}
}
