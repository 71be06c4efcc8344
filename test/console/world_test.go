package console

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/testkit/clustertest"
	"muster.dev/muster/pkg/testkit/pgtest"
	console "muster.dev/muster/services/console/app"
	intake "muster.dev/muster/services/intake/app"
	queuemanager "muster.dev/muster/services/queue-manager/app"
	"muster.dev/muster/test/stack"
	"muster.dev/muster/test/stack/stacktest"
)

// patience is how long a test waits for what must happen.
const patience = 60 * time.Second

// What the tests share: each has a database, a namespace and nodes of its own.
var (
	databases *pgtest.Server
	shared    = clustertest.Shared{Name: "console", Prepare: stacktest.Install}
)

func TestMain(m *testing.M) { stacktest.Main(m, &databases, &shared) }

// world is a stack with the console. The token of each caller is its name; olga is an operator.
type world struct {
	*stack.Stack
	t            *testing.T
	api, console string
}

func newWorld(t *testing.T, queues []queuemanager.Queue, callers ...string) *world {
	t.Helper()
	var tokens strings.Builder
	for _, name := range callers {
		fmt.Fprintf(&tokens, "- {name: %s, sha256: %x}\n", name, sha256.Sum256([]byte(name)))
	}
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(file, []byte(tokens.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	listening := make(chan net.Addr, 1)
	logger := zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel))
	s, err := stack.Start(t.Context(), stack.Options{
		Cluster: shared.Use(t).Cluster, Installed: true, DatabaseURL: databases.Database(t), Dir: t.TempDir(), Queues: queues, Logger: logger,
		HTTP: intake.HTTPConfig{Address: "127.0.0.1:0", TokensFile: file, Operators: "olga", Listening: func(a net.Addr) { listening <- a }},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	w := &world{Stack: s, t: t, api: "http://" + (<-listening).String()}
	w.console = w.startConsole(logger)
	return w
}

func (w *world) startConsole(logger *zap.Logger) string {
	w.t.Helper()
	listening := make(chan net.Addr, 1)
	config := &console.Config{Address: "127.0.0.1:0", Server: w.api, Actions: true, Listening: func(a net.Addr) { listening <- a }}
	if err := config.Validate(); err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- console.Run(ctx, config, service.NewRuntime(logger, "console")) }()
	w.t.Cleanup(func() { stop(); <-ended })
	select {
	case address := <-listening:
		return "http://" + address.String()
	case err := <-ended:
		ended <- err
		w.t.Fatal(err)
		return ""
	}
}

// submit submits a manifest over HTTP and returns the workload.
func (w *world) submit(who, queue, manifest string) workload.ID {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.api+"/v1/queues/"+queue+"/workloads", strings.NewReader(manifest))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+who)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	var submitted httpapi.Submission
	if err := json.NewDecoder(response.Body).Decode(&submitted); err != nil || response.StatusCode != http.StatusCreated {
		w.t.Fatalf("submit as %s: status %d, %v", who, response.StatusCode, err)
	}
	return submitted.Workload
}

// browser is a Chromium of a caller.
type browser struct {
	*world
	ctx context.Context
}

// browse logs a caller in. What Chromium refuses or a script throws is an error of the test.
func (w *world) browse(who string) *browser {
	w.t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("MUSTER_REQUIRE_SERVICES") != "" {
			w.t.Fatal("no chromium: apt-get install chromium")
		}
		w.t.Skip("no chromium: apt-get install chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true), chromedp.WindowSize(1280, 900))
	allocated, end := chromedp.NewExecAllocator(context.Background(), options...)
	w.t.Cleanup(end)
	ctx, end := chromedp.NewContext(allocated)
	w.t.Cleanup(end)
	err = chromedp.Listen(ctx, func(e any) {
		switch e := e.(type) {
		case *runtime.EventExceptionThrown:
			w.t.Errorf("a script failed: %s", e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			if e.Entry.Source == log.EntrySourceSecurity {
				w.t.Errorf("Chromium refuses: %s", e.Entry.Text)
			}
		}
	})
	if err != nil {
		w.t.Fatalf("start Chromium: %v", err)
	}
	b := &browser{w, ctx}
	b.do("log in", chromedp.Navigate(w.console+"/"), chromedp.SendKeys("#token", who), chromedp.Submit("#token"), chromedp.WaitVisible("#link"))
	return b
}

// do runs steps in the browser, each of which may wait.
func (b *browser) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.body.innerText`)) // without it the error says enough
		b.t.Fatalf("%s: %v; the page has:\n%s", what, err, text)
	}
}

// shows waits until the text is on the page.
func (b *browser) shows(text string) {
	b.t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		b.t.Fatal(err)
	}
	poll := chromedp.Poll[bool]("!!document.body && document.body.innerText.includes("+string(quoted)+")", chromedp.WithPollingTimeout(patience))
	if !value(b, "wait for "+text, func(ctx context.Context, t *chromedp.Target) (bool, error) {
		for {
			there, err := poll(ctx, t)
			if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "(-32000)") { // the code of what a page that is gone cannot do
				return there, err
			}
			// The browser has just gone on to the next page: it is looked for there.
		}
	}) {
		b.t.Errorf("the page lacks %q", text)
	}
}

// value runs one step in the browser and returns its value.
func value[T any](b *browser, what string, step chromedp.Action[T]) (of T) {
	b.t.Helper()
	b.do(what, func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		var err error
		of, err = step(ctx, t)
		return chromedp.Void{}, err
	})
	return of
}

// text is what the page shows.
func (b *browser) text() string {
	b.t.Helper()
	return value(b, "read the page", chromedp.Evaluate[string](`document.body.innerText`))
}

// visit opens a page of the console.
func (b *browser) visit(path string) {
	b.t.Helper()
	b.do("open "+path, chromedp.Navigate(b.console+path), chromedp.WaitVisible(chromedp.CSS("main"))) // a plain string also finds texts with this word
}
