package lease

import "net/http"

// Wrap lets requests that change something pass only while the lease is held. It
// is asked at the last moment, after whatever the request had to wait for.
func (g *Guard) Wrap(next http.RoundTripper) http.RoundTripper { return guarded{g, next} }

type guarded struct {
	guard *Guard
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		if err := t.guard.Check(); err != nil {
			return nil, err
		}
	}
	return t.next.RoundTrip(r)
}
