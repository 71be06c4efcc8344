package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/deploy/nats/access"
	"muster.dev/muster/deploy/nats/keys"
	"muster.dev/muster/deploy/nats/users"
	"muster.dev/muster/services/internal/client/exit"
)

// TestTheKeysOfAClusterAreMadeAndRemoved: a command that is given again mends what one that
// failed has left, and a directory that is not an installation's is refused.
func TestTheKeysOfAClusterAreMadeAndRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := registryIn(dir); exit.Code(err) != exit.Usage {
		t.Fatalf("a directory without accounts: %v, want a wrong command line", err)
	}
	first, err := users.Read(dir)
	if err == nil {
		err = first.Write()
	}
	if err != nil {
		t.Fatal(err)
	}
	accounts := filepath.Join(dir, users.AccountsFile)
	for _, step := range []struct {
		what, prints string
		act          func(*strings.Builder, users.Registry) error
		key, intake  bool
	}{
		{"made", "its keys are made; reload", func(out *strings.Builder, r users.Registry) error { return makeKeys(out, r, dir, "east", nil) }, true, false},
		{"again", "stay as they are", func(out *strings.Builder, r users.Registry) error { return makeKeys(out, r, dir, "east", nil) }, true, false},
		{"with other accounts", "reload", func(out *strings.Builder, r users.Registry) error {
			if err := os.WriteFile(accounts, nil, 0o600); err != nil {
				return err
			}
			return makeKeys(out, r, dir, "east", []string{"research"})
		}, true, true},
		{"without the flag", "stay as they are", func(out *strings.Builder, r users.Registry) error { return makeKeys(out, r, dir, "east", nil) }, true, true},
		{"removed", "removed cluster east and its keys\nreload", func(out *strings.Builder, r users.Registry) error { return removeKeys(out, r, dir, "east") }, false, false},
		{"removed again", "there are no keys of cluster east", func(out *strings.Builder, r users.Registry) error { return removeKeys(out, r, dir, "east") }, false, false},
	} {
		known, err := registryIn(dir)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := step.act(&out, known); err != nil || !strings.Contains(out.String(), step.prints) {
			t.Errorf("%s prints %q, %v; want %q", step.what, out.String(), err, step.prints)
		}
		content, err := os.ReadFile(accounts)
		if err != nil || strings.Contains(string(content), access.Dispatcher("east")) != step.key {
			t.Errorf("%s: the accounts have the dispatcher: %t (%v), want %t", step.what, !step.key, err, step.key)
		}
		if strings.Contains(string(content), access.MemberIntake("east")) != step.intake {
			t.Errorf("%s: the accounts have the intake: %t, want %t", step.what, !step.intake, step.intake)
		}
		if _, err := os.Stat(keys.File(dir, access.Dispatcher("east"))); (err == nil) != step.key {
			t.Errorf("%s: the key: %v, want it there: %t", step.what, err, step.key)
		}
	}
}

// TestTheCommandsOfAnInstallation: the printed commands can be given as they are; what no flag
// says is named.
func TestTheCommandsOfAnInstallation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options    joinOptions
		have, lack []string
	}{
		"over TLS": {joinOptions{keys: "it's here", address: "tls://nats.example:4222", namespaces: []string{"a", "b"}},
			[]string{"--set nats.tlsSecret=muster-nats-tls", `--from-file='ca.crt=it'\''s here/ca.crt'`, `--from-file='dispatcher=it'\''s here/dispatcher-east.nk'`, "--set 'namespaces={a,b}'", "--set nats.url=tls://nats.example:4222"}, []string{"Replace"}},
		"with kubectl": {joinOptions{keys: "/keys", address: "nats://10.0.0.1:4222", kubectl: []string{"research", "serving"}},
			[]string{"--set kubernetesController.enabled=true --set 'kubernetesController.queues={research,serving}'", "--from-file=intake=/keys/intake-east.nk"}, nil},
		"in the clear":  {joinOptions{keys: "/keys", address: "nats://10.0.0.1:4222"}, []string{"--from-file=dispatcher=/keys/dispatcher-east.nk"}, []string{"tls", "Replace", "intake", "kubernetesController"}},
		"without flags": {joinOptions{}, []string{"nats.url=ADDRESS", "tlsSecret", "Replace SECRETS by the directory with the keys (--keys), and ADDRESS by the URL of NATS (--address)."}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			c.options.printInstallation(&out, "east")
			for _, part := range c.have {
				if !strings.Contains(out.String(), part) {
					t.Errorf("printed is %s\nwant %q in it", out.String(), part)
				}
			}
			for _, part := range c.lack {
				if strings.Contains(out.String(), part) {
					t.Errorf("printed is %s\nwant no %q in it", out.String(), part)
				}
			}
		})
	}
}
