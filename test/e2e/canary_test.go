package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/testkit/bustest"
	"muster.dev/muster/test/stack"
)

// lockedBuffer keeps what the services log.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// secretEnv puts a variable into the environment of the workers of a RayCluster.
func secretEnv(manifest, value string) string {
	return stack.WorkerTemplate(manifest, func(template map[string]any) {
		container := template["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
		container["env"] = []any{map[string]any{"name": "TOKEN", "value": value}}
	})
}

// Secrets in manifests, in the settings and in the services' credentials are where
// they were put, and in no log, event, metric, health answer, record or step of a
// history. The manifests table, the commands and the objects have to have them: they
// are the workload.
func TestSecretsStayWhereTheyArePut(t *testing.T) {
	t.Parallel()
	logs := &lockedBuffer{}
	encoder := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	w := startWorld(t, stack.Options{Logger: zap.New(zapcore.NewCore(encoder, zapcore.AddSync(logs), zap.DebugLevel))})
	canaries := map[string]string{}
	plant := func(where string) string {
		canaries[where] = "canary-" + strings.ToLower(rand.Text())
		return canaries[where]
	}
	credentials, err := w.Secrets()
	if err != nil {
		t.Fatal(err)
	}
	for service, secret := range credentials {
		if len(secret) < 16 {
			t.Fatalf("%s has no secret", service)
		}
		canaries["the credentials of "+service] = secret
	}
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")

	// What runs, what waits, what is refused at submission, by the queue and by
	// Kubernetes, and what cannot be read at all.
	runs := w.submit(secretEnv(stack.RayCluster("runs", 1, 1), plant("a running manifest")))
	w.reaches(runs, workload.Running)
	waits := w.submit(secretEnv(stack.RayCluster("waits", 1, 1), plant("a waiting manifest")))
	w.waits(waits, workload.ReasonFit)
	policy := w.submit(secretEnv(strings.Replace(stack.RayCluster("refused", 1, 1), `"spec":{"containers"`, `"spec":{"hostNetwork":true,"containers"`, 1), plant("a manifest against the policy")))
	kubernetes := w.submit(stack.AppWrapper(w.Namespace, "failed", stack.RayCluster("failed", 0, 0),
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: failed}\ndata: {password: "+plant("a wrapped ConfigMap")+"}\n",
		"apiVersion: v1\nkind: Service\nmetadata: {name: failed}\nspec: {ports: [{port: 99999999}]}\n"))
	wrapped := w.submit(stack.AppWrapper(w.Namespace, "wrapped", stack.RayCluster("wrapped", 0, 0),
		"apiVersion: v1\nkind: Secret\nmetadata: {name: wrapped}\nstringData: {password: "+plant("a wrapped Secret")+"}\n"))
	broken := w.publish("default", "broken", []byte(fmt.Sprintf(`{"apiVersion":"ray.io/v1","kind":"RayCluster","metadata":{"name":"b"},"spec":{"headGroupSpec":{"template":{"spec":{"containers":[{"name":"c","env":[{"name":"P","value":%q}],"ports":"none"}]}}}}}`, plant("an unreadable manifest"))))
	w.publishRaw("default", []byte("no event: "+plant("an unreadable message")))
	for _, id := range []workload.ID{policy, broken, wrapped} {
		await(w, "a rejection", func(e *event.WorkloadRejected) bool { return e.Workload == id })
	}
	await(w, "a rejection without an id", func(e *event.WorkloadRejected) bool { return e.Workload == "" })
	w.reaches(kubernetes, workload.Failed)
	w.cancel(runs)
	w.reaches(waits, workload.Running)
	w.cancel(waits)
	w.released(waits)

	for where, text := range w.readable(t) {
		for what, secret := range canaries {
			if strings.Contains(text, secret) {
				t.Errorf("%s has %s: ...%s...", where, what, around(text, secret))
			}
		}
	}
	for what, secret := range canaries {
		if strings.Contains(logs.String(), secret) {
			t.Errorf("a log has %s: ...%s...", what, around(logs.String(), secret))
		}
	}
	if !strings.Contains(logs.String(), string(runs)) {
		t.Error("the logs do not name the workload: the test does not see them")
	}
	w.findsCanary(canaries["a running manifest"])
}

func around(text, secret string) string {
	const shown = 120
	i := strings.Index(text, secret)
	return text[max(0, i-shown):i]
}

// readable returns all that people and tools can read without being meant to see
// manifests, by where it is.
func (w *world) readable(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, stream := range []string{bus.EventsStream, bus.StatusStream, bus.CapacityStream} {
		values, err := w.Bus.LastValues(t.Context(), stream, ">")
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range values {
			found["stream "+stream] += fmt.Sprintf("%s %v %s\n", d.Subject, d.Headers, d.Data)
		}
	}
	for _, payload := range bustest.Heard[event.Payload](w.heard) {
		found["events as they came"] += fmt.Sprintf("%+v\n", payload)
	}
	answer, err := w.Queries.Workloads(t.Context(), query.WorkloadsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	found["answers"] = fmt.Sprintf("%+v", answer)
	events, err := w.Kube.CoreV1().Events(w.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events.Items {
		found["events of Kubernetes"] += e.Message + "\n"
	}
	for name, runtime := range w.Runtimes() {
		endpoint, err := service.ListenHealth("127.0.0.1:0", runtime.Health, runtime.Metrics)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
			response, err := http.Get(endpoint.URL() + path)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			found[name+path] = string(body)
		}
		endpoint.Close()
	}
	for _, table := range []string{"workloads", "history", "queues", "policy", "shapes", "nodes", "reservations", "leader", "commits", "streams", "undelivered"} {
		found["table "+table] = w.rows(t, `SELECT to_jsonb(x)::text FROM `+table+` x`)
	}
	found["table archive"] = w.rows(t, `SELECT (to_jsonb(x) - 'manifest')::text FROM archive x`)
	// Statements as other sessions see them have placeholders, not values.
	found["statements"] = w.rows(t, `SELECT coalesce(query, '') FROM pg_stat_activity`)
	// The services run in this process. Its environment would show what one of them puts
	// into it; its arguments are the test's own, and show nothing about a service's.
	for _, process := range []string{"/proc/self/cmdline", "/proc/self/environ"} {
		content, err := os.ReadFile(process)
		if err != nil {
			t.Fatal(err)
		}
		found[process] = string(content)
	}
	return found
}

func (w *world) rows(t *testing.T, statement string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), w.database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	rows, err := conn.Query(t.Context(), statement)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return strings.Join(found, "\n")
}

// findsCanary shows that the test would see a secret where there is one.
func (w *world) findsCanary(secret string) {
	w.t.Helper()
	if all := w.rows(w.t, `SELECT manifest::text FROM archive`); !strings.Contains(all, secret) {
		w.t.Error("the archive's manifests do not have the secret: the test does not see it")
	}
}
