package cli_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/muster/internal/cli"
)

func TestThePluginOfKubectl(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, path, args string
		code             int
		want             string
	}{
		{"its help says what to type", "/usr/local/bin/kubectl-muster", "--help", exit.OK, "kubectl muster [command]"},
		{"the help of a command, too", "kubectl-muster", "get workloads --help", exit.OK, "kubectl muster get workloads"},
		{"a mistake names its help", "kubectl-muster", "get workloads a b", exit.Usage, "See `kubectl muster get workloads --help`."},
		{"errors name it", "kubectl-muster", "submti", exit.Usage, "kubectl muster: "},
		{"it completes", "kubectl_complete-muster", "get work", exit.OK, "workloads"},
		{"under another name it is muster", "/usr/local/bin/muster", "get workloads a b", exit.Usage, "See `muster get workloads --help`."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			code := cli.Named(c.path)(t.Context(), strings.Fields(c.args), strings.NewReader(""), &out, &out)
			if code != c.code || !strings.Contains(out.String(), c.want) {
				t.Errorf("code %d, want %d and %q:\n%s", code, c.code, c.want, out.String())
			}
		})
	}
}

// kubectl finds the program by its name, and passes on its exit code.
func TestKubectlFindsThePlugin(t *testing.T) {
	t.Parallel()
	bin, err := filepath.Abs("../../../../bin")
	if err != nil {
		t.Fatal(err)
	}
	kubectl, muster := filepath.Join(bin, "kubectl"), filepath.Join(bin, "muster")
	for _, program := range []string{kubectl, muster} {
		if _, err := os.Stat(program); err != nil {
			if os.Getenv("MUSTER_REQUIRE_SERVICES") != "" {
				t.Fatalf("%v: run `make build`", err)
			}
			t.Skipf("%v: run `make build`", err)
		}
	}
	dir := t.TempDir()
	if err := os.Symlink(muster, filepath.Join(dir, "kubectl-muster")); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, error) {
		command := exec.CommandContext(t.Context(), kubectl, args...)
		command.Env = []string{"PATH=" + dir, "HOME=" + dir}
		output, err := command.CombinedOutput()
		return string(output), err
	}
	if output, err := run("muster", "version"); err != nil || !strings.Contains(output, "muster") {
		t.Errorf("kubectl muster version: %v\n%s", err, output)
	}
	output, err := run("muster", "get", "nothing")
	var failed *exec.ExitError
	if !errors.As(err, &failed) || failed.ExitCode() != exit.Usage || !strings.Contains(output, "kubectl muster get") {
		t.Errorf("kubectl muster get nothing: %v, want exit code %d\n%s", err, exit.Usage, output)
	}
}
