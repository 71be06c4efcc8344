package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// natsPub finds `nats pub` in a page: the options of the connection, the arguments, and the
// file that it reads.
var natsPub = regexp.MustCompile(`\$ nats ((?:--[^\n]*\\\n\s*)*(?:--[^\n]*\\\n\s*)?)(pub (?:[^\n]*\\\n)*[^\n]*) < (\S+)`)

// natsSub finds `nats sub` in a page, and its subject.
var natsSub = regexp.MustCompile(`\$ nats sub '([^'\n]+)'`)

// TestDocumentedSubmissions types what the pages say, into the nats tool of natscli: each
// `nats pub` submits a workload, and each `nats sub` of the page prints its event. Only the
// options of the connection are the test's own.
func TestDocumentedSubmissions(t *testing.T) {
	t.Parallel()
	const root = "../.."
	tool := natsTool(t)
	for page, subscribes := range map[string]bool{"README.md": true, "docs/events.md": true, "docs/containers.md": false} {
		content, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		found := natsPub.FindAllSubmatch(content, -1)
		subjects := natsSub.FindAllSubmatch(content, -1)
		if len(found) == 0 || subscribes != (len(subjects) > 0) {
			t.Errorf("%s has %d examples of nats pub and %d of nats sub", page, len(found), len(subjects))
		}
		for _, match := range found {
			arguments := strings.Fields(strings.ReplaceAll(string(match[2]), "\\\n", " "))
			manifest, err := os.ReadFile(filepath.Join(root, string(match[3])))
			if err != nil {
				t.Fatal(err)
			}
			t.Run(page, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				var ends []func() string
				for _, subject := range subjects {
					ends = append(ends, w.natsSubscribes(tool, string(subject[1])))
				}
				w.nats(tool, manifest, arguments...)
				id := event.WorkloadID(attribute(t, arguments, "ce-source"), attribute(t, arguments, "ce-id"))
				await(w, "the workload is stored", func(e *event.WorkloadChanged) bool { return e.ID == id })
				for i, end := range ends {
					if printed := end(); !strings.Contains(printed, string(id)) {
						t.Errorf("nats sub %s prints %q, without workload %s", subjects[i][1], printed, id)
					}
				}
			})
		}
	}
}

// natsTool returns the path of the nats tool that make builds.
func natsTool(t *testing.T) string {
	t.Helper()
	tool, err := filepath.Abs("../../bin/nats")
	if err == nil {
		_, err = os.Stat(tool)
	}
	switch {
	case err == nil:
	case requireAll:
		t.Fatalf("%v; `make build` builds it", err)
	default:
		t.Skipf("%v; `make build` builds it", err)
	}
	return tool
}

// attribute returns the value of a header among the arguments of nats pub.
func attribute(t *testing.T, arguments []string, name string) string {
	t.Helper()
	i := slices.IndexFunc(arguments, func(a string) bool { return strings.HasPrefix(a, name+":") })
	if i < 1 || arguments[i-1] != "-H" {
		t.Fatalf("nats %q has no -H %s:...", arguments, name)
	}
	return strings.TrimPrefix(arguments[i], name+":")
}

// natsCommand is a command of the nats tool on the world's server, without a context of the
// user who runs the test.
func (w *world) natsCommand(tool string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(w.ctx, tool, append([]string{"--server", w.NATSURL}, arguments...)...)
	command.Env = append(os.Environ(), "XDG_CONFIG_HOME="+w.t.TempDir())
	return command
}

// nats runs the nats tool to its end.
func (w *world) nats(tool string, in []byte, arguments ...string) {
	w.t.Helper()
	command := w.natsCommand(tool, arguments...)
	command.Stdin = bytes.NewReader(in)
	if output, err := command.CombinedOutput(); err != nil {
		w.t.Fatalf("nats %q: %v: %s", arguments, err, output)
	}
}

// natsSubscribes starts `nats sub` for one message, waits until NATS has the subscription,
// and returns how to wait for its end and get what it printed.
func (w *world) natsSubscribes(tool, subject string) (end func() string) {
	w.t.Helper()
	command := w.natsCommand(tool, "sub", "--count=1", subject)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.until("NATS has the subscription of nats sub", func() bool { return w.Subscribed(subject) })
	return func() string {
		if err := command.Wait(); err != nil {
			w.t.Errorf("nats sub %s: %v: %s", subject, err, output.String())
		}
		return output.String()
	}
}

// verifiedInReadme finds what the README shows of `muster verify`.
var verifiedInReadme = regexp.MustCompile(`\$ bin/muster (explain (\S+) [^\n]*) > (\S+)\n\$ bin/muster (verify \S+)\n((?:[^\n$]+\n)+)` + "```")

// TestTheCertificateOfTheReadme: the two commands that the README shows print what it
// shows, with this run's id and cluster.
func TestTheCertificateOfTheReadme(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := verifiedInReadme.FindStringSubmatch(string(page))
	if shown == nil {
		t.Fatal("the README shows no certificate")
	}
	w := newWorld(t)
	w.nodes("1gpu", 2, "cpu=32", "memory=128Gi", "nvidia.com/gpu=1")
	w.nodes("cpu", 2, "cpu=32", "memory=128Gi")
	manifest, err := os.ReadFile("../../services/muster/examples/raycluster-glue.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := w.file(strings.Replace(string(manifest), "name: raycluster-glue", "name: "+shown[2], 1))
	if out, exit := w.muster("submit", "-f", file, "-q", "default"); exit != 0 {
		t.Fatalf("submit: exit code %d: %s", exit, out)
	}
	waiting := await(w, "the workload waits", func(e *event.WorkloadChanged) bool {
		return e.Name == shown[2] && e.Phase == workload.Queued && e.Reason != nil && e.Reason.Kind == workload.ReasonNeverFits
	})
	explained, exit := w.muster(strings.Fields(shown[1])...)
	if exit != 0 {
		t.Fatalf("explain: exit code %d: %s", exit, explained)
	}
	saved := w.file(explained)
	got, exit := w.muster("verify", saved)
	want := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).ReplaceAllString(shown[5], string(waiting.ID))
	want = strings.Replace(want, "cluster local", "cluster "+w.Pool, 1)
	if exit != 0 || got != want {
		t.Errorf("%s: exit code %d\n%s\nthe README has\n%s", shown[4], exit, got, want)
	}
}
