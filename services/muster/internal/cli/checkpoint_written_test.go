package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/muster/internal/cli"
)

// lines is an output that a test reads while the command runs.
type lines chan string

func (l lines) Write(text []byte) (int, error) {
	l <- string(text)
	return len(text), nil
}

// reports is the HTTP API with a workload that runs. A report of a checkpoint is passed on, and
// the first one is refused.
func reports(t *testing.T, asked chan string) string {
	t.Helper()
	answer := func(w http.ResponseWriter, value any) {
		if err := json.NewEncoder(w).Encode(value); err != nil {
			t.Error(err)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/workloads", func(w http.ResponseWriter, r *http.Request) {
		page := httpapi.WorkloadsPage{Workloads: []workload.Record{recordOf('2', "train", workload.Running)}}
		if r.URL.Query().Get("name") != "train" {
			page.Workloads = nil
		}
		answer(w, page)
	})
	mux.HandleFunc("GET /v1/workloads/{id}/events", func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	var count atomic.Int32
	mux.HandleFunc("PUT /v1/workloads/{id}/checkpoint", func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Query().Get("at")
		if count.Add(1) == 1 {
			w.WriteHeader(http.StatusConflict)
			answer(w, httpapi.Problem{Error: "workload train is dispatched: only one that runs has work to save"})
			return
		}
		w.WriteHeader(http.StatusAccepted)
		answer(w, httpapi.Changing{Unchanged: true})
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// TestAWrittenFileIsACheckpoint: each write of the file is reported once, by the clock of
// queue-manager; a report that is refused is made again. The end of the command is no failure.
func TestAWrittenFileIsACheckpoint(t *testing.T) {
	t.Parallel()
	const patience = 30 * time.Second
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	asked, errors, code := make(chan string, 10), make(lines, 10), make(chan int, 1)
	path, url := filepath.Join(t.TempDir(), "latest"), reports(t, asked)
	go func() {
		var out bytes.Buffer
		code <- cli.Run(ctx, []string{"checkpoint", "train", "--written", path, "--every", "100ms", "--server", url}, strings.NewReader(""), &out, errors)
	}()
	next := func(from <-chan string, what string) string {
		t.Helper()
		select {
		case text := <-from:
			return text
		case <-ctx.Done():
			t.Fatalf("%s: nothing within %s", what, patience)
			return ""
		}
	}
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if text := next(errors, "the file is not there"); text != "muster: "+path+" is not there yet\n" {
		t.Errorf("at the beginning it prints %q", text)
	}
	write("epoch 1")
	at := []string{next(asked, "the first report")}
	if text := next(errors, "the refusal"); !strings.Contains(text, "only one that runs has work to save; trying again every 100ms") {
		t.Errorf("of the refusal it prints %q", text)
	}
	at = append(at, next(asked, "the first report again"))
	write("epoch 2, which is longer")
	at = append(at, next(asked, "the second report"))
	stop()
	if got := <-code; got != exit.OK {
		t.Errorf("it ends with %d, want %d", got, exit.OK)
	}
	if strings.Join(at, "") != "" || len(asked) > 0 {
		t.Errorf("reported are the times %q, and %d more; want three without a time", at, len(asked))
	}
}

// TestReportsEndWithTheWorkload: the last write of a job often comes seconds before its end.
func TestReportsEndWithTheWorkload(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "latest")
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/workloads", func(w http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(w).Encode(httpapi.WorkloadsPage{Workloads: []workload.Record{recordOf('2', "train", workload.Succeeded)}}); err != nil {
			t.Error(err)
		}
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	errors, code := make(lines, 10), make(chan int, 1)
	go func() {
		code <- cli.Run(ctx, []string{"checkpoint", "train", "--written", path, "--every", "100ms", "--server", server.URL}, strings.NewReader(""), new(bytes.Buffer), errors)
	}()
	<-errors // it is not there yet
	if err := os.WriteFile(path, []byte("the last"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := <-code; got != exit.OK || ctx.Err() != nil {
		t.Errorf("it ends with %d, %v; want %d", got, ctx.Err(), exit.OK)
	}
	if text := <-errors; !strings.Contains(text, "it has ended: it is succeeded") {
		t.Errorf("it prints %q", text)
	}
}

// TestAWrittenFileOfNoWorkload: a name that is not known, and times that cannot be, end the command.
func TestAWrittenFileOfNoWorkload(t *testing.T) {
	t.Parallel()
	url := reports(t, make(chan string, 10))
	for name, c := range map[string]struct {
		arguments []string
		code      int
		want      string
	}{
		"too often":     {[]string{"train", "--every", "1ms"}, exit.Usage, "--every 1ms: want 100ms to 1h0m0s"},
		"too seldom":    {[]string{"train", "--every", "24h"}, exit.Usage, "--every 24h0m0s: want 100ms to 1h0m0s"},
		"a directory":   {[]string{"train", "--written", t.TempDir()}, exit.Usage, "is no regular file"},
		"with a time":   {[]string{"train", "--at", "1h"}, exit.Usage, "--at and --written are both set; want one of them"},
		"without file":  {[]string{"train", "--every", "1s", "--written", ""}, exit.Usage, "--every is for --written"},
		"no such train": {[]string{"trian", "--every", "100ms"}, exit.NotFound, "trian"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := fileOf(t, "latest", "epoch 1")
			ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
			defer stop()
			written := make(chan struct{})
			go func() { // until the command has seen it
				defer close(written)
				for content := "epoch 1"; ctx.Err() == nil; content += "." {
					if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
						t.Error(err)
					}
					select {
					case <-ctx.Done():
					case <-time.After(time.Second):
					}
				}
			}()
			var out, errOut bytes.Buffer
			arguments := append([]string{"checkpoint", "--written", path, "--server", url}, c.arguments...)
			got := cli.Run(ctx, arguments, strings.NewReader(""), &out, &errOut)
			if got != c.code || !strings.Contains(errOut.String(), c.want) {
				t.Errorf("it ends with %d and %q, want %d and %q", got, errOut.String(), c.code, c.want)
			}
			stop()
			<-written
		})
	}
}
