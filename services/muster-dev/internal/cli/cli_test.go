package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/muster-dev/internal/cli"
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

// check checks the exit code of a command and what it says.
func (r result) check(t *testing.T, code int, want, program string, args []string) {
	t.Helper()
	if r.code != code || !strings.Contains(r.out+r.errOut, want) {
		t.Errorf("%s %s: exit code %d, want %d and %q\nstandard output: %s\nstandard error: %s",
			program, strings.Join(args, " "), r.code, code, want, r.out, r.errOut)
	}
}

func TestWrongCommandLines(t *testing.T) {
	queues := filepath.Join(t.TempDir(), "queues.yaml")
	if err := os.WriteFile(queues, []byte("queues:\n- name: a\n  namespaces: [a]\n  strategy: Fifo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args string
		want string
	}{
		{"demmo", "did you mean demo"},
		{"up --queues " + queues, "queues.yaml:4: queues[0].strategy: \"Fifo\": want BestEffortFIFO, StrictFIFO or Backfill"},
		{"up --queues /nowhere/at/all", "no such file"},
		{"up --kubeconfig /nowhere/at/all", "no such file"},
		{"up --kubeconfig a:b", "list of files"},
		{"up --node-selector a=b", "want --kubeconfig too"},
		{"up --devcluster /nowhere/at/all", "not built"},
		{"install", "--kubeconfig is missing"},
	} {
		t.Run(test.args, func(t *testing.T) {
			t.Setenv("KUBECONFIG", "")
			got := run(t, "", strings.Fields(test.args)...)
			got.check(t, exit.Usage, test.want, "muster-dev", []string{test.args})
			if got.out != "" {
				t.Errorf("standard output has %q", got.out)
			}
		})
	}
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	run(t, "", "--help").check(t, exit.OK, "demo", "muster-dev", nil)
	run(t, "", "version").check(t, exit.OK, "muster-dev ", "muster-dev", nil)
}
