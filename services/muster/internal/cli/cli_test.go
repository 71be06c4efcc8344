package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/pkg/localnats"
	"muster.dev/muster/services/muster/internal/cli"
)

// result is what one command line did.
type result struct {
	code        int
	out, errOut string
}

func run(t *testing.T, in string, args ...string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	code := cli.Run(t.Context(), args, strings.NewReader(in), &out, &errOut)
	return result{code, out.String(), errOut.String()}
}

const job = "apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: a}\n"

func TestWrongCommandLines(t *testing.T) {
	t.Setenv("MUSTER_NATS_URL", "nats://127.0.0.1:1") // nobody is asked
	empty := filepath.Join(t.TempDir(), "empty.yaml")
	if err := os.WriteFile(empty, []byte("# nothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args string
		says string
	}{
		{"submti", "did you mean submit"},
		{"get", "say what"},
		{"get pods", `no command "pods"`},
		{"get workloads a b", "at most one name"},
		{"get workloads -o xml", "want table, wide, json or yaml"},
		{"get workloads --phase asleep", `phase "asleep"`},
		{"get nodes --colour", "unknown flag"},
		{"describe workload", "one name or id"},
		{"describe node n -o wide", "want text, json or yaml"},
		{"submit", "-f FILE"},
		{"submit a.yaml", "-f FILE"},
		{"submit -f /nowhere/at/all.yaml", "no such file"},
		{"submit -f " + empty, "no manifest"},
		{"submit -f - --wait=done", `cannot wait for "done"`},
		{"submit -f - --queue A.b", `queue "A.b"`},
		{"submit -f - --id one", "2 manifests"},
		{"submit -f - --namespace other", `in namespace "mine"`},
		{"submit -f - --timeout -1s", "negative"},
		{"submit -f - --priority 0 --priority-class urgent", "want one of them"},
		{"cancel", "one name or id"},
		{"events -o table", "want text or json"},
		{"dev --kubeconfig /nowhere/at/all", "no such file"},
		{"dev --kubeconfig a:b", "list of files"},
		{"dev --node-selector a=b", "with --kubeconfig"},
		{"dev --devcluster /nowhere/at/all", "not built"},
	} {
		t.Run(test.args, func(t *testing.T) {
			t.Setenv("KUBECONFIG", "")
			got := run(t, job+"---\n"+strings.Replace(job, "name: a", "name: b, namespace: mine", 1), strings.Fields(test.args)...)
			if got.code != cli.ExitUsage || !strings.Contains(got.errOut, test.says) {
				t.Errorf("exit code %d, standard error %q; want %d and %q", got.code, got.errOut, cli.ExitUsage, test.says)
			}
			if got.out != "" {
				t.Errorf("standard output has %q", got.out)
			}
		})
	}
}

func TestNobodyThere(t *testing.T) {
	t.Setenv("MUSTER_DEV_FILE", filepath.Join(t.TempDir(), "dev.json"))
	t.Setenv("MUSTER_NATS_URL", "")
	if got := run(t, "", "get", "nodes"); got.code != cli.ExitUnreachable || !strings.Contains(got.errOut, "no `muster dev` is running") {
		t.Errorf("without an address: %+v", got)
	}
	if got := run(t, "", "get", "nodes", "--nats-url", "nats://127.0.0.1:1"); got.code != cli.ExitUnreachable {
		t.Errorf("without NATS: %+v", got)
	}
	server, err := localnats.Start(t.TempDir(), -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	t.Setenv("MUSTER_NATS_URL", server.URL())
	for _, args := range []string{"get queues", "describe workload a", "cancel a", "events", "submit -f -", "submit -f - --wait=submitted"} {
		if got := run(t, job, strings.Fields(args)...); got.code != cli.ExitUnreachable || got.errOut == "" {
			t.Errorf("%s on a NATS without Muster: %+v", args, got)
		}
	}
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	if got := run(t, "", "--help"); got.code != cli.ExitOK || !strings.Contains(got.out, "Exit codes:") {
		t.Errorf("--help: %+v", got)
	}
	if got := run(t, ""); got.code != cli.ExitOK || !strings.Contains(got.out, "submit") {
		t.Errorf("without a command: %+v", got)
	}
	if got := run(t, "", "version"); got.code != cli.ExitOK || !strings.HasPrefix(got.out, "muster ") {
		t.Errorf("version: %+v", got)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if got := run(t, "", "completion", shell); got.code != cli.ExitOK || !strings.Contains(got.out, "muster") {
			t.Errorf("completion for %s: exit code %d, %d bytes", shell, got.code, len(got.out))
		}
	}
	if got := run(t, "", "__complete", "submit", "--wait", ""); !strings.Contains(got.out, "finished") {
		t.Errorf("completion of --wait: %+v", got)
	}
}
