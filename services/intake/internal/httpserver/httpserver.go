package httpserver

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/service/inflight"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/intake/internal/budget"
)

// Options are the dependencies and limits of a Server.
type Options struct {
	Bus *bus.Bus
	// Dead has the dead letters; nil for those of the Bus.
	Dead     deadLetters
	Queries  *query.Client
	Operator ray.Operator
	// Identify returns the caller's name and until when its request may last, or an error if
	// it is unknown. A zero time is no end.
	Identify func(*http.Request) (name string, until time.Time, err error)
	// Operators are the names of callers that may see and change what is of others.
	Operators []string
	// Budget bounds time and memory of reading manifests.
	Budget *budget.Budget
	Limits Limits
	Logger *zap.Logger
}

// deadLetters is the part of bus.Bus that lists dead letters.
type deadLetters interface {
	LastDeadLetters(ctx context.Context, most int, trim func(*bus.DeadLetter)) (last []bus.DeadLetter, older int, err error)
}

// Server answers requests.
type Server struct {
	Options

	mu     sync.Mutex
	queues map[string]query.Queue
	asked  time.Time

	requests, streams *inflight.Limiter
}

// Time limits of a request, and how long the queues' rights are cached.
const (
	requestTimeout = 15 * time.Second
	storedTimeout  = 10 * time.Second
	rightsKept     = 2 * time.Second
)

// New returns the handler of all paths.
func New(o Options) http.Handler {
	if o.Dead == nil {
		o.Dead = o.Bus
	}
	s := &Server{Options: o, requests: ofEach(o.Limits.Requests), streams: ofEach(o.Limits.Streams)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /openapi.json", s.openAPI)
	handlers := map[string]handler{
		"submit": s.submit, "list": s.list, "describe": s.describe, "manifest": s.manifest, "explain": s.explain, "follow": s.follow, "cancel": s.cancel,
		"caller": s.caller, "listDeadLetters": s.listDeadLetters, "followAll": s.followAll, "listQueues": s.listQueues, "describeQueue": s.describeQueue, "followQueue": s.followQueue, "move": s.move, "usage": s.usage, "activity": s.activity, "whatIf": s.whatIf, "listDecisions": s.listDecisions,
		"holdWorkload": s.holdWorkload, "resumeWorkload": s.resumeWorkload, "requeue": s.requeue, "checkpoint": s.checkpoint, "setPriority": s.setPriority,
		"listNodes": s.listNodes, "demand": s.demand, "status": s.status, "listClusters": s.listClusters, "listApplied": s.listApplied, "release": s.release,
		"holdQueue": s.changeQueueHold, "resumeQueue": s.changeQueueHold, "holdClusterQueue": s.changeClusterQueueHold, "resumeClusterQueue": s.changeClusterQueueHold,
		"joinCluster": s.joinCluster, "leaveCluster": s.leaveCluster, "cordonCluster": s.changeCordon, "uncordonCluster": s.changeCordon,
		"reserve": s.reserve, "unreserve": s.unreserve, "listReservations": s.listReservations,
	}
	for _, operation := range httpapi.Operations() {
		handle := handlers[operation.ID]
		if operation.Operators {
			handle = s.forOperators(handle)
		}
		if operation.Stream {
			handle = s.limited(s.streams, "streams of events", handle)
		} else {
			handle = s.limited(s.requests, "requests", s.timed(handle))
		}
		if what, is := reports()[operation.ID]; is {
			handle = s.limited(ofEach(1), what, handle)
		}
		if operation.ID == "followAll" { // each may read days of events
			handle = s.limited(ofEach(mostOfAll), "streams of the events of all queues", handle)
		}
		mux.HandleFunc(operation.Method+" "+operation.Path, s.authenticated(known(operation, handle)))
	}
	s.addRefusals(mux)
	return mux
}

// reports are the operations that cost much: each caller may have one of them under way.
func reports() map[string]string {
	return map[string]string{"usage": "reports of usage", "activity": "reports of activity", "whatIf": "what-ifs", "listDecisions": "lists of decisions", "listDeadLetters": "lists of dead letters"}
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
		name, until, err := s.Identify(r)
		var unable *failure
		if errors.As(err, &unable) {
			s.writeProblem(w, r, err)
			return
		}
		if err != nil {
			w.Header().Set("WWW-Authenticate", `Bearer realm="muster"`)
			s.writeProblem(w, r, fail(http.StatusUnauthorized, "%v", err))
			return
		}
		ctx := r.Context()
		if !until.IsZero() { // a stream may be open for longer than its token is valid
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, until)
			defer cancel()
		}
		if err := handle(w, r.WithContext(ctx), workload.ByHTTP+"/"+name); err != nil {
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
	case errors.Is(err, query.ErrNotSelected), errors.Is(err, query.ErrNodesNotSelected):
		known = &failure{http.StatusNotImplemented, httpapi.Problem{Error: err.Error()}}
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
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter(refused)))
	}
	write(w, known.status, known.problem)
}

// retryAfter is after how many seconds a refused request may be sent again.
func retryAfter(refused *query.ProblemError) int {
	if refused == nil || refused.After == 0 {
		return 5
	}
	return int(refused.After / time.Second)
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
