package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// natsPub finds `nats pub` in a page, its arguments and the file that it reads.
var natsPub = regexp.MustCompile(`\$ nats (pub (?:[^\n]*\\\n)*[^\n]*) < (\S+)`)

// What the pages say to type with the nats tool submits a workload. Where the tool
// is not installed, the same message is sent.
func TestDocumentedSubmissions(t *testing.T) {
	t.Parallel()
	const root = "../.."
	for _, page := range []string{"README.md", "docs/events.md"} {
		content, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		found := natsPub.FindAllSubmatch(content, -1)
		if len(found) == 0 {
			t.Errorf("%s has no example of nats pub", page)
		}
		for _, match := range found {
			arguments := strings.Fields(strings.ReplaceAll(string(match[1]), "\\\n", " "))
			manifest, err := os.ReadFile(filepath.Join(root, string(match[2])))
			if err != nil {
				t.Fatal(err)
			}
			t.Run(page, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				headers := publishAsWritten(w, arguments, manifest)
				id := event.WorkloadID(headers.Get("ce-source"), headers.Get("ce-id"))
				await(w, "the workload is stored", func(e *event.WorkloadChanged) bool { return e.ID == id })
			})
		}
	}
}

// publishAsWritten runs the tool, or does what it would, and returns the headers.
func publishAsWritten(w *world, arguments []string, manifest []byte) nats.Header {
	w.t.Helper()
	message := nats.NewMsg(arguments[len(arguments)-1])
	message.Data = manifest
	for i, argument := range arguments {
		if argument == "-H" {
			key, value, _ := strings.Cut(arguments[i+1], ":")
			message.Header.Set(key, value)
		}
	}
	if tool, err := exec.LookPath("nats"); err == nil {
		command := exec.CommandContext(w.ctx, tool, append([]string{"--server", w.NATSURL}, arguments...)...)
		command.Stdin = bytes.NewReader(manifest)
		if output, err := command.CombinedOutput(); err != nil {
			w.t.Fatalf("nats %q: %v: %s", arguments, err, output)
		}
		return message.Header
	}
	connection, err := nats.Connect(w.NATSURL)
	if err != nil {
		w.t.Fatal(err)
	}
	defer connection.Close()
	js, err := jetstream.New(connection)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := js.PublishMsg(w.ctx, message); err != nil {
		w.t.Fatal(err)
	}
	return message.Header
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
		return e.Name == shown[2] && e.Phase == workload.Queued && e.Reason != nil && e.Reason.Kind == workload.ReasonFit
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
