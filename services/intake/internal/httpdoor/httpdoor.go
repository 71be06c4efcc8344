// Package httpdoor is intake's door for those without NATS: work is submitted,
// listed, described, explained, cancelled and followed over HTTP, in the types that
// the messages have.
//
// Who asks is known from the connection: a client certificate, or a bearer token;
// nothing that a request says about it counts. What somebody may see and cancel is
// what he may submit: queue-manager's queues say it, and queue-manager looks again.
//
// It keeps nothing and decides nothing: a submission is read as those from NATS
// are (package submission), and what is true is asked of queue-manager.
package httpdoor

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/httpapi"
	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/query"
	"muster.dev/muster/pkg/ray"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/intake/internal/budget"
)

// Options are what the door works with.
type Options struct {
	Bus      *bus.Bus
	Queries  *query.Client
	Operator ray.Operator
	// Identify says who has sent a request; an error means nobody known.
	Identify func(*http.Request) (name string, err error)
	// Budget bounds what reading manifests may take.
	Budget *budget.Budget
	Logger *zap.Logger
}

// Door answers requests.
type Door struct {
	Options

	mu     sync.Mutex
	queues map[string]query.Queue
	asked  time.Time
}

// Times that bound a request, and for how long the queues' rights are remembered.
const (
	requestTimeout = 15 * time.Second
	storedTimeout  = 10 * time.Second
	rightsKept     = 2 * time.Second
)

// New returns the handler of all paths.
func New(o Options) http.Handler {
	d := &Door{Options: o}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /openapi.json", d.openAPI)
	handlers := map[string]handler{
		"submit": d.submit, "list": d.list, "describe": d.describe, "explain": d.explain, "follow": d.follow, "cancel": d.cancel,
		"listQueues": d.listQueues, "describeQueue": d.describeQueue, "followQueue": d.followQueue,
	}
	for _, operation := range httpapi.Operations() {
		mux.HandleFunc(operation.Method+" "+operation.Path, d.authenticated(handlers[operation.ID]))
	}
	return mux
}

// handler answers somebody known. What it returns is told as a Problem.
type handler func(w http.ResponseWriter, r *http.Request, who string) error

// description is the OpenAPI document, made by test/contract of package httpapi.
//
//go:embed openapi.json
var description []byte

// failure is an error with the status that tells it.
type failure struct {
	status  int
	problem httpapi.Problem
}

func (f *failure) Error() string { return f.problem.Error }

func fail(status int, format string, args ...any) error {
	return &failure{status, httpapi.Problem{Error: fmt.Sprintf(format, args...)}}
}

func (d *Door) authenticated(handle handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name, err := d.Identify(r)
		if err != nil {
			w.Header().Set("WWW-Authenticate", `Bearer realm="muster"`)
			d.tell(w, r, fail(http.StatusUnauthorized, "%v", err))
			return
		}
		if err := handle(w, r, workload.DoorHTTP+"/"+name); err != nil {
			d.tell(w, r, err)
		}
	}
}

// tell answers with a Problem.
func (d *Door) tell(w http.ResponseWriter, r *http.Request, err error) {
	var known *failure
	var refused *query.ProblemError
	switch {
	case errors.As(err, &known):
	case r.Context().Err() != nil:
		return // whoever asked has gone
	case errors.Is(err, query.ErrNoAnswer), errors.Is(err, context.DeadlineExceeded), errors.Is(err, bus.ErrNoStream):
		known = &failure{http.StatusServiceUnavailable, httpapi.Problem{Error: err.Error()}}
	case errors.As(err, &refused) && refused.Busy:
		known = &failure{http.StatusTooManyRequests, httpapi.Problem{Error: refused.Message}}
	case errors.As(err, &refused): // what it has been asked for is there
		known = &failure{http.StatusServiceUnavailable, httpapi.Problem{Error: refused.Message}}
	default:
		d.Logger.Error("request failed", zap.String("path", r.URL.Path), zap.Error(err))
		known = &failure{http.StatusInternalServerError, httpapi.Problem{Error: err.Error()}}
	}
	if known.status == http.StatusServiceUnavailable || known.status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "5")
	}
	write(w, known.status, known.problem)
}

func write(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // whoever asked has gone if that fails
}

func (d *Door) openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(description)
}

// rights returns the queues as they were a moment ago.
func (d *Door) rights(ctx context.Context) (map[string]query.Queue, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.queues != nil && time.Since(d.asked) < rightsKept {
		return d.queues, nil
	}
	answer, err := d.Queries.Queues(ctx)
	if err != nil {
		return nil, err
	}
	d.queues, d.asked = map[string]query.Queue{}, time.Now()
	for _, q := range answer.Queues {
		d.queues[q.Name] = q
	}
	return d.queues, nil
}

// may reports whether somebody may submit to a queue in a namespace, and thus see
// and cancel what is there.
func may(queues map[string]query.Queue, who, queue, namespace string) bool {
	q, known := queues[queue]
	return known && workload.Rules{Submitters: q.Submitters}.MaySubmit(who, namespace)
}

// mayAny reports whether somebody may submit to a queue in any namespace of it.
func mayAny(queues map[string]query.Queue, who, queue string) bool {
	for _, namespace := range queues[queue].Namespaces {
		if may(queues, who, queue, namespace) {
			return true
		}
	}
	return false
}

// record returns a workload that the caller may see. Others' are as if they were
// not there.
func (d *Door) record(ctx context.Context, who string, id workload.ID) (workload.Record, error) {
	if uuid.Validate(string(id)) != nil {
		return workload.Record{}, fail(http.StatusNotFound, "there is no workload %.80q", string(id))
	}
	queues, err := d.rights(ctx)
	if err != nil {
		return workload.Record{}, err
	}
	answer, err := d.Queries.Workloads(ctx, query.WorkloadsRequest{ID: id})
	if err != nil {
		return workload.Record{}, err
	}
	if len(answer.Workloads) == 0 || !may(queues, who, answer.Workloads[0].Queue, answer.Workloads[0].Namespace) {
		return workload.Record{}, fail(http.StatusNotFound, "there is no workload %q", id)
	}
	return answer.Workloads[0].ForTenant(), nil
}

func (d *Door) list(w http.ResponseWriter, r *http.Request, who string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	request, err := listRequest(r)
	if err != nil {
		return err
	}
	queues, err := d.rights(ctx)
	if err != nil {
		return err
	}
	answer, err := d.Queries.Workloads(ctx, request)
	if err != nil {
		return err
	}
	seen := []workload.Record{}
	for _, record := range answer.Workloads {
		if may(queues, who, record.Queue, record.Namespace) {
			seen = append(seen, record.ForTenant())
		}
	}
	write(w, http.StatusOK, query.WorkloadsAnswer{Workloads: seen, Next: answer.Next})
	return nil
}

// longestName is the longest name of an object in Kubernetes.
const longestName = 253

// longestWhy bounds the reason for a cancellation.
const longestWhy = 1000

// listRequest reads filters and page.
func listRequest(r *http.Request) (query.WorkloadsRequest, error) {
	values := r.URL.Query()
	request := query.WorkloadsRequest{Name: values.Get("name"), Namespace: values.Get("namespace"), Queue: values.Get("queue")}
	for parameter, value := range map[string]string{"name": request.Name, "namespace": request.Namespace, "queue": request.Queue} {
		if why := kube.BadText(value); why != "" || len(value) > longestName {
			return request, fail(http.StatusBadRequest, "%s %.80q: want the name of an object, of at most %d printable characters", parameter, value, longestName)
		}
	}
	for _, names := range values["phase"] {
		for name := range strings.SplitSeq(names, ",") {
			phase := workload.Phase(name)
			if !slices.Contains(workload.Phases(), phase) {
				return request, fail(http.StatusBadRequest, "phase %q: want one of %v", name, workload.Phases())
			}
			request.Phases = append(request.Phases, phase)
		}
	}
	var err error
	if text := values.Get("limit"); text != "" {
		if request.Limit, err = strconv.Atoi(text); err != nil || request.Limit < 1 || request.Limit > query.MaxPage {
			return request, fail(http.StatusBadRequest, "limit %q: want a whole number from 1 to %d", text, query.MaxPage)
		}
	}
	if text := values.Get("after"); text != "" {
		if request.After, err = strconv.ParseInt(text, 10, 64); err != nil || request.After < 0 {
			return request, fail(http.StatusBadRequest, "after %q: want the number that the page before has as next", text)
		}
	}
	return request, nil
}

func (d *Door) describe(w http.ResponseWriter, r *http.Request, who string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	record, err := d.record(ctx, who, workload.ID(r.PathValue("id")))
	if err != nil {
		return err
	}
	history, err := d.Queries.History(ctx, query.HistoryRequest{ID: record.ID})
	if err != nil {
		return err
	}
	for i := range history.Entries {
		history.Entries[i].Reason = history.Entries[i].Reason.ForTenant()
	}
	write(w, http.StatusOK, httpapi.Description{Record: record, History: history.Entries})
	return nil
}

func (d *Door) explain(w http.ResponseWriter, r *http.Request, who string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	record, err := d.record(ctx, who, workload.ID(r.PathValue("id")))
	if err != nil {
		return err
	}
	if record.Phase.Final() {
		return fail(http.StatusNotFound, "workload %s has ended, as %s: there is nothing to explain", record.ID, record.Phase)
	}
	answer, err := d.Queries.Explain(ctx, query.ExplainRequest{ID: record.ID, For: who})
	if err != nil {
		return err
	}
	answer.Explanation = answer.ForTenant() // a queue-manager that is older answers an operator
	write(w, http.StatusOK, answer)
	return nil
}

func (d *Door) cancel(w http.ResponseWriter, r *http.Request, who string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	record, err := d.record(ctx, who, workload.ID(r.PathValue("id")))
	if err != nil {
		return err
	}
	why := r.URL.Query().Get("why")
	if bad := kube.BadText(why); bad != "" || len(why) > longestWhy {
		return fail(http.StatusBadRequest, "why %.80q: want at most %d printable characters", why, longestWhy)
	}
	if !record.Phase.Final() {
		envelope, err := event.New(event.NewID(), source, time.Now(), &event.WorkloadCancel{
			Workload: record.ID, Why: why, Submitter: who,
		})
		if err != nil {
			return err
		}
		if err := d.Bus.Publish(ctx, bus.WorkloadSubject(record.Queue), envelope); err != nil {
			return err
		}
	}
	write(w, http.StatusAccepted, httpapi.Cancelling{Workload: record.ID})
	return nil
}

func (d *Door) listQueues(w http.ResponseWriter, r *http.Request, who string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	answer, err := d.Queries.Queues(ctx)
	if err != nil {
		return err
	}
	queues, err := d.rights(ctx)
	if err != nil {
		return err
	}
	seen := []query.Queue{}
	for _, q := range answer.Queues {
		if mayAny(queues, who, q.Name) {
			seen = append(seen, q)
		}
	}
	write(w, http.StatusOK, query.QueuesAnswer{Queues: seen})
	return nil
}

func (d *Door) describeQueue(w http.ResponseWriter, r *http.Request, who string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	name := r.PathValue("queue")
	queues, err := d.rights(ctx)
	if err != nil {
		return err
	}
	if !mayAny(queues, who, name) {
		return fail(http.StatusNotFound, "there is no queue %q", name)
	}
	answer, err := d.Queries.Queues(ctx)
	if err != nil {
		return err
	}
	for _, q := range answer.Queues {
		if q.Name == name {
			write(w, http.StatusOK, q)
			return nil
		}
	}
	return fail(http.StatusNotFound, "there is no queue %q", name)
}
