package helm_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

// notes are those that Helm prints after an installation with the values.
func notes(t *testing.T, place string, values map[string]any) string {
	t.Helper()
	chart, err := loader.Load("muster")
	if err != nil {
		t.Fatal(err)
	}
	all, err := util.ToRenderValues(chart, values, common.ReleaseOptions{Name: release, Namespace: place, Revision: 1, IsInstall: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if strings.HasSuffix(name, "NOTES.txt") {
			return content
		}
	}
	t.Fatal("the chart has no notes")
	return ""
}

// command matches a line of the notes that is to be typed.
var command = regexp.MustCompile(`(?m)^  (\S.*)$`)

// TestNotes: each mode says what to type, with names and settings that the values have.
func TestNotes(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"defaults": {"export MUSTER_NATS_URL=nats://nats.nats.svc:4222 MUSTER_NATS_CREDENTIALS=operator.nk", "muster get queues", "muster submit --queue default -f raycluster.yaml --wait=running"},
		"controller": {
			"export MUSTER_NATS_URL=tls://nats:4222 MUSTER_NATS_CREDENTIALS=operator.nk",
			"export MUSTER_NATS_CA=ca.crt MUSTER_NATS_CERTIFICATE=client.crt MUSTER_NATS_KEY=client.key",
			"muster get queues", "muster submit --queue a -f raycluster.yaml --wait=running",
		},
		"member": nil,
	} {
		t.Run(name, func(t *testing.T) {
			var typed []string
			for _, line := range command.FindAllStringSubmatch(notes(t, namespace, modes()[name]), -1) {
				typed = append(typed, line[1])
			}
			if !slices.Equal(typed, want) {
				t.Errorf("%s: the commands are %q, want %q", name, typed, want)
			}
		})
	}
	values := policyOf(t, policyValues)
	values["queues"] = []any{}
	if text := notes(t, namespace, values); !strings.Contains(text, "--queue serving ") {
		t.Errorf("the notes name no queue of a LocalQueue:\n%s", text)
	}
}

// exported returns the value of MUSTER_NATS_URL after the notes' export, which a shell runs
// against the cluster of the tests.
func (in *installation) exported(values map[string]any) string {
	in.t.Helper()
	kubectl, err := filepath.Abs(filepath.Join("..", "..", "bin", "kubectl"))
	if err != nil {
		in.t.Fatal(err)
	}
	if _, err := os.Stat(kubectl); err != nil {
		if os.Getenv("MUSTER_REQUIRE_SERVICES") != "" {
			in.t.Fatalf("%v: run `make build`", err)
		}
		in.t.Skip(err)
	}
	var line string
	for _, found := range command.FindAllStringSubmatch(notes(in.t, in.namespace, maps.Clone(values)), -1) {
		if strings.HasPrefix(found[1], "export MUSTER_NATS_URL=") {
			line = found[1]
		}
	}
	shell := exec.CommandContext(in.t.Context(), "sh", "-c", line+`; printf %s "$MUSTER_NATS_URL"`)
	shell.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig(in.t), fmt.Sprintf("PATH=%s:%s", filepath.Dir(kubectl), cmp.Or(os.Getenv("PATH"), "/usr/bin:/bin")))
	out, err := shell.Output()
	if err != nil {
		in.t.Fatalf("%s: %v", line, err)
	}
	return string(out)
}
