package helm_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The trial's NATS server takes its configuration, in which each service has an
// account of its own, as package access has it.
func TestTheTrialsServerTakesItsConfiguration(t *testing.T) {
	t.Parallel()
	secret := render(t, modes()["trial"])["Secret "+namespace+"/"+release+"-trial"]
	if secret == nil {
		t.Fatal("the trial has no secret")
	}
	config, _ := secret.Object["stringData"].(map[string]any)["nats.conf"].(string)
	for _, part := range []string{
		`system_account: "SYSTEM"`, `"MUSTER": {`, `"dispatcher-default": {`,
		`{"service":{"account":"MUSTER","subject":"muster.jetstream.CONSUMER.CREATE.MUSTER_DISPATCH.*.muster.dispatch.default.*"},"to":"$JS.API.CONSUMER.CREATE.MUSTER_DISPATCH.*.muster.dispatch.default.*"}`,
	} {
		if !strings.Contains(config, part) {
			t.Errorf("the configuration lacks %s", part)
		}
	}
	if strings.Contains(config, `"account":"MUSTER","subject":"$JS.API.CONSUMER.CREATE`) || strings.Contains(config, `\u003e`) {
		t.Error("a service makes consumers itself, or wildcards are escaped")
	}
	server := filepath.Join("..", "..", "bin", "nats-server")
	if _, err := os.Stat(server); err != nil {
		if os.Getenv("MUSTER_REQUIRE_SERVICES") != "" {
			t.Fatalf("%v: run `make build`", err)
		}
		t.Skip(err)
	}
	file := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(config, "/data", t.TempDir())), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), server, "-t", "-c", file).CombinedOutput(); err != nil {
		t.Errorf("the server refuses it: %v: %s", err, out)
	}
}
