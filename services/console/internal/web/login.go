package web

import (
	"net/http"
	"net/url"
	"strings"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/service/inflight"
	"muster.dev/muster/services/console/internal/page"
	"muster.dev/muster/services/console/internal/session"
	"muster.dev/muster/services/internal/client/overhttp"
)

// cookieName is that of the session's cookie. Over TLS the prefix keeps other hosts and paths from
// setting it.
func cookieName(secure bool) string {
	if secure {
		return "__Host-muster-console"
	}
	return "muster-console"
}

// idOf is the id of the session that the browser sends; empty without one.
func idOf(r *http.Request, secure bool) string {
	cookie, err := r.Cookie(cookieName(secure))
	if err != nil {
		return ""
	}
	return cookie.Value
}

// sessionOf is the session of a request; nil without one.
func (s *Server) sessionOf(r *http.Request) *session.Session {
	return s.sessions.Get(idOf(r, s.Secure))
}

func (s *Server) cookie(id string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: cookieName(s.Secure), Value: id, Path: "/", MaxAge: maxAge,
		HttpOnly: true, Secure: s.Secure, SameSite: http.SameSiteStrictMode,
	}
}

// toLogin has the browser log in, and come back.
func (s *Server) toLogin(w http.ResponseWriter, r *http.Request) {
	if isLive(r) { // an EventSource shows no page
		http.Error(w, "log in first", http.StatusUnauthorized)
		return
	}
	to := "/login"
	if r.Method == http.MethodGet && r.URL.Path != "/" {
		to += "?" + url.Values{"to": {r.URL.RequestURI()}}.Encode()
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// loginForm is the model of the page.
type loginForm struct {
	To, Problem string
	// Provider is the link to log in at the provider; empty without one.
	Provider string
}

func (s *Server) showLogin(w http.ResponseWriter, r *http.Request) {
	s.writeLogin(w, r, http.StatusOK, loginForm{To: own(r.URL.Query().Get("to"))})
}

func (s *Server) writeLogin(w http.ResponseWriter, r *http.Request, status int, form loginForm) {
	if s.oidc != nil {
		form.Provider = "/login/oidc?" + url.Values{"to": {own(form.To)}}.Encode()
	}
	region, err := s.region("login", form)
	if err != nil {
		s.problem(w, r, nil, http.StatusInternalServerError, "The console failed; its log has more.")
		return
	}
	s.write(w, r, nil, status, page.Frame{Title: "Log in", Region: region})
}

const tooManyLogins = "Too many logins at a time. Try again."

// own returns a path of the console itself, so that no link leads from the login elsewhere.
func own(to string) string {
	parsed, err := url.Parse(to)
	if err != nil || parsed.IsAbs() || parsed.Host != "" || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.Contains(to, "\\") {
		return "/"
	}
	return to
}

func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	token, to := strings.TrimSpace(r.PostFormValue("token")), own(r.PostFormValue("to"))
	if token == "" || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		s.writeLogin(w, r, http.StatusBadRequest, loginForm{To: to, Problem: "The token is empty, or has characters that no token has."})
		return
	}
	if s.open(w, r, token, loginForm{To: to}) {
		http.Redirect(w, r, to, http.StatusSeeOther)
	}
}

// open opens a session for a token that the HTTP API knows, and sets its cookie. It reports
// false when it has answered with the login form and what is wrong.
func (s *Server) open(w http.ResponseWriter, r *http.Request, token string, form loginForm) bool {
	fail := func(status int, text string) bool {
		form.Problem = text
		s.writeLogin(w, r, status, form)
		return false
	}
	host := inflight.Host(r.RemoteAddr)
	if !s.logins.Acquire(host) {
		return fail(http.StatusTooManyRequests, tooManyLogins)
	}
	defer s.logins.Release(host)
	api, err := s.API.As(token)
	if err != nil {
		s.Logger.Error("login failed", zap.Error(err))
		return fail(http.StatusInternalServerError, "The console failed; its log has more.")
	}
	known, err := api.Caller(r.Context())
	if err != nil {
		status, text := s.failed(r, err)
		switch overhttp.StatusOf(err) {
		case http.StatusUnauthorized:
			text = "The HTTP API does not accept this token."
			s.Logger.Warn("login refused", zap.String("remote", r.RemoteAddr)) // the log takes a share of warnings
		case http.StatusNotFound:
			status, text = http.StatusBadGateway, "The HTTP API is older than this console: it does not report whose token it is. Replace intake."
		}
		return fail(status, text)
	}
	s.sessions.Close(idOf(r, s.Secure)) // the browser forgets its id
	id, ok := s.sessions.Open(known.Name, known.Operator, token)
	if !ok {
		return fail(http.StatusServiceUnavailable, "Too many callers are logged in. Try again later.")
	}
	s.Logger.Info("logged in", zap.String("caller", known.Name), zap.Bool("operator", known.Operator), zap.String("remote", r.RemoteAddr))
	http.SetCookie(w, s.cookie(id, int(session.Longest.Seconds())))
	return true
}

func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	if of := s.sessionOf(r); of != nil {
		if !of.Sends(r.PostFormValue("form")) {
			s.problem(w, r, of, http.StatusForbidden, "This form is not of your session. Go back, reload the page and send it again.")
			return
		}
		s.sessions.Close(idOf(r, s.Secure))
	}
	http.SetCookie(w, s.cookie("", -1))
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}
