package cli_test

import (
	"strings"
	"testing"

	"muster.dev/muster/services/internal/client/exit"
)

// TestWhereHelpIs: a mistake in the command line names the help of that command, one in a file
// names none, and the help of a command without a server has no flags for reaching one.
func TestWhereHelpIs(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"get workloads a b": "See `muster get workloads --help`.", "get nodes --colour": "See `muster get nodes --help`.", "submti": "See `muster --help`.",
		"help nope": `"muster" has no command "nope"`, "help get nope": `"muster get" has no command "nope"`,
	} {
		t.Run(args, func(t *testing.T) {
			if got := run(t, "", strings.Fields(args)...); got.code != exit.Usage || !strings.Contains(got.errOut, want) {
				t.Errorf("%+v, want %q", got, want)
			}
		})
	}
	if got := run(t, "", "predict", "-f", "/nowhere/at/all.yaml"); got.code != exit.Usage || strings.Contains(got.errOut, "--help") {
		t.Errorf("a file that is missing: %+v", got)
	}
	if got := run(t, "", "help", "get", "nodes"); got.code != exit.OK || !strings.Contains(got.out, "List nodes") || !strings.Contains(got.out, "--nats-url") {
		t.Errorf("help get nodes: %+v", got)
	}
	for _, name := range []string{"predict", "verify", "scenario", "simulate"} {
		t.Run(name, func(t *testing.T) {
			if got := run(t, "", name, "--help"); got.code != exit.OK || strings.Contains(got.out, "--nats-url") || !strings.Contains(got.out, "Usage:") {
				t.Errorf("%s --help: %+v", name, got)
			}
		})
	}
}
