// Package apiserver is intake's HTTP API, for clients without NATS. They submit, list,
// describe, explain, cancel and follow workloads, in the types of the messages.
//
// A client certificate or a bearer token identifies the caller; nothing else in a
// request does. A caller may see and cancel what it may submit: the queues of
// queue-manager define that, and queue-manager checks it again.
//
// It has no state and makes no decisions: it reads submissions as those from NATS
// are read (package submission), and queries queue-manager for the rest.
package apiserver

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
	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/intake/internal/budget"
)

// Options are the dependencies and limits of a Server.
type Options struct {
	Bus      *bus.Bus
	Queries  *query.Client
	Operator ray.Operator
	// Identify returns the caller's name, or an error if it is unknown.
	Identify func(*http.Request) (name string, err error)
	// Budget bounds time and memory of reading manifests.
	Budget *budget.Budget
	Limits Limits
	Logger *zap.Logger
}

// Server answers requests.
type Server struct {
	Options

	mu     sync.Mutex
	queues map[string]query.Queue
	asked  time.Time

	requests, streams shares
}

// Time limits of a request, and how long the queues' rights are cached.
const (
	requestTimeout = 15 * time.Second
	storedTimeout  = 10 * time.Second
	rightsKept     = 2 * time.Second
)

// New returns the handler of all paths.
func New(o Options) http.Handler {
	s := &Server{Options: o, requests: newShares(o.Limits.Requests), streams: newShares(o.Limits.Streams)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /openapi.json", s.openAPI)
	handlers := map[string]handler{
		"submit": s.submit, "list": s.list, "describe": s.describe, "explain": s.explain, "follow": s.follow, "cancel": s.cancel,
		"listQueues": s.listQueues, "describeQueue": s.describeQueue, "followQueue": s.followQueue,
	}
	for _, operation := range httpapi.Operations() {
		handle := handlers[operation.ID]
		if operation.ID == "follow" || operation.ID == "followQueue" {
			handle = s.limited(&s.streams, "streams of events", handle)
		} else {
			handle = s.limited(&s.requests, "requests", s.timed(handle))
		}
		mux.HandleFunc(operation.Method+" "+operation.Path, s.authenticated(handle))
	}
	return mux
}

// handler answers an authenticated caller. Its error becomes a Problem.
type handler func(w http.ResponseWriter, r *http.Request, caller string) error

// description is the OpenAPI document, which test/contract generates from package
// httpapi.
//
//go:embed openapi.json
var description []byte

// failure is an error with its HTTP status.
type failure struct {
	status  int
	problem httpapi.Problem
}

func (f *failure) Error() string { return f.problem.Error }

func fail(status int, format string, args ...any) error {
	return &failure{status, httpapi.Problem{Error: fmt.Sprintf(format, args...)}}
}

func (s *Server) authenticated(handle handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name, err := s.Identify(r)
		if err != nil {
			w.Header().Set("WWW-Authenticate", `Bearer realm="muster"`)
			s.writeProblem(w, r, fail(http.StatusUnauthorized, "%v", err))
			return
		}
		if err := handle(w, r, workload.DoorHTTP+"/"+name); err != nil {
			s.writeProblem(w, r, err)
		}
	}
}

// writeProblem answers a failed request with a Problem.
func (s *Server) writeProblem(w http.ResponseWriter, r *http.Request, err error) {
	var known *failure
	var refused *query.ProblemError
	switch {
	case errors.As(err, &known):
	case r.Context().Err() != nil:
		return // the caller has disconnected
	case errors.Is(err, query.ErrNoAnswer), errors.Is(err, context.DeadlineExceeded), errors.Is(err, bus.ErrNoStream), errors.Is(err, bus.ErrFull):
		known = &failure{http.StatusServiceUnavailable, httpapi.Problem{Error: err.Error()}}
	case errors.As(err, &refused) && refused.Busy:
		known = &failure{http.StatusTooManyRequests, httpapi.Problem{Error: refused.Message}}
	case errors.As(err, &refused): // the workload exists, so the failure may pass
		known = &failure{http.StatusServiceUnavailable, httpapi.Problem{Error: refused.Message}}
	default:
		s.Logger.Error("request failed", zap.String("path", r.URL.Path), zap.Error(err))
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
	_ = json.NewEncoder(w).Encode(value) // fails only if the caller has disconnected
}

func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(description)
}

// rights returns the queues, at most rightsKept old.
func (s *Server) rights(ctx context.Context) (map[string]query.Queue, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queues != nil && time.Since(s.asked) < rightsKept {
		return s.queues, nil
	}
	answer, err := s.Queries.Queues(ctx)
	if err != nil {
		return nil, err
	}
	s.queues, s.asked = map[string]query.Queue{}, time.Now()
	for _, q := range answer.Queues {
		s.queues[q.Name] = q
	}
	return s.queues, nil
}

// may reports whether the caller may submit to a queue in a namespace, and thus see
// and cancel its workloads there.
func may(queues map[string]query.Queue, caller, queue, namespace string) bool {
	q, known := queues[queue]
	return known && workload.Rules{Submitters: q.Submitters}.MaySubmit(caller, namespace)
}

// mayAny reports whether the caller may submit to a queue in any of its namespaces.
func mayAny(queues map[string]query.Queue, caller, queue string) bool {
	for _, namespace := range queues[queue].Namespaces {
		if may(queues, caller, queue, namespace) {
			return true
		}
	}
	return false
}

// record returns a workload that the caller may see. The error for a hidden workload is
// the one for a missing workload.
func (s *Server) record(ctx context.Context, caller string, id workload.ID) (workload.Record, error) {
	if uuid.Validate(string(id)) != nil {
		return workload.Record{}, fail(http.StatusNotFound, "there is no workload %.80q: want its id, the UUID in the answer to its submission", string(id))
	}
	queues, err := s.rights(ctx)
	if err != nil {
		return workload.Record{}, err
	}
	answer, err := s.Queries.Workloads(ctx, query.WorkloadsRequest{ID: id})
	if err != nil {
		return workload.Record{}, err
	}
	if len(answer.Workloads) == 0 || !may(queues, caller, answer.Workloads[0].Queue, answer.Workloads[0].Namespace) {
		return workload.Record{}, fail(http.StatusNotFound, "there is no workload %q", id)
	}
	return answer.Workloads[0].ForTenant(), nil
}

func (s *Server) list(w http.ResponseWriter, r *http.Request, caller string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	request, err := listRequest(r)
	if err != nil {
		return err
	}
	queues, err := s.rights(ctx)
	if err != nil {
		return err
	}
	answer, err := s.Queries.Workloads(ctx, request)
	if err != nil {
		return err
	}
	seen := []workload.Record{}
	for _, record := range answer.Workloads {
		if may(queues, caller, record.Queue, record.Namespace) {
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

// listRequest reads the filters and the page from the query.
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

func (s *Server) describe(w http.ResponseWriter, r *http.Request, caller string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	record, err := s.record(ctx, caller, workload.ID(r.PathValue("id")))
	if err != nil {
		return err
	}
	history, err := s.Queries.History(ctx, query.HistoryRequest{ID: record.ID})
	if err != nil {
		return err
	}
	for i := range history.Entries {
		history.Entries[i].Reason = history.Entries[i].Reason.ForTenant()
	}
	write(w, http.StatusOK, httpapi.Description{Record: record, History: history.Entries})
	return nil
}

func (s *Server) explain(w http.ResponseWriter, r *http.Request, caller string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	record, err := s.record(ctx, caller, workload.ID(r.PathValue("id")))
	if err != nil {
		return err
	}
	if record.Phase.Final() {
		return fail(http.StatusNotFound, "workload %s has ended, as %s: there is nothing to explain", record.ID, record.Phase)
	}
	answer, err := s.Queries.Explain(ctx, query.ExplainRequest{ID: record.ID, For: caller})
	if err != nil {
		return err
	}
	answer.Explanation = answer.ForTenant() // an older queue-manager answers as for an operator
	write(w, http.StatusOK, answer)
	return nil
}

func (s *Server) cancel(w http.ResponseWriter, r *http.Request, caller string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	record, err := s.record(ctx, caller, workload.ID(r.PathValue("id")))
	if err != nil {
		return err
	}
	why := r.URL.Query().Get("why")
	if bad := kube.BadText(why); bad != "" || len(why) > longestWhy {
		return fail(http.StatusBadRequest, "why %.80q: want at most %d printable characters", why, longestWhy)
	}
	if !record.Phase.Final() {
		envelope, err := event.New(event.NewID(), source, time.Now(), &event.WorkloadCancel{
			Workload: record.ID, Why: why, Submitter: caller,
		})
		if err != nil {
			return err
		}
		if err := s.publish(ctx, event.WorkloadSubject(record.Queue), envelope); err != nil {
			return err
		}
	}
	write(w, http.StatusAccepted, httpapi.Cancelling{Workload: record.ID})
	return nil
}

func (s *Server) listQueues(w http.ResponseWriter, r *http.Request, caller string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	answer, err := s.Queries.Queues(ctx)
	if err != nil {
		return err
	}
	queues, err := s.rights(ctx)
	if err != nil {
		return err
	}
	seen := []query.Queue{}
	for _, q := range answer.Queues {
		if mayAny(queues, caller, q.Name) {
			seen = append(seen, q)
		}
	}
	write(w, http.StatusOK, query.QueuesAnswer{Queues: seen})
	return nil
}

func (s *Server) describeQueue(w http.ResponseWriter, r *http.Request, caller string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	name := r.PathValue("queue")
	queues, err := s.rights(ctx)
	if err != nil {
		return err
	}
	if !mayAny(queues, caller, name) {
		return fail(http.StatusNotFound, "there is no queue %q", name)
	}
	answer, err := s.Queries.Queues(ctx)
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
