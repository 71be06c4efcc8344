package lease

import "net/http"

// Wrap lets writing requests pass only while the lease is held. It checks last, after
// every wait of the request.
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
