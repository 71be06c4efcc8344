package web

import (
	"cmp"
	"errors"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/service/inflight"
	"muster.dev/muster/services/console/internal/page"
	"muster.dev/muster/services/console/internal/session"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/overhttp"
)

// Options are the dependencies and settings of a Server.
type Options struct {
	// API asks the HTTP API, for callers that it gets the tokens of.
	API *overhttp.Client
	// Actions lets callers change what they may; without it pages show only.
	Actions bool
	// Secure: browsers reach the console over TLS.
	Secure bool
	// Proxied: browsers come through a proxy, whose address they share.
	Proxied bool
	// RackLabel is the label of nodes that names their rack; empty for none.
	RackLabel string
	// Elsewhere has the addresses of dashboards and logs.
	Elsewhere page.Elsewhere
	// OIDC, unless nil, lets users log in at a provider, too.
	OIDC *OIDC
	// Patience is how long a page waits for what may take long, before it is shown without; its
	// updates bring it. Zero is 100 ms.
	Patience time.Duration
	Logger   *zap.Logger
	// Now is the clock of ages on pages, and of sessions.
	Now func() time.Time
}

const (
	defaultPatience = 100 * time.Millisecond
	// livePatience is how long an update waits for what may take long.
	livePatience = 5 * time.Second
)

// patience is how long a page, or its update, waits for what may take long.
func (s *Server) patience(r *http.Request) time.Duration {
	if isLive(r) {
		return livePatience
	}
	return s.Patience
}

// Server answers browsers.
type Server struct {
	Options

	renderer          *page.Renderer
	sessions          *session.Store
	answers           *answers
	requests, streams *inflight.Limiter // of callers
	logins, redeems   *inflight.Limiter // of addresses
	oidc              *oidcLogins
}

// New returns the handler of all paths.
func New(o Options) (http.Handler, error) {
	renderer, err := page.NewRenderer()
	if err != nil {
		return nil, err
	}
	o.Patience = cmp.Or(o.Patience, defaultPatience)
	s := &Server{
		Options: o, renderer: renderer, sessions: session.NewStore(o.Now), answers: newAnswers(o.Now),
		requests: inflight.New(mostRequests, math.MaxInt), streams: inflight.New(mostStreams, mostAllStreams),
		logins: newLogins(o.Proxied), redeems: newLogins(o.Proxied),
	}
	mux := http.NewServeMux()
	files := http.FileServerFS(page.Static())
	for _, name := range page.StaticNames() {
		mux.Handle("GET /static/"+name, cached(files))
	}
	mux.HandleFunc("GET /login", s.showLogin)
	mux.HandleFunc("POST /login", s.login)
	mux.HandleFunc("POST /logout", s.logout)
	if o.OIDC != nil {
		s.oidc = newOIDCLogins(*o.OIDC, newOpenLogins(openOfAddress(o.Proxied), o.Now), o.Now)
		mux.HandleFunc("GET /login/oidc", s.beginOIDC)
		mux.HandleFunc("GET "+CallbackPath, s.finishOIDC)
	}
	for path, v := range views() {
		mux.HandleFunc("GET "+path, s.loggedIn(s.loading(s.show(v))))
		if v.every > 0 {
			mux.HandleFunc("GET "+livePath+path, s.loggedIn(s.live(v)))
		}
	}
	for _, of := range targets() {
		mux.HandleFunc("GET "+of.path, s.loggedIn(s.loading(s.confirm(of))))
		mux.HandleFunc("POST "+of.path, s.loggedIn(s.loading(s.act(of))))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.problem(w, r, s.sessionOf(r), http.StatusNotFound, "There is no such page.")
	})
	return secured(o.Secure, http.NewCrossOriginProtection().Handler(mux)), nil
}

// cached lets browsers keep a file for a while: its name does not change with its content.
func cached(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=300")
		next.ServeHTTP(w, r)
	})
}

// handler answers a caller that is logged in. Its error becomes a page.
type handler func(w http.ResponseWriter, r *http.Request, c *caller) error

// caller is a session with what asks for it.
type caller struct {
	*session.Session
	api *overhttp.Client
}

func (s *Server) loggedIn(handle handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		of := s.sessionOf(r)
		if of == nil {
			s.toLogin(w, r)
			return
		}
		api, err := s.API.As(of.Token)
		if err == nil {
			err = handle(w, r, &caller{of, api})
		}
		if err == nil || r.Context().Err() != nil {
			return
		}
		status, text := s.failed(r, err)
		if status == http.StatusUnauthorized { // the token is not valid any more
			s.sessions.Close(idOf(r, s.Secure))
			s.toLogin(w, r)
			return
		}
		s.problem(w, r, of, status, text)
	}
}

// loading bounds what a caller has loading at a time: pages, and what their forms ask for.
func (s *Server) loading(handle handler) handler {
	return func(w http.ResponseWriter, r *http.Request, c *caller) error {
		if !s.requests.Acquire(c.Caller) {
			return refuse(http.StatusTooManyRequests, "You have %d pages loading, which is the limit. Try again.", mostRequests)
		}
		defer s.requests.Release(c.Caller)
		return handle(w, r, c)
	}
}

// refusal is an error of the console's own, with its status.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

func refuse(status int, format string, args ...any) error {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

// failed returns the status and the text for a browser. What is not an answer of the HTTP API is
// logged.
func (s *Server) failed(r *http.Request, err error) (int, string) {
	var own *refusal
	if errors.As(err, &own) {
		return own.status, own.text
	}
	if status := overhttp.StatusOf(err); status >= 400 && status < 500 || status == http.StatusServiceUnavailable {
		return status, err.Error()
	}
	if errors.Is(err, exit.ErrUnreachable) || overhttp.StatusOf(err) != 0 {
		s.Logger.Warn("the HTTP API failed", zap.String("path", r.URL.Path), zap.Error(err))
		return http.StatusBadGateway, err.Error()
	}
	s.Logger.Error("page failed", zap.String("path", r.URL.Path), zap.Error(err))
	return http.StatusInternalServerError, "The console failed; its log has more."
}

// problem writes a page with what is wrong.
func (s *Server) problem(w http.ResponseWriter, r *http.Request, of *session.Session, status int, text string) {
	region, err := s.renderer.Region("problem", text)
	if err != nil {
		http.Error(w, text, status)
		return
	}
	s.write(w, r, of, status, page.Frame{Title: http.StatusText(status), Region: region})
}

// write writes a page with the frame of the session.
func (s *Server) write(w http.ResponseWriter, r *http.Request, of *session.Session, status int, f page.Frame) {
	f.Path = r.URL.Path
	if of != nil {
		f.Caller, f.Operator, f.Form = of.Caller, of.Operator, of.Form
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if err := s.renderer.Page(w, f); err != nil && r.Context().Err() == nil {
		s.Logger.Debug("page not written", zap.Error(err))
	}
}

// region makes HTML of a model.
func (s *Server) region(name string, model any) (template.HTML, error) {
	return s.renderer.Region(name, model)
}
