package web

import (
	"net/http"
	"time"

	"muster.dev/muster/pkg/service/inflight"
)

// Limits of one caller, and of all.
const (
	mostRequests   = 32
	mostStreams    = 16
	mostAllStreams = 1024
	// Logins under way, of one address and of all: requests to the HTTP API, and, with a bound of
	// their own because they may wait for long, to the provider.
	mostLogins, mostAllLogins = 8, 64
	// writeMost is how long a browser may take for a page, or for each write of a stream.
	writeMost = 30 * time.Second
	// longestForm bounds what a browser sends.
	longestForm = 16 << 10
	// longestPath and longestQuery bound an address, parts of which are kept with answers and with
	// open logins.
	longestPath, longestQuery = 2 << 10, 12 << 10
)

// newLogins bounds logins under way. Behind a proxy the address is that of all browsers.
func newLogins(proxied bool) *inflight.Limiter {
	if proxied {
		return inflight.New(mostAllLogins, mostAllLogins)
	}
	return inflight.New(mostLogins, mostAllLogins)
}

// policy lets pages use nothing but what the console itself serves, and no script or style that
// is written into a page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// secured sets the headers of every answer, and bounds its time.
func secured(secure bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		h.Set("Cache-Control", "no-store")
		if secure {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		if len(r.URL.EscapedPath()) > longestPath || len(r.URL.RawQuery) > longestQuery {
			http.Error(w, "The address is too long.", http.StatusRequestURITooLong)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, longestForm)
		if http.NewResponseController(w).SetWriteDeadline(time.Now().Add(askMost+writeMost)) != nil {
			http.Error(w, "this server cannot bound the time of an answer", http.StatusInternalServerError)
			return
		}
		next.ServeHTTP(w, r)
	})
}
