package mistakes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/testkit/bustest"
	"muster.dev/muster/pkg/testkit/clienttest"
	intake "muster.dev/muster/services/intake/app"
	queuemanager "muster.dev/muster/services/queue-manager/app"
)

// patience bounds each answer on a busy machine.
const patience = time.Minute

// token is alice's for the HTTP API.
const token = "let me in"

// queues is what queue-manager runs with.
const queues = `queues:
- {name: default, namespaces: [default]}
- {name: limited, namespaces: [default], limits: {pods: 4, priority: 10, maxRunTime: 1h, checkpointGrace: 1m}}
- {name: theirs, namespaces: [default], submitters: [{who: [http/bob]}]}
`

// world is intake with its HTTP API, a queue-manager, NATS and Postgres, and the command line.
type world struct {
	t       *testing.T
	bus     *bus.Bus
	heard   *bustest.Listener
	http    string
	program string // the command line
	sent    int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, bus: bustest.Connect(t), heard: bustest.New(t)}
	w.heard.Listen(t.Context(), w.bus, bus.EventsStream, "muster.events.*.*")
	settings := bus.Settings{URL: w.bus.Conn().ConnectedUrl()}
	sum := sha256.Sum256([]byte(token))
	listening := make(chan net.Addr, 1)
	manager := &queuemanager.Config{
		NATS: settings, DatabaseURL: databases.Database(t), NodeGrace: time.Minute,
		QueuesFile: w.file("queue-manager.yaml", queues),
	}
	entry := &intake.Config{NATS: settings, HTTP: intake.HTTPConfig{
		Address: "127.0.0.1:0", Listening: func(a net.Addr) { listening <- a },
		TokensFile: w.file("tokens.yaml", fmt.Sprintf("- {name: alice, sha256: %s}\n", hex.EncodeToString(sum[:]))),
	}}
	w.start("queue-manager", manager.Validate, func(ctx context.Context, r *service.Runtime) error { return queuemanager.Run(ctx, manager, r) })
	w.start("intake", entry.Validate, func(ctx context.Context, r *service.Runtime) error { return intake.Run(ctx, entry, r) })
	w.http = "http://" + (<-listening).String()
	w.program = clienttest.Program(t)
	return w
}

// start runs a service until the test ends, and returns when it is ready.
func (w *world) start(name string, validate func() error, run func(context.Context, *service.Runtime) error) {
	w.t.Helper()
	if err := validate(); err != nil {
		w.t.Fatal(err)
	}
	runtime := service.NewRuntime(zap.NewNop(), name)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, runtime) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			w.t.Errorf("%s ended with: %v", name, err)
		}
	})
	ready, done := context.WithTimeout(w.t.Context(), patience)
	defer done()
	if err := runtime.Health.WaitReady(ready); err != nil {
		w.t.Fatalf("%s: %v", name, err)
	}
}

// file writes a file and returns its path.
func (w *world) file(name, content string) string {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// publish sends a message to a subject and returns the reason of its rejection.
func (w *world) publish(subject string, headers nats.Header, data []byte) string {
	w.t.Helper()
	js, err := jetstream.New(w.bus.Conn())
	if err != nil {
		w.t.Fatal(err)
	}
	w.sent++
	message := &nats.Msg{Subject: subject, Header: nats.Header{}, Data: data}
	id := fmt.Sprintf("message-%d", w.sent)
	message.Header.Set(jetstream.MsgIDHeader, id)
	for name, values := range headers {
		message.Header[name] = values
	}
	if _, err := js.PublishMsg(w.t.Context(), message); err != nil {
		w.t.Fatal(err)
	}
	return bustest.Await(w.heard, patience, "the rejection of "+id, func(e *event.WorkloadRejected) bool { return e.MessageID == id }, nil).Reason.Message
}

// ask sends a request to the HTTP API and returns the status and the error.
func (w *world) ask(method, path, bearer, body string) string {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), method, w.http+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	var problem struct{ Error string }
	if err := json.Unmarshal(content, &problem); err != nil || problem.Error == "" || response.StatusCode < http.StatusBadRequest {
		w.t.Errorf("%s %s: status %d with %s, want an error in JSON", method, path, response.StatusCode, content)
	}
	return fmt.Sprintf("%d: %s", response.StatusCode, problem.Error)
}

// run runs the command line in a directory with the files, and returns the exit code and
// what it prints to standard error.
func (w *world) run(files map[string]string, arguments ...string) string {
	w.t.Helper()
	dir := w.t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	command := exec.CommandContext(w.t.Context(), w.program, arguments...)
	command.Dir = dir
	command.Env = append(os.Environ(), "MUSTER_NATS_URL="+w.bus.Conn().ConnectedUrl())
	var errOut strings.Builder
	command.Stderr = &errOut
	err := command.Run()
	var failed *exec.ExitError
	if !errors.As(err, &failed) {
		w.t.Fatalf("muster %q: %v, want a failure; standard error: %s", arguments, err, errOut.String())
	}
	return fmt.Sprintf("%d: %s", failed.ExitCode(), errOut.String())
}
